"""From an integer's bits to the normalised operand form."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from spec.formats import FORMAT_CODES, INT_FORMATS

from .checks import checked_formats
from .leading_zeros import leading_zeros

__all__ = ["RecodeInteger"]


class RecodeInteger(wiring.Component):
    """Recode an integer of any of several formats, chosen at run time, rounded to nearest even where it is too long for
    the operand's fraction (rule N7); combinational.

    Parameters
    ----------
    formats : collection of str
        Integer formats that may be asked for.
    operand : OperandFormat
        The form to produce: of binary32's range, so that the rounding is binary32's.

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
        Not integer formats, or an operand of less than binary32's range.
    """

    def __init__(self, formats, operand):
        self._formats = [INT_FORMATS[name] for name in checked_formats("Formats", formats, tuple(INT_FORMATS))]
        if operand.exponent_bits != 9:
            raise ValueError(f"Operand must have 9 exponent bits, not {operand.exponent_bits}")
        self._operand = operand
        super().__init__({
            "bits": In(max(f.width for f in self._formats)),
            "format": In(4),
            "o": Out(operand.layout),
        })

    def elaborate(self, platform):
        m = Module()
        width, fraction_bits = len(self.bits), self._operand.fraction_bits

        extended, negative = Signal(width), Signal()
        with m.Switch(self.format):
            for f in self._formats:
                with m.Case(FORMAT_CODES[f.name]):
                    element = self.bits[:f.width]
                    m.d.comb += extended.eq(element.as_signed() if f.signed else element)
                    m.d.comb += negative.eq(element[-1] & f.signed)
        magnitude = Signal(width)
        m.d.comb += magnitude.eq(Mux(negative, -extended, extended))

        zeros = Signal((width - 1).bit_length())
        m.d.comb += zeros.eq(leading_zeros(m, magnitude, "zeros"))
        normal = Signal(width)
        m.d.comb += normal.eq(magnitude << zeros)

        # With a hidden bit and a place for the carry out of rounding, which leaves a fraction of zero.
        rounded = Signal(fraction_bits + 2)
        dropped = width - 1 - fraction_bits
        if dropped > 0:
            kept, half, rest = normal[dropped:], normal[dropped - 1], normal[:dropped - 1] != 0
            m.d.comb += rounded.eq(kept + (half & (rest | kept[0])))
        else:
            m.d.comb += rounded.eq(Cat(Const(0, -dropped), normal))
        exponent = self._operand.bias + width - 1 - zeros + rounded[-1]
        m.d.comb += [
            self.o.sign.eq(negative),
            self.o.fraction.eq(rounded[:fraction_bits]),
            self.o.exponent.eq(Mux(magnitude == 0, 0, exponent)),
        ]
        return m
