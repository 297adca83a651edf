"""The exact product of two normalised operands."""

from amaranth import Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .layouts import product_layout

__all__ = ["ExactProduct"]


class ExactProduct(wiring.Component):
    """``o = a * b`` without rounding (the first half of rule N1); combinational.

    Parameters
    ----------
    a_format, b_format : OperandFormat
        Forms of the operands; equal exponent widths.

    Members
    -------
    a, b : In(OperandFormat.layout)
    o : Out(product_layout)
        Its fraction is as long as both operands' fractions together.
    """

    def __init__(self, a_format, b_format):
        if a_format.exponent_bits != b_format.exponent_bits:
            raise ValueError(f"Exponents must be equally wide, not {a_format.exponent_bits} and "
                             f"{b_format.exponent_bits} bits")
        self._format = a_format
        super().__init__({
            "a": In(a_format.layout),
            "b": In(b_format.layout),
            "o": Out(product_layout(a_format.fraction_bits + b_format.fraction_bits)),
        })

    def elaborate(self, platform):
        m = Module()
        a, b, o = self.a, self.b, self.o
        is_zero, is_infinity, is_nan = self._format.is_zero, self._format.is_infinity, self._format.is_nan
        zero = is_zero(a) | is_zero(b)
        full = (a.fraction | (1 << len(a.fraction))) * (b.fraction | (1 << len(b.fraction)))
        m.d.comb += [
            o.sign.eq(a.sign ^ b.sign),
            o.significand.eq(Mux(zero, 0, full)),
            o.infinity.eq(is_infinity(a) | is_infinity(b)),
            o.nan.eq(is_nan(a) | is_nan(b) | (is_zero(a) & is_infinity(b)) | (is_infinity(a) & is_zero(b))),
        ]
        exponent = a.exponent + b.exponent - (2 * self._format.bias - 127)
        if self._format.exponent_bits == 9:
            # The code of zero is 0: whatever it is added to, the sum is below every exponent of a partial sum.
            m.d.comb += o.exponent.eq(exponent)
        else:
            m.d.comb += o.exponent.eq(Mux(zero, 0, exponent))
        return m
