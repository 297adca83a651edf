"""What the tensor engine can be asked to do: legal operands, sizes, and the order of a long contraction."""

import enum
from dataclasses import dataclass

from .errors import SpecError, choices

__all__ = ["FP32_PASSES", "WEIGHTS_PER_CYCLE", "Matmul", "Opcode", "check_matmul", "check_transpose", "command_fields",
           "contraction_tiles", "encode_command", "is_paired_always"]

FP32_PASSES = 4
"""Cycles that one column of ``moving`` takes when an operand is fp32 (rule N4)."""

WEIGHTS_PER_CYCLE = 2
"""Elements of ``stationary`` that enter each row a cycle.

Our choice. Two let a load of ``cols`` weights follow one wavefront and lead the next at a distance of ``cols / 2``
cycles, which is the 64 cycles that AWS gives as the shortest interval of a 128 x 128 array; more would not shorten it,
since the wavefront itself crosses one column a cycle.
"""


def is_paired_always(name):
    """Whether a format always goes two elements to a row (int8, rule N13)."""
    return name == "int8"


@dataclass(frozen=True)
class Matmul:
    """The numeric form of one matrix product: ``result[M, N] = stationary[K, M]^T . moving[K, N]``.

    Parameters
    ----------
    stationary, moving : str
        Formats of the operands.
    paired : bool
        Elements p and p + ceil(K/2) share row p (rules N5, N13).
    """

    stationary: str
    moving: str
    paired: bool = False

    @property
    def is_integer(self):
        """Sums are int32 that wrap (N13), not binary32."""
        return self.stationary == "int8"

    @property
    def passes(self):
        """Cycles for each column of ``moving``."""
        return FP32_PASSES if "fp32" in (self.stationary, self.moving) else 1

    @property
    def peak_rate(self):
        """Multiply-accumulates that an element does in a cycle: 1, 2 in pairs, 1/4 where an operand is fp32."""
        return (2 if self.paired else 1) / self.passes


def _go_together(stationary, moving):
    both = {stationary, moving}
    if "int8" in both:
        return both == {"int8"}
    if "fp32" in both:
        return both <= {"fp32", "tf32"}
    return both != {"fp8_e4m3", "fp8_e4m3fn"}


def check_matmul(core, matmul):
    """Refuse, with :class:`SpecError`, a product that ``core`` (a ``CoreConfig``) does not compute (rules N1, N5, N13)."""
    formats = core.pair_formats if matmul.paired else core.formats
    if not formats:
        raise SpecError("paired", matmul.paired, "false where no format is configured for pairs")
    if matmul.stationary not in formats:
        raise SpecError("stationary", matmul.stationary, choices(formats) + " in pairs" * matmul.paired)
    partners = [name for name in formats if _go_together(matmul.stationary, name)]
    if matmul.moving not in partners:
        raise SpecError("moving", matmul.moving, f"{choices(partners)} with {matmul.stationary}"
                        + " in pairs" * matmul.paired)
    if matmul.is_integer and not matmul.paired:
        raise SpecError("paired", matmul.paired, "true with int8")


def check_transpose(core, format_name):
    """Refuse, with :class:`SpecError`, a transpose that ``core`` does not do (rule N14)."""
    if not core.transpose:
        raise SpecError("transpose", True, "false where transpose is not configured")
    if format_name not in core.formats:
        raise SpecError("stationary", format_name, choices(core.formats))


def contraction_tiles(rows, contraction, paired=False):
    """The pieces of a long contraction in the order they are summed (rule N2).

    Returns
    -------
    list of slice
        Ascending, each ``rows`` elements (``2 * rows`` in pairs), the remainder last.
    """
    step = 2 * rows if paired else rows
    return [slice(start, min(start + step, contraction)) for start in range(0, contraction, step)]


class Opcode(enum.IntEnum):
    """What a command asks of the tensor engine. Results are as if commands were executed one after another.

    A command that asks for nothing does nothing and takes no operands: a LOAD without columns or contraction, a
    MULTIPLY or READ with a count of zero, a MULTIPLY before the first LOAD since reset, an opcode that is not named
    here.
    """

    LOAD = 0
    """Take the next ``stationary`` as the weights of the MULTIPLYs that follow. A LOAD that no MULTIPLY follows has no
    effect but to take its operands."""
    MULTIPLY = 1
    """Stream ``count`` columns of ``moving`` through the weights, into ``count`` words from ``offset`` of ``bank`` in
    the first ``columns`` partitions; other words stay as they are."""
    READ = 2
    """Send ``count`` words from ``offset`` of ``bank``, of all partitions, to ``results``."""


def command_fields(core):
    """Fields of a tensor-engine command as (name, width) pairs, lowest bits first; the encoding is our own.

    =============== ================ ===========================================================================
    field           used by          meaning
    =============== ================ ===========================================================================
    opcode          all              an :class:`Opcode`
    format          LOAD, MULTIPLY   code of the operand's format
    first_row       LOAD             row of the first element of the contraction
    contraction     LOAD             K, elements of the contraction; in pairs up to twice the rows
    columns         LOAD             M, columns of ``stationary``
    paired          LOAD             two elements a row (N5, N13)
    transpose       LOAD             the multiplications to come are N14's; they take no ``moving``: their n-th
                                     word holds the bits of the n-th row from ``first_row``
    count           MULTIPLY, READ   N, columns of ``moving`` or words to read
    bank, offset    MULTIPLY, READ   first word of the result in every partition
    accumulate      MULTIPLY         add to what the bank holds (N3) instead of overwriting it; never with transpose
    count_special   MULTIPLY         count results, after accumulation, that are NaN or infinite
    =============== ================ ===========================================================================

    Operands enter as slots of ``core.slot_bits``: an element in the low bits, in pairs element p in the low byte of row
    ``first_row + p`` and element p + ceil(K/2) in the byte above; bits beyond an element are ignored. A word of
    ``stationary`` holds, row after row from row 0 in the lowest bits, the slots of columns 2i and 2i + 1; a word of
    ``moving`` holds one column. The hardware takes any ``first_row``; public machines start at multiples of
    ``core.quadrant``. A MULTIPLY of transposed weights starts from ``first_row`` each time and counts at most to K.
    """
    return (
        ("opcode", 2), ("format", 4),
        ("first_row", max(1, (core.rows - 1).bit_length())), ("contraction", (2 * core.rows).bit_length()),
        ("columns", core.cols.bit_length()), ("paired", 1), ("transpose", 1),
        ("count", core.psum_bank_words.bit_length()),
        ("bank", (core.psum_banks - 1).bit_length()), ("offset", (core.psum_bank_words - 1).bit_length()),
        ("accumulate", 1), ("count_special", 1),
    )


def _check_extent(field, values, low, high):
    if not low <= values.get(field, 0) <= high:
        raise SpecError(field, values[field], f"{low} to {high} here")


def encode_command(core, **values):
    """A command as an integer; fields not named are zero.

    Raises
    ------
    SpecError
        A field that does not exist, or a value that reaches beyond the array or a bank.
    """
    fields = dict(command_fields(core))
    for name in values:
        if name not in fields:
            raise SpecError("command field", name, choices(fields))
    _check_extent("columns", values, 0, core.cols)
    per_row = 2 if values.get("paired") else 1
    _check_extent("contraction", values, 0, per_row * (core.rows - values.get("first_row", 0)))
    _check_extent("count", values, 0, core.psum_bank_words - values.get("offset", 0))
    word, position = 0, 0
    for name, width in fields.items():
        value = int(values.get(name, 0))
        if not 0 <= value < 1 << width:
            raise SpecError(name, value, f"0 to {(1 << width) - 1}")
        word |= value << position
        position += width
    return word
