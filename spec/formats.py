"""Number formats: layout, special values and the facts derived from them."""

from dataclasses import dataclass

from .errors import SpecError, choices

__all__ = ["FloatFormat", "IntFormat", "FORMATS", "FLOAT_FORMATS", "INT_FORMATS", "TENSOR_FORMATS",
           "PAIR_FORMATS", "FORMAT_CODES", "find_format"]


@dataclass(frozen=True)
class FloatFormat:
    """A binary floating-point format.

    Parameters
    ----------
    name : str
        Name as users write it.
    exponent_bits, fraction_bits : int
        Widths of the two fields; the sign is one more bit, at the top.
    bias : int
        Exponent bias.
    nan : int
        The bit pattern of every NaN result (rule N0).
    has_infinity : bool
        False for OCP e4m3fn, whose only special pattern is NaN.
    storage_bits : int or None
        Width in memory where it differs from the sum of the fields (tf32: 32, its fraction at the top).
    """

    name: str
    exponent_bits: int
    fraction_bits: int
    bias: int
    nan: int
    has_infinity: bool = True
    storage_bits: int | None = None

    @property
    def width(self):
        """Bits of one element in memory."""
        return self.storage_bits or 1 + self.exponent_bits + self.fraction_bits

    @property
    def padding(self):
        """Bits below the fraction that memory holds and arithmetic rounds away (tf32: 13)."""
        return self.width - 1 - self.exponent_bits - self.fraction_bits

    @property
    def min_exponent(self):
        """Exponent of the smallest normal number."""
        return 1 - self.bias

    @property
    def min_normalised_exponent(self):
        """Exponent of the smallest subnormal number's leading bit."""
        return 1 - self.bias - self.fraction_bits

    @property
    def max_exponent(self):
        """Exponent of the largest finite number."""
        return (1 << self.exponent_bits) - 1 - self.bias - (1 if self.has_infinity else 0)

    @property
    def infinity(self):
        """Bit pattern of +infinity; None without one."""
        if not self.has_infinity:
            return None
        return ((1 << self.exponent_bits) - 1) << (self.fraction_bits + self.padding)

    @property
    def max_finite(self):
        """Bit pattern of the largest finite number."""
        if self.has_infinity:
            return self.infinity - (1 << self.padding)
        return self.nan - 1


@dataclass(frozen=True)
class IntFormat:
    """A two's complement or plain binary integer format of ``width`` bits."""

    name: str
    width: int
    signed: bool

    @property
    def min(self):
        """Smallest value."""
        return -(1 << (self.width - 1)) if self.signed else 0

    @property
    def max(self):
        """Largest value."""
        return (1 << (self.width - self.signed)) - 1


FLOAT_FORMATS = {f.name: f for f in (
    FloatFormat("fp32", 8, 23, 127, 0x7FC00000),
    FloatFormat("tf32", 8, 10, 127, 0x7FC00000, storage_bits=32),
    FloatFormat("bf16", 8, 7, 127, 0x7FC0),
    FloatFormat("fp16", 5, 10, 15, 0x7E00),
    FloatFormat("fp8_e5m2", 5, 2, 15, 0x7E),
    FloatFormat("fp8_e4m3", 4, 3, 7, 0x7C),
    FloatFormat("fp8_e3m4", 3, 4, 3, 0x78),
    FloatFormat("fp8_e4m3fn", 4, 3, 7, 0x7F, has_infinity=False),
)}
INT_FORMATS = {f.name: f for f in (
    IntFormat("int8", 8, True), IntFormat("uint8", 8, False), IntFormat("int16", 16, True),
    IntFormat("uint16", 16, False), IntFormat("int32", 32, True), IntFormat("uint32", 32, False),
)}
FORMATS = FLOAT_FORMATS | INT_FORMATS

TENSOR_FORMATS = (*FLOAT_FORMATS, "int8")
"""Formats that the tensor engine can be configured to multiply."""

PAIR_FORMATS = ("fp8_e5m2", "fp8_e4m3", "fp8_e4m3fn", "int8")
"""Formats that can go two to a row (rules N5 and N13)."""

FORMAT_CODES = {name: code for code, name in enumerate(FORMATS)}
"""The number that stands for a format in commands; our own choice."""


def find_format(name):
    """The format called ``name``; raises :class:`SpecError` for an unknown one."""
    if name not in FORMATS:
        raise SpecError("format", name, choices(FORMATS))
    return FORMATS[name]
