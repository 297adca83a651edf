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
        m.d.comb += magnitude.eq(i.total ^ i.negative.replicate(window))
        # A difference that is not negative lacks one unit at the bottom: ones without end below it stand for that unit.
        below_window = Signal()
        m.d.comb += below_window.eq(i.subtracted & ~i.negative)

        # The leading one belongs two places above the exponent's own, and may not go further up than exponent 1 allows.
        # A one below the window stops the count.
        count = Signal(window.bit_length())
        subnormal, zeros = Signal(), Signal.like(count)
        m.d.comb += [
            count.eq(leading_zeros(m, Cat(1, magnitude), "count")),
            subnormal.eq(i.exponent + 1 < count),
            zeros.eq(Mux(subnormal, i.exponent + 1, count)),
        ]
        normal = Signal(window)
        m.d.comb += normal.eq((Cat(below_window.replicate(window), magnitude) << zeros)[window:2 * window])

        significand, half, rest = normal[-24:], normal[-25], normal[:-25]
        up, lacks_unit = Signal(), Signal()
        m.d.comb += [
            lacks_unit.eq(below_window & ~i.sticky),
            up.eq(Mux(lacks_unit, half | (rest.all() & significand[0]),
                      half & ((rest != 0) | i.sticky | significand[0]))),
        ]
        exponent, rounded, is_zero = Signal(10), Signal(25), Signal()
        m.d.comb += [
            is_zero.eq((magnitude == 0) & ~below_window),
            # The two early terms first: the count comes late.
            exponent.eq(Mux(subnormal | is_zero, 1, (i.exponent + 3) + Cat(~count, Const(-1, 10 - len(count))))),
            rounded.eq(significand + up),
        ]
        carry = rounded[24]
        m.d.comb += [
            o.nan.eq(i.nan),
            o.infinity.eq(i.infinity | Mux(carry, exponent >= 254, exponent >= 255)),
            o.hidden.eq(carry | rounded[23]),
            o.exponent.eq(Mux(carry, exponent + 1, exponent)),
            o.fraction.eq(rounded[:23]),
            o.sign.eq(Mux(i.infinity, i.sign, Mux(is_zero & ~i.sticky, i.sign & ~i.subtracted,
                                                  i.sign ^ i.negative))),
        ]
        return m
