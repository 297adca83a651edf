"""Exact addition of two terms."""

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .add_aligned import AddAligned
from .align import Align, window_bits
from .layouts import aligned_fields, connect_fields, product_layout, unrounded_fields, unrounded_layout

__all__ = ["AlignAdd"]


class AlignAdd(wiring.Component):
    """``o = x + y``, exact but for a sticky bit; combinational.

    Parameters
    ----------
    x_fraction, y_fraction : int
        Fraction bits of the two terms.

    Attributes
    ----------
    window : int
        Width of the sum, three integer bits included.

    Members
    -------
    x, y : In(product_layout)
        The terms.
    o : Out(unrounded_layout)
        The sum, for :class:`~hdl.arith.normalize_round.NormalizeRound`.
    """

    def __init__(self, x_fraction, y_fraction):
        self.window = window_bits(x_fraction, y_fraction)
        self._fractions = x_fraction, y_fraction
        super().__init__({
            "x": In(product_layout(x_fraction)),
            "y": In(product_layout(y_fraction)),
            "o": Out(unrounded_layout(self.window)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.align = align = Align(*self._fractions)
        m.submodules.add = add = AddAligned(self.window)
        m.d.comb += [align.x.eq(self.x), align.y.eq(self.y), *connect_fields(aligned_fields(self.window), add.i, align.o),
                     *connect_fields(unrounded_fields(self.window), self.o, add.o)]
        return m
