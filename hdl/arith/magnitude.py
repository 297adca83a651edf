"""Between an exact sum and its rounding: the magnitude, and where it begins."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .layouts import connect_fields, fields_port, measured_fields, unrounded_fields
from .leading_zeros import leading_zeros

__all__ = ["Magnitude"]


class Magnitude(wiring.Component):
    """``o = |i|`` and how far it is to be shifted up; combinational.

    Parameters
    ----------
    window : int
        Width of the sum's window.

    Members
    -------
    i : In(unrounded_fields)
    o : Out(measured_fields)
        For :class:`~hdl.arith.shift_round.ShiftRound`.
    """

    def __init__(self, window):
        self._window = window
        super().__init__({"i": In(fields_port(unrounded_fields(window))),
                          "o": Out(fields_port(measured_fields(window)))})

    def elaborate(self, platform):
        m = Module()
        i, o, window = self.i, self.o, self._window
        stop = Signal(window)
        m.d.comb += [
            o.magnitude.eq(i.total ^ i.negative.replicate(window)),
            # The leading one belongs two places above the exponent's own, and may not go further up than exponent 1
            # allows: a one planted there ends the count, and so does one below the window.
            stop.eq(Const(1 << (window - 2), window) >> i.exponent),
            o.zeros.eq(leading_zeros(m, Cat(1, o.magnitude | stop), "zeros")),
            # A difference that is not negative lacks one unit, for which the ones below stand.
            o.ones_below.eq(i.subtracted & ~i.negative),
            o.sign.eq(Mux(i.infinity, i.sign, i.sign ^ i.negative)),
        ]
        m.d.comb += connect_fields(("sticky", "exponent", "subtracted", "infinity", "nan"), o, i)
        return m
