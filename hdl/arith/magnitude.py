"""Between an exact sum and its rounding: the magnitude, and where it begins."""

from amaranth import Cat, Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .layouts import measured_layout, unrounded_layout
from .leading_zeros import leading_zeros

__all__ = ["Magnitude"]


class Magnitude(wiring.Component):
    """``o = |i|`` and its leading zeros; combinational.

    Parameters
    ----------
    window : int
        Width of the sum's window.

    Members
    -------
    i : In(unrounded_layout)
    o : Out(measured_layout)
        For :class:`~hdl.arith.shift_round.ShiftRound`.
    """

    def __init__(self, window):
        self._window = window
        super().__init__({"i": In(unrounded_layout(window)), "o": Out(measured_layout(window))})

    def elaborate(self, platform):
        m = Module()
        i, o = self.i, self.o
        m.d.comb += [
            o.magnitude.eq(i.total ^ i.negative.replicate(self._window)),
            # A one below the window ends the count.
            o.zeros.eq(leading_zeros(m, Cat(1, o.magnitude), "zeros")),
            # A difference that is not negative lacks one unit, for which the ones below stand.
            o.ones_below.eq(i.subtracted & ~i.negative),
            o.sign.eq(Mux(i.infinity, i.sign, i.sign ^ i.negative)),
        ]
        m.d.comb += [o[name].eq(i[name]) for name in ("sticky", "exponent", "subtracted", "infinity", "nan")]
        return m
