"""The forms in which numbers travel between arithmetic blocks."""

from copy import copy

from amaranth import Cat, Const, Mux, signed, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out

from spec.formats import FLOAT_FORMATS

from .checks import checked_formats

__all__ = ["OperandFormat", "aligned_fields", "measured_fields", "partial_sum_layout", "product_layout",
           "unrounded_fields", "unrounded_layout", "EXPONENT_BITS", "SUM_FRACTION_BITS", "connect_fields", "connect_term",
           "fields_port", "pack", "unpack"]

SUM_FRACTION_BITS = 23
"""Fraction bits of a partial sum, which is binary32."""

EXPONENT_BITS = 10
"""Bits of a product's exponent: signed, biased as in binary32, so that -171 to 381 fit."""


class OperandFormat:
    """A normalised form that holds every value of several floating-point formats exactly.

    Subnormal numbers are normalised on entry, once at the array's edge, so that no multiplier needs to. The exponent's
    top bits tell the class, as in the recoded formats of J. Hauser's HardFloat: ``000`` zero (all bits zero), ``110``
    infinity, ``111`` NaN; anything else is a number ``1.fraction * 2**(exponent - bias)``.

    Parameters
    ----------
    formats : iterable of str
        Names of floating-point formats.

    Attributes
    ----------
    exponent_bits, fraction_bits, bias : int
        6 exponent bits where every value lies within 2**-24 to 2**16 (fp16 and fp8), otherwise 9.

    Raises
    ------
    TypeError, ValueError
        Not floating-point formats, or none.
    """

    def __init__(self, formats):
        formats = [FLOAT_FORMATS[name] for name in checked_formats("Formats", formats, tuple(FLOAT_FORMATS))]
        small = all(f.min_normalised_exponent >= -24 and f.max_exponent <= 15 for f in formats)
        self.exponent_bits = 6 if small else 9
        self.fraction_bits = max(f.fraction_bits for f in formats)
        self.bias = 1 << (self.exponent_bits - 1)

    def shortened(self, fraction_bits):
        """The same form with fewer fraction bits, for values that are known to need no more."""
        short = copy(self)
        short.fraction_bits = fraction_bits
        return short

    @property
    def width(self):
        """Bits of one operand."""
        return 1 + self.exponent_bits + self.fraction_bits

    @property
    def layout(self):
        """The operand as a structure, sign at the top."""
        return data.StructLayout({"fraction": self.fraction_bits, "exponent": self.exponent_bits, "sign": 1})

    @property
    def infinity(self):
        """Exponent code of an infinity."""
        return 0b110 << (self.exponent_bits - 3)

    @property
    def nan(self):
        """Exponent code of a NaN."""
        return 0b111 << (self.exponent_bits - 3)

    @staticmethod
    def is_zero(operand):
        return operand.exponent[-3:] == 0

    @staticmethod
    def is_infinity(operand):
        return operand.exponent[-3:] == 0b110

    @staticmethod
    def is_nan(operand):
        return operand.exponent[-3:] == 0b111


def product_layout(fraction_bits):
    """An exact term of a sum: ``significand`` has two integer bits, then ``fraction_bits``; zero has exponent <= 1.

    A product other than zero is at least 1.0 before its exponent. With ``nan`` or ``infinity`` the rest, but the sign of
    an infinity, is arbitrary.
    """
    return data.StructLayout({"significand": unsigned(2 + fraction_bits), "exponent": signed(EXPONENT_BITS), "sign": 1,
                              "infinity": 1, "nan": 1})


partial_sum_layout = data.StructLayout({"fraction": 23, "exponent": 8, "sign": 1, "hidden": 1,
                                        "infinity": 1, "nan": 1})
"""A binary32 number unpacked: the hidden bit apart, exponent 1 for subnormal numbers, 0 or 1 for zero. With ``nan`` or
``infinity`` the rest, but the sign of an infinity, is arbitrary. The low 32 bits also carry integers and raw patterns."""


def _sum_fields(window, **fields):
    """A sum on its way to rounding; 28 bits hold 24, the half, and three integer bits."""
    if window < 28:
        raise ValueError(f"Window must be at least 28 bits, not {window}")
    return fields | {"sticky": 1, "exponent": EXPONENT_BITS - 1, "sign": 1, "subtracted": 1, "infinity": 1, "nan": 1}


def aligned_fields(window):
    """Two terms with three integer bits and ``window - 3`` fraction bits, at the exponent of the ``leading`` one.

    ``sticky`` says that non-zero bits of ``trailing`` were cut off below, ``subtracted`` that the terms had different
    signs; ``sign`` is the leading term's, or the infinity's.
    """
    return _sum_fields(window, leading=window, trailing=window)


def unrounded_fields(window):
    """An exact sum before normalisation: three integer bits and ``window - 3`` fraction bits in two's complement.

    ``negative`` is the top bit of the two's complement number, ``sticky`` says that non-zero bits were cut off below,
    ``subtracted`` that the terms had different signs. A difference is without the +1 of its two's complement, so that
    no carry waits for ``sticky``: the true one is one unit more, or with ``sticky`` less than one unit.
    """
    return _sum_fields(window, total=window, negative=1)


def unrounded_layout(window):
    """:func:`unrounded_fields` as one structure."""
    return data.StructLayout(unrounded_fields(window))


def measured_fields(window):
    """The magnitude of an exact sum, and the number of ``zeros`` above its leading one or, if that is less, above the
    place that exponent 1 allows.

    With ``ones_below`` the magnitude goes on below the window with ones without end, up to the next whole unit; with
    ``sticky`` with bits that nobody knows, some of them set and some not. ``sign`` is the sum's, but for zero.
    """
    return _sum_fields(window, magnitude=window, zeros=range(window + 1), ones_below=1)


def fields_port(fields):
    """A port with a signal for each of ``fields``. A structure of more than 64 bits is slow in Verilator, which packs and
    unpacks it in every cycle."""
    return wiring.Signature({name: Out(shape) for name, shape in fields.items()})


def connect_fields(fields, target, source):
    """Assignments of each of ``fields`` from one port or structure to another."""
    return [getattr(target, name).eq(getattr(source, name)) for name in fields]


def connect_term(term, partial_sum):
    """Assignments that make ``term``, of any ``product_layout`` with 23 fraction bits or more, the given partial sum."""
    padding = len(term.significand) - 2 - SUM_FRACTION_BITS
    return [
        term.significand.eq(Cat(Const(0, padding), partial_sum.fraction, partial_sum.hidden)),
        term.exponent.eq(partial_sum.exponent),
        term.sign.eq(partial_sum.sign),
        term.infinity.eq(partial_sum.infinity),
        term.nan.eq(partial_sum.nan),
    ]


def unpack(partial_sum, bits):
    """Assignments that make ``partial_sum`` the binary32 pattern ``bits``."""
    return [
        partial_sum.fraction.eq(bits[:23]),
        partial_sum.hidden.eq(bits[23:31] != 0),
        partial_sum.exponent.eq(bits[23:31] | (bits[23:31] == 0)),
        partial_sum.sign.eq(bits[31]),
        partial_sum.infinity.eq((bits[23:31] == 255) & (bits[:23] == 0)),
        partial_sum.nan.eq((bits[23:31] == 255) & (bits[:23] != 0)),
    ]


def pack(partial_sum):
    """The binary32 pattern of a partial sum, NaN canonical (rule N0)."""
    number = Cat(partial_sum.fraction, Mux(partial_sum.hidden, partial_sum.exponent, 0))
    infinity = FLOAT_FORMATS["fp32"].infinity
    return Mux(partial_sum.nan, FLOAT_FORMATS["fp32"].nan,
               Cat(Mux(partial_sum.infinity, infinity, number), partial_sum.sign))
