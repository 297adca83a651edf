"""The instruction set: fixed-size instructions, their fields, and how they stand in memory. The encoding is our own."""

import enum
from dataclasses import dataclass, field

from .errors import SpecError, choices
from .fields import pack_fields, unpack_fields
from .formats import FORMATS
from .vector import OPERATORS, SHUFFLE_GROUP

__all__ = ["COMPARISONS", "DIMENSIONS", "FIELD_NAMES", "HEADER", "HEADER_BITS", "INSTRUCTION_BYTES", "OPCODES", "OWN_BITS",
           "PATTERN", "PATTERNS", "PATTERN_BITS", "REGISTERS", "SEMAPHORES", "SPACES", "STREAMS", "UPDATES",
           "UPDATES_EACH", "VECTOR_CODES", "WAITS", "Access", "Cause", "Instruction", "Opcode", "Update", "Wait",
           "decode", "encode", "named", "numbered"]

INSTRUCTION_BYTES = 128
REGISTERS = 64
"""32-bit scalar registers of each sequencer (public)."""
SEMAPHORES = 256
"""Semaphores of a core (public); each counts from 0 to 65,535."""
DIMENSIONS = 4
"""(step, count) pairs of an access pattern (public: up to four)."""

STREAMS = ("tensor", "vector", "scalar", "gpsimd", "sync")
"""Instruction streams of a core; an instruction is legal on the streams that its opcode names."""
SPACES = ("sbuf", "psum")
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
UPDATES = ("=", "+=", "-=")
"""What an update does to its semaphore."""

WAITS, UPDATES_EACH = 3, 2
"""Most waits and updates of one instruction."""
HEADER_BITS, PATTERN_BITS, PATTERNS, OWN_BITS = 192, 192, 3, 256
"""The parts of an instruction: header, access patterns, the operation's own fields."""

HEADER = (
    ("opcode", 8, "an opcode of the table below"),
    ("notify", 1, "raise the interrupt when done"),
    ("count_special", 1, "count results that are NaN or infinite"),
    *((f"wait{index}_{name}", width, meaning) for index in range(WAITS) for name, width, meaning in (
        ("used", 1, "whether there is this wait"), ("comparison", 3, "number of a comparison"),
        ("semaphore", 8, "semaphore to look at"), ("value", 16, "what it is compared with, semaphore on the left"))),
    *((f"update{index}_{name}", width, meaning) for index in range(UPDATES_EACH) for name, width, meaning in (
        ("used", 1, "whether there is this update"), ("kind", 2, "number of an update"),
        ("semaphore", 8, "semaphore to change when done"), ("value", 16, "by how much, or to what"))),
)
"""Fields that every instruction begins with: name, bits, meaning; lowest bits first."""

PATTERN = (
    ("space", 1, "number of a memory"),
    ("format", 4, "code of a number format"),
    ("partition", 10, "first partition"),
    ("partitions", 11, "how many partitions, from 1"),
    ("offset", 20, "bytes from the partition's beginning"),
    ("indexed", 1, "whether a register is added to the offset"),
    ("register", 6, "that register"),
    *((f"{name}{index}", bits, meaning) for index in range(DIMENSIONS) for name, bits, meaning in (
        ("step", -16, "elements from one to the next"), ("count", 16, "how many, from 1"))),
)
"""Fields of an access pattern; the first (step, count) pair changes fastest. A negative number of bits: signed."""


@dataclass(frozen=True)
class Opcode:
    """One operation.

    Parameters
    ----------
    name : str
        As assembly has it.
    code : int
    streams : tuple of str
        On which it is legal.
    accesses : tuple of str
        Roles of its access patterns, in order.
    fields : tuple of (str, int, str)
        Its own fields: name, bits, meaning. A negative number of bits says that the field is signed.
    meaning : str
    """

    name: str
    code: int
    streams: tuple
    accesses: tuple
    fields: tuple
    meaning: str


_REGISTER_OR_VALUE = (("is_register", 1, "whether the right side is a register"),
                      ("right", -32, "number of the register, or the value"))

_OPERATOR_BITS = 5


def _scalar(number, meaning):
    """The fields of an operand that is the same for a partition's elements."""
    return ((f"scalar{number}", 32, f"{meaning}: 32 bits, or, if stored, the byte of a word in partitions of the state buffer"),
            (f"scalar{number}_stored", 1, "whether it is stored"),
            (f"scalar{number}_partition", 10, "if stored, the first of those partitions"))


_SCALAR0, _SCALAR1 = (_scalar(number, "operand") for number in range(2))
_OP0, _OP1 = ((f"op{number}", _OPERATOR_BITS, "number of an operator") for number in range(2))
_REVERSE0, _REVERSE1 = ((f"reverse{number}", 1, f"the operands of op{number} change places") for number in range(2))
_AFFINE = (("base", -32, "of the affine value"), ("multiplier", -32, "of the partition's number, from 0"),
           *((f"step{index}", -32, f"of the index in dimension {index} of the result") for index in range(DIMENSIONS)))
_FILL = ("fill", 32, "binary32")

FIELD_NAMES = {"op0": OPERATORS, "op1": OPERATORS, "comparison0": COMPARISONS, "comparison1": COMPARISONS}
"""Fields of operations that hold the place of a word in a tuple, which stands for it in assembly."""

OPCODES = {opcode.name: opcode for opcode in (
    Opcode("nop", 0x00, STREAMS, (), (), "nothing but its waits and updates"),
    Opcode("halt", 0x01, STREAMS, (), (), "the stream stops until the host starts it again"),
    Opcode("move", 0x02, STREAMS, (), (("target", 6, "register"), *_REGISTER_OR_VALUE), "target = right"),
    Opcode("add", 0x03, STREAMS, (), (("target", 6, "register"), ("left", 6, "register"), *_REGISTER_OR_VALUE),
           "target = left + right, modulo 2^32"),
    Opcode("branch", 0x04, STREAMS, (), (
        ("left", 6, "register"), ("comparison", 3, "number of a comparison, signed"), *_REGISTER_OR_VALUE,
        ("distance", -24, "instructions from this one to the next, if left compares so with right")),
        "go on at another instruction"),
    Opcode("dma_start", 0x10, STREAMS, (), (("ring", 4, "descriptor ring"), ("descriptors", 16, "how many more")),
           "let a ring take descriptors"),
    Opcode("load_stationary", 0x20, ("tensor",), ("stationary",), (
        ("paired", 1, "two elements a row (N5, N13): the last (step, count) pair leads from an element to its partner; its "
                      "count is 2"),
        ("odd", 1, "in pairs: the last partition's second elements are not there"),
        ("transpose", 1, "the products to come are exact transposes (N14)")),
        "take weights: a row for each partition, a column for each of its elements"),
    Opcode("multiply_moving", 0x21, ("tensor",), ("moving", "result"), (
        ("accumulate", 1, "add to what the bank holds instead of overwriting it (N3)"),),
        "stream columns through the weights into the partial-sum buffer"),
    Opcode("tensor_tensor", 0x40, ("vector",), ("data", "operand", "result"), (_OP0,), "result = data op0 operand"),
    Opcode("tensor_scalar", 0x41, ("vector",), ("data", "result"),
           (_OP0, _OP1, _REVERSE0, _REVERSE1, *_SCALAR0, *_SCALAR1), "result = (data op0 scalar0) op1 scalar1"),
    Opcode("scalar_tensor_tensor", 0x42, ("vector",), ("data", "operand", "result"),
           (_OP0, _OP1, _REVERSE0, _REVERSE1, *_SCALAR0), "result = (data op0 scalar0) op1 operand"),
    Opcode("tensor_copy", 0x43, ("vector",), ("data", "result"), (), "result = data"),
    Opcode("tensor_copy_predicated", 0x44, ("vector",), ("data", "predicate", "result"),
           (("reverse0", 1, "copy where the predicate is zero"),), "result = data where the predicate is not zero"),
    Opcode("memset", 0x45, ("vector", "gpsimd"), ("result",), (("value", 32, "bits of the result's format"),), "result = value"),
    Opcode("iota", 0x46, ("gpsimd",), ("result",), _AFFINE, "result = the affine value"),
    Opcode("affine_select", 0x47, ("gpsimd",), ("data", "result"),
           (*_AFFINE, ("comparison0", 3, "number of a comparison of the affine value with 0"), _FILL),
           "result = data where the affine value compares so with 0, else fill"),
    Opcode("range_select", 0x48, ("vector",), ("data", "result"), (
        *(("comparison" + str(index), 3, f"number of a comparison of the position with scalar{index}") for index in range(2)),
        *_SCALAR0, *_SCALAR1, ("start", -32, "position of the first element"), _FILL),
        "result = data where both comparisons hold, else fill"),
    Opcode("select", 0x49, ("vector",), ("data", "predicate", "result"),
           (("reverse0", 1, "take data where the predicate is zero"), *_SCALAR0),
           "result = data where the predicate is not zero, else scalar0"),
    Opcode("tensor_reduce", 0x4A, ("vector",), ("data", "result"),
           (_OP0, ("axes", 3, "how many of the fastest pairs are reduced, 1 to 4"), ("negate", 1, "change the results' signs")),
           "result = data reduced by op0 (N8)"),
    Opcode("tensor_scalar_reduce", 0x4B, ("vector",), ("data", "result", "reduced"), (_OP0, _OP1, _REVERSE0, *_SCALAR0),
           "result = data op0 scalar0; reduced = all of a partition's results reduced by op1 (N8)"),
    Opcode("tensor_tensor_scan", 0x4C, ("vector",), ("data", "operand", "result"),
           (_OP0, _OP1, _REVERSE0, _REVERSE1, *_SCALAR0),
           "each result = (data op0 the result before) op1 operand; scalar0 is before the first"),
    Opcode("tensor_scalar_cumulative", 0x4D, ("vector",), ("data", "result"),
           (_OP0, _OP1, _REVERSE0, *_SCALAR0, *_SCALAR1),
           "each result = (data op0 scalar0) op1 the result before; scalar1 is before the first"),
    Opcode("reciprocal", 0x4E, ("vector",), ("data", "result"), (), "result = 1 / data (N11)"),
    Opcode("max8", 0x4F, ("vector",), ("data", "result"), (), "result = the 8 largest elements of data, descending"),
    Opcode("find_index8", 0x50, ("vector",), ("data", "values", "result"), (),
           "result = the positions in data of the 8 values, all ones for those that are not there"),
    Opcode("match_replace8", 0x51, ("vector",), ("data", "values", "result"), (_FILL,),
           "result = data with fill in the place of the 8 values"),
    Opcode("set_rng_seed", 0x52, ("vector",), ("data",), (), "each partition's random numbers start anew, from its word of data (N12)"),
    Opcode("rng", 0x53, ("vector",), ("result",), (), "result = random bits (N12)"),
    Opcode("dropout", 0x54, ("vector",), ("data", "result"), _SCALAR0,
           "result = 0 with probability scalar0, else data (N12)"),
    Opcode("stream_shuffle", 0x55, ("vector",), ("data", "result"),
           tuple((f"mask{index}", 8, "partition of data, in its group, that goes here; 255: nothing does")
                 for index in range(SHUFFLE_GROUP)),
           "result = data with the partitions of each group exchanged"),
    Opcode("transpose", 0x56, ("vector",), ("data", "result"), (), "result = data with partitions and elements exchanged"),
    Opcode("tensor_partition_reduce", 0x57, ("gpsimd",), ("data", "result"),
           (_OP0, ("average", 1, "divide the sum by the number of partitions")),
           "result = data reduced by op0 across partitions (N8)"),
)}
"""Every opcode by name. 0x40 to 0x7f are for the vector engine; kept are 0x80 to 0x9f for the scalar engine, 0xa0 to 0xbf for
gpsimd, 0xc0 to 0xcf for collectives; up to three access patterns and 256 bits of own fields are there for them."""

VECTOR_CODES = range(0x40, 0x80)

_BY_CODE = {opcode.code: opcode for opcode in OPCODES.values()}
_OWN_FIELDS_AT = HEADER_BITS + PATTERNS * PATTERN_BITS


class Cause(enum.IntEnum):
    """Why an engine stopped; what its error register holds beside the instruction's address."""

    def __new__(cls, code, meaning):
        cause = int.__new__(cls, code)
        cause._value_ = code
        cause.meaning = meaning
        return cause

    NONE = 0, "nothing is wrong"
    ILLEGAL_OPCODE = 1, "no such operation, or not on this stream"
    ILLEGAL_FIELD = 2, "a field holds what it must not: a format not configured, a count of 0, a reserved bit"
    PARTITION_RANGE = 3, "first partition not at a quadrant, or partitions beyond the memory"
    ADDRESS_RANGE = 4, "an element beyond the end of its partition, or before its beginning"
    BANK_INVALID = 5, "a bank is read, or accumulated onto, that nothing was ever written to"
    FETCH = 6, "memory answered an instruction fetch with an error"
    MEMORY = 7, "memory answered a transfer with an error"


@dataclass(frozen=True)
class Wait:
    """Hold the instruction until a semaphore compares so with ``value``."""

    semaphore: int
    comparison: str
    value: int


@dataclass(frozen=True)
class Update:
    """Change a semaphore when the instruction is done."""

    semaphore: int
    kind: str
    value: int


@dataclass(frozen=True)
class Access:
    """An access pattern: an operand in a memory of the core.

    Parameters
    ----------
    space : str
        ``"sbuf"`` or ``"psum"``.
    format : str
        Number format of its elements.
    partition, partitions : int
        First partition, and how many.
    offset : int
        Bytes from a partition's beginning to the first element.
    dims : tuple of (int, int)
        Up to four (step, count) pairs in elements, the fastest first.
    register : int or None
        Register that is added to ``offset``.
    """

    space: str
    format: str
    partition: int
    partitions: int
    offset: int
    dims: tuple
    register: int | None = None


@dataclass(frozen=True)
class Instruction:
    """One instruction; fields that are not named are 0.

    Raises nothing by itself: :func:`encode` checks.
    """

    opcode: str
    accesses: dict = field(default_factory=dict)
    fields: dict = field(default_factory=dict)
    waits: tuple = ()
    updates: tuple = ()
    notify: bool = False
    count_special: bool = False


def _pattern_values(role, access):
    if not 1 <= len(access.dims) <= DIMENSIONS:
        raise SpecError(role, access.dims, f"1 to {DIMENSIONS} (step, count) pairs")
    values = {"space": numbered("space", access.space, SPACES), "partition": access.partition,
              "format": numbered("format", access.format, FORMATS),
              "partitions": access.partitions, "offset": access.offset,
              "indexed": int(access.register is not None), "register": access.register or 0}
    if access.partitions == 0:
        raise SpecError("partitions", 0, "a whole number from 1 to 2047")
    for index in range(DIMENSIONS):
        step, count = access.dims[index] if index < len(access.dims) else (0, 1)
        if count == 0:
            raise SpecError("count", 0, "a whole number from 1 to 65535")
        values |= {f"step{index}": step, f"count{index}": count}
    return values


def encode(instruction):
    """The 128 bytes of an instruction.

    Raises
    ------
    SpecError
        An unknown opcode, field, role, format or comparison, or a value that does not fit.
    """
    if instruction.opcode not in OPCODES:
        raise SpecError("opcode", instruction.opcode, choices(OPCODES))
    opcode = OPCODES[instruction.opcode]
    for given, allowed, what in ((instruction.accesses, opcode.accesses, "operand"),
                                 (instruction.fields, [name for name, _, _ in opcode.fields], "field")):
        for name in given:
            if name not in allowed:
                raise SpecError(f"{what} of {opcode.name}", name, choices(allowed) if allowed else "none")
    for role in opcode.accesses:
        if role not in instruction.accesses:
            raise SpecError(f"{role} of {opcode.name}", None, "an access pattern")
    values = {"opcode": opcode.code, "notify": int(instruction.notify), "count_special": int(instruction.count_special)}
    for given, most, kind, names in ((instruction.waits, WAITS, "wait", COMPARISONS),
                                     (instruction.updates, UPDATES_EACH, "update", UPDATES)):
        if len(given) > most:
            raise SpecError(f"{kind}s", len(given), f"at most {most}")
        for index, entry in enumerate(given):
            word = entry.comparison if kind == "wait" else entry.kind
            values |= {f"{kind}{index}_used": 1, f"{kind}{index}_semaphore": entry.semaphore,
                       f"{kind}{index}_value": entry.value,
                       f"{kind}{index}_{'comparison' if kind == 'wait' else 'kind'}": numbered(kind, word, names)}
    word = pack_fields(HEADER, values)
    for index, role in enumerate(opcode.accesses):
        pattern = pack_fields(PATTERN, _pattern_values(role, instruction.accesses[role]))
        word |= pattern << HEADER_BITS + index * PATTERN_BITS
    word |= pack_fields(opcode.fields, instruction.fields) << _OWN_FIELDS_AT
    return word.to_bytes(INSTRUCTION_BYTES, "little")


def decode(content):
    """The instruction that 128 bytes stand for; the inverse of :func:`encode`.

    Raises
    ------
    SpecError
        Not 128 bytes, an unknown opcode, a number that stands for nothing, a count of 0, or a bit that no field has.
        ``cause`` of the error is the :class:`Cause` that the hardware reports.
    """
    if len(content) != INSTRUCTION_BYTES:
        raise SpecError("instruction", f"{len(content)} bytes", f"{INSTRUCTION_BYTES} bytes")
    word = int.from_bytes(content, "little")
    header, _ = unpack_fields(HEADER, word)
    if header["opcode"] not in _BY_CODE:
        raise SpecError("opcode", header["opcode"], choices(map(hex, _BY_CODE)), Cause.ILLEGAL_OPCODE)
    opcode = _BY_CODE[header["opcode"]]
    waits = _entries(header, "wait", WAITS, "comparison", COMPARISONS, Wait)
    updates = _entries(header, "update", UPDATES_EACH, "kind", UPDATES, Update)
    accesses = {role: _access(unpack_fields(PATTERN, word >> HEADER_BITS + index * PATTERN_BITS)[0])
                for index, role in enumerate(opcode.accesses)}
    fields, _ = unpack_fields(opcode.fields, word >> _OWN_FIELDS_AT)
    instruction = Instruction(opcode.name, accesses, fields, waits, updates, bool(header["notify"]),
                              bool(header["count_special"]))
    if encode(instruction) != bytes(content):
        raise SpecError("instruction", bytes(content).hex(), "zeros wherever no field is used", Cause.ILLEGAL_FIELD)
    return instruction


def numbered(name, value, allowed):
    """The number that stands for ``value`` in a field; raises :class:`SpecError` where nothing does."""
    if value not in allowed:
        raise SpecError(name, value, choices(allowed))
    return list(allowed).index(value)


def named(name, number, names):
    """What a number in a field stands for; raises :class:`SpecError` with its cause where it stands for nothing."""
    if number >= len(names):
        raise SpecError(name, number, f"a whole number from 0 to {len(names) - 1}", Cause.ILLEGAL_FIELD)
    return names[number]


def _entries(header, kind, most, word, names, make):
    return tuple(make(header[f"{kind}{index}_semaphore"], named(word, header[f"{kind}{index}_{word}"], names),
                      header[f"{kind}{index}_value"])
                 for index in range(most) if header[f"{kind}{index}_used"])


def _access(values):
    dims = [(values[f"step{index}"], values[f"count{index}"]) for index in range(DIMENSIONS)]
    if not values["partitions"] or not all(count for _, count in dims):
        raise SpecError("access pattern", dims, "counts from 1", Cause.ILLEGAL_FIELD)
    while len(dims) > 1 and dims[-1] == (0, 1):
        dims.pop()
    return Access(named("space", values["space"], SPACES), named("format", values["format"], tuple(FORMATS)),
                  values["partition"], values["partitions"], values["offset"], tuple(dims),
                  values["register"] if values["indexed"] else None)
