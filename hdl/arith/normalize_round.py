"""From an exact sum to binary32."""

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .layouts import connect_fields, measured_fields, partial_sum_layout, unrounded_fields, unrounded_layout
from .magnitude import Magnitude
from .shift_round import ShiftRound

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
        self._window = window
        super().__init__({"i": In(unrounded_layout(window)), "o": Out(partial_sum_layout)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.magnitude = magnitude = Magnitude(self._window)
        m.submodules.round = rounding = ShiftRound(self._window)
        m.d.comb += [*connect_fields(unrounded_fields(self._window), magnitude.i, self.i),
                     *connect_fields(measured_fields(self._window), rounding.i, magnitude.o), self.o.eq(rounding.o)]
        return m
