"""From a format's bits to the normalised operand form, with subnormal numbers normalised."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from spec.formats import FLOAT_FORMATS, FORMAT_CODES

from .checks import checked_formats
from .layouts import OperandFormat
from .leading_zeros import leading_zeros

__all__ = ["Recode"]


class Recode(wiring.Component):
    """Recode an element of any of several formats, chosen at run time; combinational.

    tf32 is rounded to its 10 fraction bits on the way (rules N1, N7).

    Parameters
    ----------
    formats : collection of str
        Floating-point formats that may be asked for.
    operand : OperandFormat
        The form to produce; holds every value of ``formats``.

    Members
    -------
    bits : In(widest format)
        The element in the low bits.
    format : In(4)
        A code of :data:`spec.formats.FORMAT_CODES`; one outside ``formats`` gives an arbitrary operand.
    o : Out(operand.layout)

    Raises
    ------
    TypeError, ValueError
        Not floating-point formats, or an operand that does not hold them.
    """

    def __init__(self, formats, operand):
        formats = checked_formats("Formats", formats, tuple(FLOAT_FORMATS))
        needed = OperandFormat(formats)
        if needed.exponent_bits > operand.exponent_bits or needed.fraction_bits > operand.fraction_bits:
            raise ValueError(f"Operand must have at least {needed.exponent_bits} exponent and {needed.fraction_bits} "
                             f"fraction bits, not {operand.exponent_bits} and {operand.fraction_bits}")
        self._formats = [FLOAT_FORMATS[name] for name in formats]
        self._operand = operand
        super().__init__({
            "bits": In(max(f.width for f in self._formats)),
            "format": In(4),
            "o": Out(operand.layout),
        })

    def elaborate(self, platform):
        m = Module()
        operand = self._operand
        fraction_bits = operand.fraction_bits

        # Every format is first spread over the same fields: sign, its own biased exponent, a fraction at the top.
        sign, exponent, fraction = Signal(), Signal(8), Signal(fraction_bits)
        is_nan, is_infinity = Signal(), Signal()
        rebias = Signal(range(operand.bias + 2))
        with m.Switch(self.format):
            for f in self._formats:
                with m.Case(FORMAT_CODES[f.name]):
                    m.d.comb += self._fields(f, sign, exponent, fraction, is_nan, is_infinity)
                    m.d.comb += rebias.eq(operand.bias - f.bias)

        # A subnormal number is 0.fraction at exponent 1: its leading one moves to the hidden place.
        subnormal = Signal()
        zeros = Signal((fraction_bits - 1).bit_length() if fraction_bits > 1 else 1)
        m.d.comb += [subnormal.eq(exponent == 0), zeros.eq(leading_zeros(m, fraction, "zeros"))]
        normal = Signal(fraction_bits)
        m.d.comb += normal.eq(Mux(subnormal, (fraction << zeros) << 1, fraction))
        is_zero = subnormal & (fraction == 0)

        m.d.comb += [
            self.o.sign.eq(sign),
            self.o.fraction.eq(Mux(is_nan | is_infinity, 0, normal)),
            self.o.exponent.eq(Mux(is_nan, operand.nan, Mux(is_infinity, operand.infinity, Mux(
                is_zero, 0, exponent + rebias - Mux(subnormal, zeros, 0))))),
        ]
        return m

    def _fields(self, f, sign, exponent, fraction, is_nan, is_infinity):
        """Assign the fields of ``self.bits`` read as format ``f``."""
        bits = self.bits[:f.width]
        if f.padding:
            kept = bits[f.padding:]
            round_up = bits[f.padding - 1] & ((bits[:f.padding - 1] != 0) | kept[0])
            rounded = Signal(f.width - f.padding, name=f"rounded_{f.name}")
            is_special = bits[-1 - f.exponent_bits:-1].all()
            yield rounded.eq(kept + (round_up & ~is_special))
            source_nan = is_special & (bits[:-1 - f.exponent_bits] != 0)
            bits = rounded
        else:
            source_nan = None
        own_fraction = bits[:f.fraction_bits]
        own_exponent = bits[f.fraction_bits:f.fraction_bits + f.exponent_bits]
        yield sign.eq(bits[-1])
        yield exponent.eq(own_exponent)
        yield fraction.eq(Cat(Const(0, len(fraction) - f.fraction_bits), own_fraction))
        if not f.has_infinity:
            yield is_nan.eq(bits[:-1].all())
        else:
            special = own_exponent.all()
            nan = special & (own_fraction != 0) if source_nan is None else source_nan
            yield is_nan.eq(nan)
            yield is_infinity.eq(special & ~nan)
