"""The vector engine's instructions on the memories of a core: what is refused, and what they leave behind."""

from math import prod

import numpy as np

from spec.formats import FORMATS, INT_FORMATS
from spec.isa import COMPARISONS, DIMENSIONS, OPCODES, VECTOR_CODES, Cause
from spec.vector import ARITHMETIC, BITWISE, MOST_ELEMENTS, OPERATORS, REDUCTIONS, SHUFFLE_GROUP, SHUFFLE_KEEPS, TOP, TOP_ELEMENTS, UNCOUNTED, is_bitwise

from . import vector
from .formats import convert, decode, storage_dtype
from .memory import Refused

__all__ = ["VECTOR_INSTRUCTIONS", "check_vector", "execute_vector"]

VECTOR_INSTRUCTIONS = tuple(name for name, opcode in OPCODES.items() if opcode.code in VECTOR_CODES)

_COMPARE = {"==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
_OPERATORS = {
    "tensor_tensor": [OPERATORS[1:]], "tensor_scalar": [OPERATORS] * 2, "scalar_tensor_tensor": [ARITHMETIC] * 2,
    "tensor_tensor_scan": [ARITHMETIC] * 2, "tensor_reduce": [REDUCTIONS], "tensor_partition_reduce": [REDUCTIONS],
    "tensor_scalar_reduce": [ARITHMETIC, [name for name in REDUCTIONS if not is_bitwise(name)]],
    "tensor_scalar_cumulative": [ARITHMETIC, ("add", "subtract", "multiply", "maximum", "minimum")]}
"""What op0 and op1 may be."""
_READS = ("data", "operand", "predicate", "values")


def _width(access):
    return FORMATS[access.format].width


def _operators(instruction):
    """Names of the operators; None for a number that stands for none."""
    numbers = [instruction.fields[f"op{index}"] for index in range(len(_OPERATORS.get(instruction.opcode, ())))]
    return [OPERATORS[number] if number < len(OPERATORS) else None for number in numbers]


def _scalar_names(fields):
    return [name for name in ("scalar0", "scalar1") if name in fields]


def _mask(fields, group):
    return [fields[f"mask{index}"] for index in range(group)]


def _group(memories):
    """Partitions of a group."""
    return min(SHUFFLE_GROUP, memories.extent("sbuf")[0])


def _wrong_fields(instruction, group):
    """What is illegal whatever the memories hold, in words; None where nothing is."""
    name, accesses, fields = instruction.opcode, instruction.accesses, instruction.fields
    operators = _operators(instruction)
    bits = any(operator in BITWISE for operator in operators)
    kinds = {_width(access) if access.format in INT_FORMATS else None for access in accesses.values()}
    spaces = {role: access.space for role, access in accesses.items()}
    data = accesses.get("data")
    complaints = [
        (any(operator not in allowed for operator, allowed in zip(operators, _OPERATORS.get(name, ()))), "an operator"),
        (any(fields[field] >= len(COMPARISONS) for field in fields if field.startswith("comparison")), "a comparison"),
        (any(access.space == "psum" and _width(access) != 32 for access in accesses.values()), "a narrow format in psum"),
        (any(spaces.get(role) == spaces["data"] == "psum" for role in ("operand", "predicate") if role in spaces),
         "two operands in psum"),
        ("predicate" in accesses and accesses["predicate"].format not in ("uint8", "uint16", "uint32"), "a predicate's format"),
        (name == "tensor_copy_predicated" and data.format != accesses["result"].format, "two formats"),
        (name == "find_index8" and accesses["result"].format not in ("uint16", "uint32"), "a format of positions"),
        (name == "set_rng_seed" and data.format not in ("int32", "uint32"), "a format of seeds"),
        (name == "rng" and accesses["result"].format not in INT_FORMATS, "a format of random bits"),
        (name in ("dropout", "stream_shuffle", "transpose") and data.format != accesses["result"].format, "two formats"),
        (name == "stream_shuffle" and any(entry >= group and entry != SHUFFLE_KEEPS for entry in _mask(fields, group)), "a mask"),
        (name == "tensor_partition_reduce" and fields["average"] and operators != ["add"], "an average of other than a sum"),
        (bits and (None in kinds or len(kinds) > 1), "bits of other than integers of one width"),
        (bits and any(operator not in ("bypass", *BITWISE) for operator in operators), "an operator of bits and one of values"),
        (name == "tensor_reduce" and not 1 <= fields["axes"] <= DIMENSIONS, "a number of axes"),
        (name == "tensor_reduce" and bits and fields["negate"], "bits negated"),
        (any(fields[f"{scalar}_partition"] and not fields[f"{scalar}_stored"] for scalar in _scalar_names(fields)),
         "a partition of a scalar that is not stored"),
        (instruction.count_special and (name in UNCOUNTED or bits or accesses["result"].format in INT_FORMATS),
         "count_special"),
    ]
    return next((words for wrong, words in complaints if wrong), None)


def _wrong_numbers(instruction, group):
    """Whether numbers of elements or partitions do not go together."""
    accesses = list(instruction.accesses.items())
    counts = {role: prod(count for _, count in access.dims) for role, access in accesses}
    first, leading = accesses[0]
    if any(count > MOST_ELEMENTS for count in counts.values()):
        return True
    if instruction.opcode == "transpose":
        sides = leading.partitions, counts["data"]
        return sides != (counts["result"], instruction.accesses["result"].partitions) or max(sides) > group
    if instruction.opcode == "tensor_partition_reduce":
        return counts["result"] != counts["data"] or instruction.accesses["result"].partitions != 1
    if any(access.partitions != leading.partitions for _, access in accesses):
        return True
    if instruction.opcode == "stream_shuffle" and leading.partitions % group:
        return True
    wanted = dict.fromkeys(counts, counts[first])
    if instruction.opcode == "tensor_reduce":
        inner = prod(count for _, count in leading.dims[:instruction.fields["axes"]])
        return counts["result"] * inner != counts["data"]
    if instruction.opcode in ("max8", "find_index8", "match_replace8"):
        wanted = {role: counts["data"] if (instruction.opcode, role) == ("match_replace8", "result") else TOP
                  for role in counts if role != "data"}
        return counts != {"data": counts["data"], **wanted} or not TOP_ELEMENTS[0] <= counts["data"] <= TOP_ELEMENTS[1]
    if instruction.opcode == "set_rng_seed":
        return counts["data"] != 1
    if "reduced" in wanted:
        wanted["reduced"] = 1
    return counts != wanted


def check_vector(memories, instruction, registers):
    """Raises :class:`golden.memory.Refused` for the first reason of ``docs/vector-engine.md`` that holds."""
    if words := _wrong_fields(instruction, _group(memories)):
        raise Refused(Cause.ILLEGAL_FIELD, f"{instruction.opcode}: {words} that it must not have")
    for access in instruction.accesses.values():
        memories.check_operand(access, registers)
    partitions = next(iter(instruction.accesses.values())).partitions
    for scalar in _scalar_names(instruction.fields):
        if instruction.fields[f"{scalar}_stored"]:
            memories.check_stored(instruction.fields[f"{scalar}_partition"], partitions, instruction.fields[scalar])
    if _wrong_numbers(instruction, _group(memories)):
        raise Refused(Cause.ILLEGAL_FIELD, f"{instruction.opcode}: numbers of elements or partitions that do not go together")
    for role, access in instruction.accesses.items():
        keeps = instruction.opcode == "tensor_copy_predicated" and role == "result"
        if access.space == "psum" and (role in _READS or keeps):
            bank = memories.bank_of(access, registers)
            if not memories.written[bank]:
                raise Refused(Cause.BANK_INVALID, f"{role} in bank {bank}, which nothing was written to")


class _Execution:
    """One legal instruction; its methods, by name, give the result's bits, and what else there is to write."""

    def __init__(self, memories, instruction, registers):
        self._memories, self._instruction, self._registers = memories, instruction, registers
        self.fields, self.accesses = instruction.fields, instruction.accesses
        self.operators = _operators(instruction)
        self.bits = any(operator in BITWISE for operator in self.operators)
        self.result = self.accesses.get("result")
        self.kept, self.reduced = None, None

    def stored(self, role):
        """An operand's elements as they are, ``[partitions, elements]``."""
        return self._memories.operand(self.accesses[role], self._registers)

    def operand(self, role):
        """An operand's elements as values, or as bits."""
        elements, name = self.stored(role), self.accesses[role].format
        return elements.astype(np.uint32) if self.bits else vector.canonical(decode(convert(elements, name, "fp32"), "fp32"))

    def scalar(self, number):
        """A scalar of each partition, ``[partitions, 1]``."""
        value = self.fields[f"scalar{number}"]
        if self.fields[f"scalar{number}_stored"]:
            words = self._memories.stored_words(self.fields[f"scalar{number}_partition"], self.result.partitions, value)
        else:
            words = np.full(self.result.partitions, value, np.uint32)
        return words[:, None] if self.bits else vector.canonical(words.view(np.float32))[:, None]

    def encoded(self, values, name):
        """Bits of the result's format."""
        if values.dtype == np.uint32:
            return values.astype(storage_dtype(name))
        return convert(vector.canonical(values).view(np.uint32), "fp32", name)

    def run(self):
        """The result's bits."""
        result = getattr(self, self._instruction.opcode)()
        return self.encoded(result, self.result.format) if result.dtype == np.float32 or self.bits else result

    def _op0(self, a, b):
        return vector.apply(self.operators[0], a, b, self.fields.get("reverse0", 0))

    def _op1(self, a, b):
        return vector.apply(self.operators[1], a, b, self.fields["reverse1"])

    def tensor_tensor(self):
        return self._op0(self.operand("data"), self.operand("operand"))

    def tensor_scalar(self):
        return self._op1(self._op0(self.operand("data"), self.scalar(0)), self.scalar(1))

    def scalar_tensor_tensor(self):
        return self._op1(self._op0(self.operand("data"), self.scalar(0)), self.operand("operand"))

    def tensor_copy(self):
        return convert(self.stored("data"), self.accesses["data"].format, self.result.format)

    def tensor_copy_predicated(self):
        self.kept = (self.stored("predicate") != 0) == self.fields["reverse0"]
        return self.stored("data")

    def memset(self):
        value = self.fields["value"] & ((1 << _width(self.result)) - 1)
        count = prod(count for _, count in self.result.dims)
        return np.full((self.result.partitions, count), value, storage_dtype(self.result.format))

    def _affine(self):
        steps = [self.fields[f"step{index}"] for index in range(DIMENSIONS)]
        return vector.affine(self.fields["base"], self.fields["multiplier"], steps, [count for _, count in self.result.dims],
                             self.result.partitions)

    def iota(self):
        return convert(self._affine().view(np.uint32), "int32", self.result.format)

    def _fill(self):
        return np.uint32(self.fields["fill"]).view(np.float32)

    def _compare(self, number, left, right):
        return _COMPARE[COMPARISONS[self.fields[f"comparison{number}"]]](left, right)

    def affine_select(self):
        return np.where(self._compare(0, self._affine(), 0), self.operand("data"), self._fill())

    def range_select(self):
        data = self.operand("data")
        positions = self.fields["start"] + np.arange(data.shape[1], dtype=np.int64) & 0xFFFF_FFFF
        positions = decode(convert(positions.astype(np.uint32), "int32", "fp32"), "fp32")
        inside = self._compare(0, positions, self.scalar(0)) & self._compare(1, positions, self.scalar(1))
        return np.where(inside, data, self._fill())

    def select(self):
        takes = (self.stored("predicate") != 0) != self.fields["reverse0"]
        return np.where(takes, self.operand("data"), self.scalar(0))

    def reciprocal(self):
        return vector.reciprocal(self.operand("data"))

    def max8(self):
        return vector.largest(self.operand("data"), TOP)

    def find_index8(self):
        places = vector.find(self.operand("data"), self.operand("values"))
        return places.astype(storage_dtype(self.result.format))

    def match_replace8(self):
        data = self.operand("data").copy()
        places = vector.find(data, self.operand("values"))
        for partition, place in zip(*np.nonzero(places >= 0)):
            data[partition, places[partition, place]] = self._fill()
        return data

    def rng(self):
        count = prod(count for _, count in self.result.dims)
        draws = self._memories.random.draw(self.result.partitions, count)
        return draws.astype(storage_dtype(self.result.format))

    def dropout(self):
        data = self.stored("data")
        draws = self._memories.random.draw(*data.shape)
        drops = (draws >> 8).astype(np.float32) * np.float32(2.0 ** -24) < self.scalar(0)
        return np.where(drops, data.dtype.type(0), data)

    def stream_shuffle(self):
        data, group = self.stored("data"), _group(self._memories)
        mask = np.array(_mask(self.fields, group))
        self.kept = np.tile(mask == SHUFFLE_KEEPS, len(data) // group)[:, None]
        source = np.where(mask == SHUFFLE_KEEPS, 0, mask)
        return data.reshape(-1, group, data.shape[1])[:, source].reshape(data.shape)

    def transpose(self):
        return self.stored("data").T

    def tensor_partition_reduce(self):
        data = self.operand("data")
        total = vector.reduce_partitions(self.operators[0], data)
        if self.fields["average"]:
            total = vector.apply("multiply", total, vector.reciprocal(np.float32(len(data))))
        return total[None]

    def tensor_reduce(self):
        data = self.operand("data")
        results = prod(count for _, count in self.result.dims)
        reduced = vector.reduce(self.operators[0], data.reshape(len(data), results, -1))
        return -reduced if self.fields["negate"] else reduced

    def tensor_scalar_reduce(self):
        results = self._op0(self.operand("data"), self.scalar(0))
        self.reduced = vector.reduce(self.operators[1], results)[:, None]
        return results

    def tensor_tensor_scan(self):
        reverses = self.fields["reverse0"], self.fields["reverse1"]
        return vector.scan(self.operators, reverses, self.operand("data"), self.operand("operand"), self.scalar(0)[:, 0])

    def tensor_scalar_cumulative(self):
        elements = self._op0(self.operand("data"), self.scalar(0))
        return vector.cumulate(self.operators[1], elements, self.scalar(1)[:, 0])


def execute_vector(memories, instruction, registers):
    """Execute an instruction; raises :class:`golden.memory.Refused` before anything has changed.

    Returns
    -------
    int
        How many results that are to be counted are NaN or infinite.
    """
    check_vector(memories, instruction, registers)
    if instruction.opcode == "set_rng_seed":
        memories.random.seed(memories.operand(instruction.accesses["data"], registers)[:, 0].view(np.uint32))
        return 0
    execution = _Execution(memories, instruction, registers)
    bits, result = execution.run(), execution.result
    if execution.kept is not None:
        bits = np.where(execution.kept, execution.stored("result"), bits)
    memories.store(result, registers, bits)
    if execution.reduced is not None:
        reduced = instruction.accesses["reduced"]
        memories.store(reduced, registers, execution.encoded(execution.reduced, reduced.format))
    return int((~np.isfinite(decode(bits, result.format))).sum()) if instruction.count_special else 0
