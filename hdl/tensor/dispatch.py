"""From instructions to the tensor engine's commands and operand walks; refusals before anything has changed."""

from functools import reduce
from itertools import product
from operator import or_

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from spec.errors import SpecError
from spec.formats import FORMAT_CODES, FORMATS
from spec.isa import DIMENSIONS, OPCODES, SPACES, Cause
from spec.tensor import Matmul, Opcode, check_matmul, check_transpose

from ..control.layouts import CAUSE_BITS, instruction_layout, own_fields_layout
from ..control.sequencer import OFFSET_SHAPE
from .issue import command_layout
from .operand_fetch import operand_walk_layout
from ..memory.pattern_range import PatternRange

__all__ = ["TensorDispatch"]

_SBUF, _PSUM = map(SPACES.index, ("sbuf", "psum"))


def _allowed(check, core, *subjects):
    try:
        check(core, *subjects)
    except SpecError:
        return False
    return True


def _any(conditions):
    return reduce(or_, conditions, Const(0, 1))


class TensorDispatch(wiring.Component):
    """Checks ``load_stationary`` and ``multiply_moving`` as ``docs/isa.md`` says, and passes on what they ask for.

    Latency: from ``issue`` to ``accepted`` 9 cycles for a load and 15 for a multiplication, where the engine has room.

    Parameters
    ----------
    core : spec.config.CoreConfig

    Members
    -------
    issue : In(stream of instruction_layout), offsets : In, 2 x OFFSET_SHAPE
        Both hold until the answer.
    accepted : Out(1), refused : Out(4)
        The answer, for one cycle.
    command : Out(stream of command_layout)
        For :class:`hdl.tensor.engine.TensorEngine`.
    stationary, moving : Out(stream of operand_walk_layout)
    written : Out
        A bit for each bank of the partial-sum buffer: something was written to it since reset.
    others_written : In
        Banks that another engine will write to, for one cycle.
    """

    module_name = "onc_tensor_dispatch"

    def __init__(self, core):
        self._core = core
        super().__init__({
            "issue": In(stream.Signature(instruction_layout)), "offsets": In(OFFSET_SHAPE).array(2),
            "accepted": Out(1), "refused": Out(CAUSE_BITS), "command": Out(stream.Signature(command_layout(core))),
            "stationary": Out(stream.Signature(operand_walk_layout)), "moving": Out(stream.Signature(operand_walk_layout)),
            "written": Out(core.psum_banks), "others_written": In(core.psum_banks)})

    def elaborate(self, platform):
        m = Module()
        core = self._core
        instruction = self.issue.payload
        operand, result = instruction.patterns[0], instruction.patterns[1]
        load, multiply = Signal(own_fields_layout("load_stationary")), Signal(own_fields_layout("multiply_moving"))
        is_load = Signal()
        m.d.comb += [load.as_value().eq(instruction.own), multiply.as_value().eq(instruction.own),
                     is_load.eq(instruction.header.opcode == OPCODES["load_stationary"].code)]

        # The weights that multiplications find: what the last accepted load said, and its number of columns.
        loaded, weights, pattern, columns = (Signal(), Signal.like(load), Signal.like(operand),
                                             Signal(range(core.cols + 1)))
        paired = Mux(is_load, load.paired, weights.paired)
        m.submodules.reach = reach = PatternRange()
        second, size = Signal(), self._size(m, operand.format)
        m.d.comb += [
            reach.pattern.eq(Mux(second, result, operand)), reach.offset.eq(Mux(second, self.offsets[1], self.offsets[0])),
            reach.size.eq(Mux(second, 2, size)), reach.paired.eq(paired & ~second),
            reach.limit.eq(Mux(second, core.psum_banks * core.psum_bank_bytes, core.sbuf_bytes)),
        ]
        count, too_many, banks = Signal.like(reach.elements), Signal(), core.psum_banks
        bank_bits = (core.psum_bank_bytes - 1).bit_length()
        first_byte, last_byte = self.offsets[1].as_unsigned(), Signal(OFFSET_SHAPE.width)
        bank = first_byte[bank_bits:][:(banks - 1).bit_length()]
        m.d.comb += last_byte.eq(first_byte + ((result.count0 << 2) - 1))

        def judge(cases, following):
            """Refuse for the first reason that holds, or go on."""
            m.next = following
            for wrong, cause in reversed(cases):
                with m.If(wrong):
                    m.d.comb += self.refused.eq(cause)
                    m.next = "idle"

        m.d.sync += self.written.eq(self.written | self.others_written)
        with m.FSM():
            with m.State("idle"):
                m.d.comb += [self.issue.ready.eq(1), reach.start.eq(self.issue.valid)]
                m.d.sync += second.eq(0)
                with m.If(self.issue.valid):
                    m.next = "reach"
            with m.State("reach"):
                with m.If(reach.done):
                    m.next = "judge"
            with m.State("judge"):
                m.d.sync += [count.eq(reach.elements), too_many.eq(reach.too_many), second.eq(~is_load)]
                judge([
                    (~is_load & (~loaded | (operand.partition != pattern.partition)
                                 | (operand.partitions != pattern.partitions)), Cause.ILLEGAL_FIELD),
                    ((operand.space != _SBUF) | ~self._is_one_of(operand.format, core.formats), Cause.ILLEGAL_FIELD),
                    (self._wrong_partitions(operand, core.rows), Cause.PARTITION_RANGE),
                    (~reach.in_range, Cause.ADDRESS_RANGE),
                    (paired & (operand[f"count{DIMENSIONS - 1}"] != 2), Cause.ILLEGAL_FIELD),
                    (Mux(is_load, self._wrong_load(load, operand, reach), self._wrong_product(
                        multiply, operand, weights, pattern, reach)), Cause.ILLEGAL_FIELD),
                ], "walk")
                with m.If(~is_load & (self.refused == Cause.NONE)):
                    m.next = "reach result"
            with m.State("reach result"):
                m.d.comb += reach.start.eq(1)
                m.next = "reaching result"
            with m.State("reaching result"):
                with m.If(reach.done):
                    m.next = "judge result"
            with m.State("judge result"):
                integer = pattern.format == FORMAT_CODES["int8"]
                form = Mux(integer, FORMAT_CODES["int32"], FORMAT_CODES["fp32"])
                judge([
                    ((result.space != _PSUM) | (result.format != form), Cause.ILLEGAL_FIELD),
                    (self._wrong_partitions(result, core.cols), Cause.PARTITION_RANGE),
                    ((result.step0 != 1) | _any((result[f"step{index}"] != 0) | (result[f"count{index}"] != 1)
                                                for index in range(1, DIMENSIONS)), Cause.ILLEGAL_FIELD),
                    (~reach.in_range | (last_byte[bank_bits:] != first_byte[bank_bits:]), Cause.ADDRESS_RANGE),
                    ((result.partition != 0) | (result.partitions != columns) | (result.count0 != count)
                     | too_many, Cause.ILLEGAL_FIELD),
                    (multiply.accumulate & ~self.written.bit_select(bank, 1), Cause.BANK_INVALID),
                ], "walk")
            with m.State("walk"):
                target = self.stationary, self.moving
                moves = ~is_load & ~weights.transpose
                m.d.comb += [target[0].valid.eq(is_load), target[1].valid.eq(moves)]
                with m.If(Mux(is_load, target[0].ready, target[1].ready | ~moves)):
                    m.next = "command"
            with m.State("command"):
                m.d.comb += self.command.valid.eq(1)
                with m.If(self.command.ready):
                    m.d.comb += self.accepted.eq(1)
                    m.next = "idle"
                    with m.If(is_load):
                        m.d.sync += [loaded.eq(1), weights.eq(load), pattern.eq(operand), columns.eq(count)]
                    with m.Else():
                        m.d.sync += self.written.bit_select(bank, 1).eq(1)

        self._walks(m, operand, paired, size)
        command = self.command.payload
        m.d.comb += [
            command.opcode.eq(Mux(is_load, Opcode.LOAD, Opcode.MULTIPLY)), command.format.eq(operand.format),
            command.first_row.eq(operand.partition), command.columns.eq(count), command.paired.eq(load.paired),
            command.contraction.eq(Mux(load.paired, (operand.partitions << 1) - load.odd, operand.partitions)),
            command.transpose.eq(load.transpose), command.count.eq(count), command.bank.eq(bank),
            command.offset.eq(first_byte[2:]), command.accumulate.eq(multiply.accumulate),
            command.count_special.eq(instruction.header.count_special),
        ]
        return m

    @staticmethod
    def _size(m, code):
        size = Signal(2, name="element_size")
        with m.Switch(code):
            for name, form in FORMATS.items():
                with m.Case(FORMAT_CODES[name]):
                    m.d.comb += size.eq((form.width // 8).bit_length() - 1)
        return size

    @staticmethod
    def _is_one_of(code, names):
        return _any(code == FORMAT_CODES[name] for name in names)

    @staticmethod
    def _wrong_partitions(access, limit):
        quadrant = limit // 4
        beyond = access.partition + access.partitions > limit
        return beyond | (access.partition % quadrant != 0) if quadrant > 1 else beyond

    def _wrong_load(self, load, operand, reach):
        transposable = [name for name in self._core.formats if _allowed(check_transpose, self._core, name)]
        return (reach.too_many | (reach.elements > self._core.cols) | (load.odd & ~load.paired)
                | (load.transpose & (load.paired | ~self._is_one_of(operand.format, transposable))))

    def _wrong_product(self, multiply, operand, weights, pattern, reach):
        formats = self._core.formats
        forms = [(stationary, moving, paired) for stationary, moving, paired in product(formats, formats, (False, True))
                 if _allowed(check_matmul, self._core, Matmul(stationary, moving, paired))]
        asked = Cat(weights.paired, operand.format, pattern.format)
        legal = _any(asked == (paired | FORMAT_CODES[moving] << 1 | FORMAT_CODES[stationary] << 5)
                     for stationary, moving, paired in forms)
        return Mux(weights.transpose, multiply.accumulate | reach.too_many | (reach.elements > pattern.partitions), ~legal)

    def _walks(self, m, operand, paired, size):
        for walk in (self.stationary.payload, self.moving.payload):
            m.d.comb += [walk.offset.eq(self.offsets[0]), walk.size.eq(size), walk.paired.eq(paired)]
            for index in range(DIMENSIONS):
                m.d.comb += [walk.steps[index].eq(operand[f"step{index}"] << size),
                             walk.counts[index].eq(operand[f"count{index}"])]
