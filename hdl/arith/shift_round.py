"""From a magnitude to binary32: shift, round to nearest even, underflow gradually, overflow to infinity."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .layouts import fields_port, measured_fields, partial_sum_layout

__all__ = ["ShiftRound"]


class ShiftRound(wiring.Component):
    """A magnitude rounded to binary32 (rule N1); combinational.

    Parameters
    ----------
    window : int
        Width of the magnitude's window, three integer bits included; at least 28.

    Members
    -------
    i : In(measured_fields)
        Its exponent not negative.
    o : Out(partial_sum_layout)
        The rounded sum, unpacked.
    """

    def __init__(self, window):
        self._window = window
        super().__init__({"i": In(fields_port(measured_fields(window))), "o": Out(partial_sum_layout)})

    def elaborate(self, platform):
        m = Module()
        i, o, window = self.i, self.o, self._window

        # To the right by the complement instead of to the left by the count: the shifter is no wider than what it shifts.
        most = (1 << len(i.zeros)) - 1
        normal = Signal(window)
        m.d.comb += normal.eq(Cat(i.ones_below.replicate(most), i.magnitude) >> ~i.zeros)

        significand, half, rest = normal[-24:], normal[-25], normal[:-25]
        up, rounded = Signal(), Signal(25)
        m.d.comb += [
            # Ones without end lack nothing to the next unit: all ones below a zero half are a tie.
            up.eq(Mux(i.ones_below & ~i.sticky, half | (rest.all() & significand[0]),
                      half & ((rest != 0) | i.sticky | significand[0]))),
            rounded.eq(significand + up),
        ]
        exponent, is_zero, carry = Signal(10), Signal(), rounded[24]
        m.d.comb += [
            is_zero.eq((i.magnitude == 0) & ~i.ones_below),
            # The two early terms first: the count of zeros comes late. Where exponent 1 ended the count, this is 1.
            exponent.eq(Mux(is_zero, 1, (i.exponent + 3) + Cat(~i.zeros, Const(-1, 10 - len(i.zeros))))),
            o.nan.eq(i.nan),
            o.infinity.eq(i.infinity | Mux(carry, exponent >= 254, exponent >= 255)),
            o.hidden.eq(carry | rounded[23]),
            o.exponent.eq(Mux(carry, exponent + 1, exponent)),
            o.fraction.eq(rounded[:23]),
            # An exact zero of different signs is +0.
            o.sign.eq(i.sign & ~(is_zero & ~i.sticky & i.subtracted & ~i.infinity)),
        ]
        return m
