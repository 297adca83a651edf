"""The first half of an exact addition: the smaller term is shifted to the larger, bits cut off below are remembered."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .layouts import aligned_fields, fields_port, product_layout

__all__ = ["Align", "window_bits"]

INTEGER_BITS = 3


def window_bits(x_fraction, y_fraction):
    """Bits of the addition's window.

    Bits may be cut off only at shifts of three and more. There the sum keeps at least half its larger term, so that a
    result of 24 bits needs 25 fraction bits and a sticky bit; at shifts of up to two nothing may be lost.
    """
    return INTEGER_BITS + max(25, x_fraction + 2, y_fraction + 2)


class Align(wiring.Component):
    """Two terms at one exponent, exact but for a sticky bit; combinational.

    Parameters
    ----------
    x_fraction, y_fraction : int
        Fraction bits of the two terms.

    Attributes
    ----------
    window : int
        Width of the addition to come, three integer bits included.

    Members
    -------
    x, y : In(product_layout)
        The terms.
    o : Out(aligned_fields)
        For :class:`~hdl.arith.add_aligned.AddAligned`.
    """

    def __init__(self, x_fraction, y_fraction):
        self.window = window_bits(x_fraction, y_fraction)
        self._x_fraction, self._y_fraction = x_fraction, y_fraction
        super().__init__({
            "x": In(product_layout(x_fraction)),
            "y": In(product_layout(y_fraction)),
            "o": Out(fields_port(aligned_fields(self.window))),
        })

    def elaborate(self, platform):
        m = Module()
        x, y, o, window = self.x, self.y, self.o, self.window

        difference = Signal.like(x.exponent - y.exponent)
        y_leads = Signal()
        m.d.comb += [difference.eq(x.exponent - y.exponent), y_leads.eq(difference[-1])]

        def widened(term, fraction):
            return Cat(Const(0, window - INTEGER_BITS - fraction), term.significand, Const(0, 1))

        # Where y leads, the complement of the difference is the distance less one: x starts one place to the right.
        x_wide, y_wide = widened(x, self._x_fraction), widened(y, self._y_fraction)
        trailing, distance = Signal(window), Signal(len(difference) - 1)
        m.d.comb += [
            o.leading.eq(Mux(y_leads, y_wide, x_wide)), trailing.eq(Mux(y_leads, x_wide[1:], y_wide)),
            distance.eq(difference[:-1] ^ y_leads.replicate(len(distance))),
        ]

        shift_bits = (window - 1).bit_length()
        shift, far = Signal(shift_bits), Signal()
        m.d.comb += [shift.eq(distance[:shift_bits]), far.eq(distance[shift_bits:] != 0)]
        cut_off = Signal(window)
        m.d.comb += [
            o.trailing.eq(Mux(far, 0, trailing >> shift)),
            cut_off.eq((Const(1, 1) << shift) - 1),
            o.sticky.eq(Mux(far, trailing, trailing & cut_off) != 0),
            o.exponent.eq(Mux(y_leads, y.exponent, x.exponent)),
            o.subtracted.eq(x.sign ^ y.sign),
            o.infinity.eq(x.infinity | y.infinity),
            o.nan.eq(x.nan | y.nan | (x.infinity & y.infinity & o.subtracted)),
            o.sign.eq(Mux(o.infinity, Mux(x.infinity, x.sign, y.sign), Mux(y_leads, y.sign, x.sign))),
        ]
        return m
