"""From instructions to the vector engine's tasks; refusals before anything has changed."""

from functools import reduce
from operator import or_

import numpy as np
from amaranth import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from spec.formats import FLOAT_FORMATS, FORMAT_CODES, FORMATS, INT_FORMATS
from spec.isa import COMPARISONS, DIMENSIONS, OPCODES, SPACES, VECTOR_CODES, Cause
from spec.vector import (ARITHMETIC, BITWISE, OPERATORS, REDUCTIONS, SEED_DISCARDS, SEED_MULTIPLIER, SHUFFLE_GROUP,
                         SHUFFLE_KEEPS, TOP, TOP_ELEMENTS, UNCOUNTED)

from ..control.layouts import CAUSE_BITS, instruction_layout, own_fields_layout
from ..control.sequencer import OFFSET_SHAPE
from ..memory.pattern_range import COUNT_BITS, PatternRange
from .layouts import task_layout

__all__ = ["VectorDispatch"]

_SBUF, _PSUM = map(SPACES.index, ("sbuf", "psum"))
_NAMES = tuple(name for name, opcode in OPCODES.items() if opcode.code in VECTOR_CODES)
_COMPARISON_OPERATORS = dict(zip(COMPARISONS, ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")))
_ALLOWED = {
    ("tensor_tensor", "op0"): OPERATORS[1:], ("tensor_scalar", "op0"): OPERATORS, ("tensor_scalar", "op1"): OPERATORS,
    **{(name, op): ARITHMETIC for name in ("scalar_tensor_tensor", "tensor_tensor_scan") for op in ("op0", "op1")},
    ("tensor_reduce", "op0"): REDUCTIONS, ("tensor_partition_reduce", "op0"): REDUCTIONS, ("tensor_scalar_reduce", "op0"): ARITHMETIC,
    ("tensor_scalar_reduce", "op1"): tuple(name for name in REDUCTIONS if name in ARITHMETIC),
    ("tensor_scalar_cumulative", "op0"): ARITHMETIC,
    ("tensor_scalar_cumulative", "op1"): ("add", "subtract", "multiply", "maximum", "minimum")}
_PLACES = {"data": "source0", "operand": "source1", "predicate": "source1", "values": "source1"}


def _any(conditions):
    return reduce(or_, conditions, Const(0, 1))


def _is_one_of(code, names, codes):
    return _any(code == codes[name] if isinstance(codes, dict) else code == codes.index(name) for name in names)


class VectorDispatch(wiring.Component):
    """Checks instructions as ``docs/vector-engine.md`` says, and passes on what they come down to.

    Latency: from ``issue`` to ``accepted`` 4 cycles and 7 for each access pattern, where the instruction before is done.

    Parameters
    ----------
    core : spec.config.CoreConfig

    Members
    -------
    issue : In(stream of instruction_layout), offsets : In, 3 x OFFSET_SHAPE
        Both hold until the answer.
    accepted : Out(1), refused : Out(4)
        The answer, for one cycle.
    task : Out(stream of task_layout)
    written : In
        Banks of the partial-sum buffer that something was written to.
    will_write : Out
        Banks that become such, for one cycle.
    """

    module_name = "onc_vector_dispatch"

    def __init__(self, core):
        self._core, self._group = core, min(SHUFFLE_GROUP, core.rows)
        super().__init__({
            "issue": In(stream.Signature(instruction_layout)), "offsets": In(OFFSET_SHAPE).array(3), "accepted": Out(1),
            "refused": Out(CAUSE_BITS), "task": Out(stream.Signature(task_layout)), "written": In(core.psum_banks),
            "will_write": Out(core.psum_banks)})

    def elaborate(self, platform):
        m = Module()
        core, instruction = self._core, self.issue.payload
        patterns = instruction.patterns
        own = {}
        for name in _NAMES:
            own[name] = Signal(own_fields_layout(name), name=f"own_{name}")
            m.d.comb += own[name].as_value().eq(instruction.own)
        sizes = [self._size(m, index, pattern.format) for index, pattern in enumerate(patterns)]
        illegal, used, scalars = self._fields(m, instruction, own, sizes)
        task, raw = Signal(task_layout), Signal()
        with_values, seeds = self._is(instruction, "find_index8", "match_replace8"), self._is(instruction, "set_rng_seed")
        first = Signal()
        m.d.comb += self._pass_on(task, with_values, seeds, first)
        self._task(m, instruction, own, sizes, task, raw)

        m.submodules.reach = reach = PatternRange()
        number = Signal(range(len(patterns)))
        pattern, psum = Signal(patterns[0].shape()), Signal()
        size = Array(sizes)[number]
        m.d.comb += [
            pattern.eq(Array(pattern.as_value() for pattern in patterns)[number]), psum.eq(pattern.space == _PSUM),
            reach.pattern.eq(pattern), reach.offset.eq(Array(self.offsets)[number]), reach.size.eq(size),
            reach.limit.eq(Mux(psum, core.psum_banks * core.psum_bank_bytes, core.sbuf_bytes)),
            reach.inner_pairs.eq(own["tensor_reduce"].axes)]
        counts = Array(Signal(COUNT_BITS, name=f"count_{index}") for index in range(len(patterns)))
        banks = Array(Signal(range(core.psum_banks), name=f"bank_{index}") for index in range(len(patterns)))
        too_many, inner = Signal(), Signal(COUNT_BITS)
        bank_bits = (core.psum_bank_bytes - 1).bit_length()
        split = psum & (reach.lowest[bank_bits:] != reach.highest[bank_bits:])

        def judge(cases, following):
            """Refuse for the first reason that holds, or go on."""
            m.next = following
            for wrong, cause in reversed(cases):
                with m.If(wrong):
                    m.d.comb += self.refused.eq(cause)
                    m.next = "idle"

        with m.FSM():
            with m.State("idle"):
                m.d.comb += self.issue.ready.eq(1)
                m.d.sync += [number.eq(0), too_many.eq(0)]
                with m.If(self.issue.valid):
                    m.next = "fields"
            with m.State("fields"):
                judge([(illegal, Cause.ILLEGAL_FIELD)], "start")
            with m.State("start"):
                m.d.comb += reach.start.eq(1)
                m.next = "reach"
            with m.State("reach"):
                with m.If(reach.done):
                    m.next = "judge"
            with m.State("judge"):
                m.d.sync += [counts[number].eq(reach.elements), banks[number].eq(reach.lowest[bank_bits:]),
                             too_many.eq(too_many | reach.too_many), number.eq(number + 1)]
                with m.If(number == 0):
                    m.d.sync += inner.eq(reach.inner)
                judge([(self._wrong_partitions(m, pattern, psum), Cause.PARTITION_RANGE),
                       (~reach.in_range | split, Cause.ADDRESS_RANGE)], "start")
                with m.If((number + 1 == used) & (self.refused == Cause.NONE)):
                    m.next = "whole"
            with m.State("whole"):
                judge([*self._scalar_cases(scalars, patterns[0].partitions),
                       (too_many | self._wrong_numbers(instruction, counts, inner), Cause.ILLEGAL_FIELD),
                       (self._unwritten(instruction, banks), Cause.BANK_INVALID)], "hand on")
                with m.If((with_values | seeds) & (self.refused == Cause.NONE)):
                    m.next = "hand on first"
            with m.State("hand on first"):
                m.d.comb += [self.task.valid.eq(1), first.eq(1)]
                with m.If(self.task.ready):
                    m.next = "hand on"
            with m.State("hand on"):
                m.d.comb += self.task.valid.eq(1)
                with m.If(self.task.ready):
                    m.d.comb += self.accepted.eq(1)
                    m.d.comb += self.will_write.eq(self._written_banks(instruction, banks))
                    m.next = "idle"
        return m

    @staticmethod
    def _is(instruction, *names):
        return _any(instruction.header.opcode == OPCODES[name].code for name in names)

    @staticmethod
    def _size(m, index, code):
        size = Signal(2, name=f"size_{index}")
        with m.Switch(code):
            for name, form in FORMATS.items():
                with m.Case(FORMAT_CODES[name]):
                    m.d.comb += size.eq((form.width // 8).bit_length() - 1)
        return size

    def _written_banks(self, instruction, banks):
        """A bit for each bank of the partial-sum buffer that holds a result."""
        written = Const(0, self._core.psum_banks)
        for name in _NAMES:
            for index, role in enumerate(OPCODES[name].accesses):
                if role in ("result", "reduced"):
                    here = self._is(instruction, name) & (instruction.patterns[index].space == _PSUM)
                    written |= Mux(here, 1 << banks[index], 0)
        return written

    def _fields(self, m, instruction, own, sizes):
        """Whether the fields are illegal whatever the memories hold, the number of patterns, and the scalars that there are."""
        patterns, header = instruction.patterns, instruction.header
        illegal, used = Signal(), Signal(2)
        scalars = [Signal(own["tensor_scalar"].scalar0.shape().width + 12, name=f"own_scalar_{index}") for index in range(2)]
        is_integer = [_is_one_of(pattern.format, INT_FORMATS, FORMAT_CODES) for pattern in patterns]
        in_psum = [pattern.space == _PSUM for pattern in patterns]
        with m.Switch(header.opcode):
            for name in _NAMES:
                opcode, fields = OPCODES[name], own[name]
                names = [field for field, _, _ in opcode.fields]
                count = len(opcode.accesses)
                with m.Case(opcode.code):
                    wrong = [in_psum[index] & (sizes[index] != 2) for index in range(count)]
                    wrong += [~_is_one_of(fields[op], allowed, OPERATORS) for (of, op), allowed in _ALLOWED.items() if of == name]
                    wrong += [fields[field] >= len(COMPARISONS) for field in names if field.startswith("comparison")]
                    for index in range(2):
                        if f"scalar{index}" in names:
                            stored = fields[f"scalar{index}_stored"]
                            wrong.append(~stored & (fields[f"scalar{index}_partition"] != 0))
                            m.d.comb += scalars[index].eq(Cat(
                                fields[f"scalar{index}"], fields[f"scalar{index}_partition"], stored, 1))
                    if "operand" in opcode.accesses or "predicate" in opcode.accesses:
                        wrong.append(in_psum[0] & in_psum[1])
                    if "predicate" in opcode.accesses:
                        wrong.append(~_is_one_of(patterns[1].format, ("uint8", "uint16", "uint32"), FORMAT_CODES))
                    if name == "find_index8":
                        wrong.append(~_is_one_of(patterns[2].format, ("uint16", "uint32"), FORMAT_CODES))
                    if name in ("tensor_copy_predicated", "dropout", "stream_shuffle", "transpose"):
                        wrong.append(patterns[0].format != patterns[opcode.accesses.index("result")].format)
                    if name == "set_rng_seed":
                        wrong.append(~_is_one_of(patterns[0].format, ("int32", "uint32"), FORMAT_CODES))
                    if name == "stream_shuffle":
                        wrong += [(fields[f"mask{index}"] >= self._group) & (fields[f"mask{index}"] != SHUFFLE_KEEPS)
                                  for index in range(self._group)]
                    if name == "tensor_partition_reduce":
                        wrong.append(fields.average & (fields.op0 != OPERATORS.index("add")))
                    if name == "rng":
                        wrong.append(~is_integer[0])
                    bits = self._bits(name, fields)
                    if name in ("tensor_tensor", "tensor_scalar", "tensor_reduce", "tensor_partition_reduce"):
                        wrong.append(bits & ~Cat(is_integer[:count]).all())
                        wrong += [bits & (sizes[index] != sizes[0]) for index in range(1, count)]
                    if name == "tensor_scalar":
                        wrong += [bits & ~_is_one_of(fields[op], ("bypass", *BITWISE), OPERATORS) for op in ("op0", "op1")]
                    if name == "tensor_reduce":
                        wrong += [(fields.axes < 1) | (fields.axes > DIMENSIONS), bits & fields.negate]
                    counts = Const(0, 1)
                    if name not in UNCOUNTED:
                        result = patterns[opcode.accesses.index("result")].format
                        counts = ~bits & _is_one_of(result, FLOAT_FORMATS, FORMAT_CODES)
                    wrong.append(header.count_special & ~counts)
                    m.d.comb += [illegal.eq(_any(wrong)), used.eq(count)]
        return illegal, used, scalars

    @staticmethod
    def _bits(name, fields):
        """Whether an instruction works on bits."""
        return _any(_is_one_of(fields[op], BITWISE, OPERATORS) for of, op in _ALLOWED if of == name)

    def _wrong_partitions(self, m, pattern, psum):
        wrong = {}
        for name, limit in (("sbuf", self._core.rows), ("psum", self._core.cols)):
            quadrant = max(1, limit // 4)
            wrong[name] = (pattern.partition + pattern.partitions > limit) | (pattern.partition % quadrant != 0)
        return Mux(psum, wrong["psum"], wrong["sbuf"])

    def _scalar_cases(self, scalars, partitions):
        core, cases = self._core, []
        for scalar in scalars:
            value, partition, stored = scalar[:32], scalar[32:42], scalar[42] & scalar[43]
            quadrant = max(1, core.rows // 4)
            cases += [(stored & ((partition + partitions > core.rows) | (partition % quadrant != 0)), Cause.PARTITION_RANGE),
                      (stored & ((value[:2] != 0) | (value + 4 > core.sbuf_bytes)), Cause.ADDRESS_RANGE)]
        return cases

    def _wrong_numbers(self, instruction, counts, inner):
        patterns = instruction.patterns
        wrong = []
        for name in _NAMES:
            accesses, here = OPCODES[name].accesses, self._is(instruction, name)
            if name == "set_rng_seed":
                wrong.append(here & (counts[0] != 1))
            if name == "transpose":
                sides = counts[0], patterns[0].partitions
                wrong.append(here & ((counts[1] != sides[1]) | (patterns[1].partitions != sides[0])
                                     | (sides[0] > self._group) | (sides[1] > self._group)))
                continue
            if name == "tensor_partition_reduce":
                wrong.append(here & ((counts[1] != counts[0]) | (patterns[1].partitions != 1)))
                continue
            if name == "stream_shuffle":
                wrong.append(here & (patterns[0].partitions % self._group != 0))
            for index in range(1, len(accesses)):
                other = counts[index] != counts[0]
                if accesses[index] == "reduced":
                    other = counts[index] != 1
                elif name in ("max8", "find_index8", "match_replace8"):
                    like_data = (name, accesses[index]) == ("match_replace8", "result")
                    other = (counts[index] != (counts[0] if like_data else TOP)) | (counts[0] < TOP_ELEMENTS[0])
                    other |= counts[0] > TOP_ELEMENTS[1]
                elif name == "tensor_reduce":
                    other = counts[index] * inner != counts[0]
                wrong.append(here & (other | (patterns[index].partitions != patterns[0].partitions)))
        return _any(wrong)

    def _unwritten(self, instruction, banks):
        wrong = []
        for name in _NAMES:
            for index, role in enumerate(OPCODES[name].accesses):
                if role in _PLACES or (name, role) == ("tensor_copy_predicated", "result"):
                    unwritten = ~self.written.bit_select(banks[index], 1) & (instruction.patterns[index].space == _PSUM)
                    wrong.append(self._is(instruction, name) & unwritten)
        return _any(wrong)

    def _task(self, m, instruction, own, sizes, task, raw):
        """What the instruction comes down to."""
        patterns, setting = instruction.patterns, task.setting
        m.d.comb += [task.partitions.eq(patterns[0].partitions), task.count_special.eq(instruction.header.count_special),
                     setting.raw.eq(raw)]
        with m.Switch(instruction.header.opcode):
            for name in _NAMES:
                opcode, fields = OPCODES[name], own[name]
                names = [field for field, _, _ in opcode.fields]
                with m.Case(opcode.code):
                    for index, role in enumerate(opcode.accesses):
                        self._operand(m, task[_PLACES.get(role, role)], patterns[index], self.offsets[index], sizes[index])
                        if role in _PLACES:
                            side = _PLACES[role][-1]
                            m.d.comb += [setting[f"format{side}"].eq(patterns[index].format),
                                         setting[f"size{side}"].eq(sizes[index])]
                    # Without operators reverse0 is about the predicate.
                    plain = ("fill", "negate", *(("op0", "op1", "reverse0", "reverse1") if "op0" in names else ()))
                    m.d.comb += [setting[field].eq(fields[field]) for field in plain if field in names]
                    for index in range(2):
                        if f"scalar{index}" in names:
                            m.d.comb += [task.scalars[index].value.eq(fields[f"scalar{index}"]),
                                         task.scalars[index].stored.eq(fields[f"scalar{index}_stored"]),
                                         task.scalars[index].partition.eq(fields[f"scalar{index}_partition"])]
                    if "base" in names:
                        m.d.comb += [task.affine.eq(1), task.base.eq(fields.base), task.multiplier.eq(fields.multiplier),
                                     *(task.affine_steps[index].eq(fields[f"step{index}"]) for index in range(DIMENSIONS))]
                    m.d.comb += self._own(name, instruction, fields, task, raw)

    def _own(self, name, instruction, fields, task, raw):
        """What is peculiar to an operation."""
        setting, patterns = task.setting, instruction.patterns
        bits = self._bits(name, fields)
        if name in ("tensor_tensor", "tensor_scalar", "tensor_reduce", "tensor_partition_reduce"):
            yield raw.eq(bits)
        match name:
            case "tensor_tensor":
                yield setting.operand_in_0.eq(1)
            case "scalar_tensor_tensor":
                yield setting.operand_in_1.eq(1)
            case "tensor_copy":
                yield raw.eq(patterns[0].format == patterns[1].format)
            case "tensor_copy_predicated":
                yield from (raw.eq(1), task.keeps.eq(1), setting.by_predicate.eq(1), setting.inverts.eq(fields.reverse0))
            case "memset":
                # Nothing is read: the scalar is op0's second operand, and bypass gives the first one.
                yield from (raw.eq(1), task.scalars[0].value.eq(fields.value), setting.reverse0.eq(1))
            case "iota":
                yield from (setting.affine_data.eq(1), setting.format0.eq(FORMAT_CODES["int32"]),
                            raw.eq(patterns[0].format == FORMAT_CODES["int32"]))
            case "affine_select":
                yield from (setting.selects.eq(1), setting.comparison.eq(fields.comparison0),
                            task.scalars[0].value.eq(fields.fill))
            case "select":
                yield from (setting.selects.eq(1), setting.by_predicate.eq(1), setting.inverts.eq(fields.reverse0))
            case "range_select":
                yield from (setting.ranges.eq(1), task.start.eq(fields.start))
                for index in range(2):
                    yield setting[f"op{index}"].eq(Array(Const(OPERATORS.index(word), 5) for word in (
                        *_COMPARISON_OPERATORS.values(), "bypass", "bypass"))[fields[f"comparison{index}"]])
            case "tensor_reduce":
                yield from (setting.reduces.eq(1), setting.op0.eq(0), setting.op1.eq(fields.op0), task.axes.eq(fields.axes))
            case "tensor_scalar_reduce":
                yield from (setting.reduces_results.eq(1), task.axes.eq(DIMENSIONS))
            case "tensor_tensor_scan":
                yield from (setting.scans.eq(1), setting.operand_in_1.eq(1))
            case "tensor_scalar_cumulative":
                yield setting.cumulates.eq(1)
            case "reciprocal":
                yield setting.divides.eq(1)
            case "max8":
                yield from (setting.sorts.eq(1), task.axes.eq(DIMENSIONS))
            case "stream_shuffle":
                yield from (raw.eq(1), task.shuffles.eq(1),
                            *(entry.eq(fields[f"mask{index}"]) for index, entry in enumerate(task.mask)))
            case "transpose":
                yield from (raw.eq(1), setting.collects.eq(1), task.axes.eq(DIMENSIONS), task.partitions.eq(patterns[1].partitions),
                            task.sources.eq(patterns[0].partitions))
            case "tensor_partition_reduce":
                yield from (setting.spans.eq(1), task.partitions.eq(1), task.sources.eq(patterns[0].partitions),
                            task.scalars[1].value.eq(self._parts(patterns[0].partitions)))
                with_average = Mux(fields.average, OPERATORS.index("multiply"), OPERATORS.index("bypass"))
                yield setting.op1.eq(with_average)
            case "set_rng_seed":
                # A row for each partition; afterwards draws along the result's counts.
                yield from (raw.eq(1), task.affine.eq(1), task.multiplier.eq(SEED_MULTIPLIER),
                            *(count.eq(SEED_DISCARDS if index == 0 else 1) for index, count in enumerate(task.result.walk.counts)))
            case "rng":
                yield from (raw.eq(1), setting.draws.eq(1))
            case "dropout":
                yield from (raw.eq(1), setting.drops.eq(1), setting.format1.eq(FORMAT_CODES["uint32"]),
                            setting.op0.eq(OPERATORS.index("less")))
            case "find_index8":
                yield from (setting.finds.eq(1), task.axes.eq(DIMENSIONS))
            case "match_replace8":
                yield from (setting.replaces.eq(1), task.scalars[0].value.eq(fields.fill))

    def _pass_on(self, task, with_values, seeds, first):
        """The task as it is, or two: an instruction with values first stores them, one that seeds then discards draws."""
        given, own = Signal(task_layout, name="given"), task.setting
        values, discards = with_values & first, seeds & ~first
        yield from (given.eq(task), own.stores.eq(values), own.seeds.eq(seeds & first),
                    task.discards.eq(values | seeds), task.more.eq(first), self.task.payload.eq(given),
                    given.source0.eq(Mux(values, task.source1.as_value(), task.source0.as_value())),
                    given.source0.used.eq(Mux(values, 1, task.source0.used & ~discards)),
                    given.source1.used.eq(task.source1.used & ~with_values))
        stored = {"finds": 0, "replaces": 0, "format0": own.format1, "size0": own.size1}
        yield from (given.setting[name].eq(Mux(values, value, own[name])) for name, value in stored.items())
        yield from (given.setting.draws.eq(own.draws | discards), given.affine.eq(task.affine & ~discards))

    def _parts(self, partitions):
        """1 / P of so many partitions, as binary32."""
        return Array(Const(int(np.float32(1 / max(1, count)).view(np.uint32)), 32)
                     for count in range(max(self._core.rows, self._core.cols) + 1))[partitions]

    @staticmethod
    def _operand(m, operand, pattern, offset, size):
        walk = operand.walk
        m.d.comb += [operand.used.eq(1), operand.psum.eq(pattern.space == _PSUM), operand.partition.eq(pattern.partition),
                     operand.format.eq(pattern.format), operand.size.eq(size), walk.offset.eq(offset)]
        for index in range(DIMENSIONS):
            m.d.comb += [walk.steps[index].eq(pattern[f"step{index}"] << size), walk.counts[index].eq(pattern[f"count{index}"])]
