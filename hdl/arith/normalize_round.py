"""From an exact sum to binary32: normalise, round to nearest even, underflow gradually, overflow to infinity."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .layouts import partial_sum_layout, unrounded_layout
from .leading_zeros import leading_zeros

__all__ = ["NormalizeRound"]


class NormalizeRound(wiring.Component):
    """Round an exact sum to binary32 (rule N1); combinational.

    Parameters
    ----------
    window : int
        Width of the sum's window, three integer bits included; at least 28.

    Members
    -------
    i : In(unrounded_layout)
        The exact sum, its exponent not negative.
    o : Out(partial_sum_layout)
        The rounded sum, unpacked.
    """

    def __init__(self, window):
        if window < 28:
            raise ValueError(f"Window must be at least 28 bits, not {window}")
        self.window = window
        super().__init__({"i": In(unrounded_layout(window)), "o": Out(partial_sum_layout)})

    def elaborate(self, platform):
        m = Module()
        i, o, window = self.i, self.o, self.window

        magnitude = Signal(window)
        m.d.comb += magnitude.eq(Mux(i.negative, ~i.total + ~i.sticky, i.total))

        # The leading one belongs two places above the exponent's own, and may not go further down than exponent 1
        # allows: a one planted at that place stops the count.
        stop, searched = Signal(window), Signal(window)
        m.d.comb += [stop.eq(Const(1 << (window - 2), window) >> i.exponent), searched.eq(magnitude | stop)]
        zeros = Signal((window - 1).bit_length())
        m.d.comb += zeros.eq(leading_zeros(m, searched, "zeros"))
        normal = Signal(window)
        m.d.comb += normal.eq(magnitude << zeros)

        significand, below = normal[-24:], normal[:-24]
        half, rest = below[-1], (below[:-1] != 0) | i.sticky
        # The hidden bit adds one to the exponent field, and so does a carry out of rounding. Without a hidden bit the
        # number is subnormal or zero and the field starts from nothing.
        field = Signal(10)
        m.d.comb += field.eq(Mux(significand[-1], i.exponent + 1 - zeros, 0))
        packed = Signal(33)
        m.d.comb += packed.eq(Cat(Const(0, 23), field) + significand + (half & (rest | significand[0])))
        infinite = Signal()
        m.d.comb += infinite.eq(i.infinity | (packed[23:] >= 255))
        is_zero = (magnitude == 0) & ~i.sticky
        m.d.comb += [
            o.nan.eq(i.nan),
            o.hidden.eq(packed[23:] != 0),
            o.exponent.eq(Mux(infinite, 255, packed[23:31] | ~o.hidden)),
            o.fraction.eq(Mux(infinite, 0, packed[:23])),
            o.sign.eq(Mux(i.infinity, i.sign, Mux(is_zero, i.sign & ~i.subtracted,
                                                  i.sign ^ i.negative))),
        ]
        return m
