"""The second half of an exact addition: two aligned terms make a sum or a difference."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .layouts import aligned_layout, unrounded_layout

__all__ = ["AddAligned"]


class AddAligned(wiring.Component):
    """``o = leading + trailing``, or their difference; combinational.

    Parameters
    ----------
    window : int
        Width of the addition.

    Members
    -------
    i : In(aligned_layout)
    o : Out(unrounded_layout)
        For :class:`~hdl.arith.normalize_round.NormalizeRound`.
    """

    def __init__(self, window):
        self._window = window
        super().__init__({"i": In(aligned_layout(window)), "o": Out(unrounded_layout(window))})

    def elaborate(self, platform):
        m = Module()
        i, o, window = self.i, self.o, self._window
        trailing = Signal(window + 1)
        m.d.comb += trailing.eq(Cat(i.trailing, Const(0, 1)) ^ i.subtracted.replicate(window + 1))

        # Carry select: the upper part is added with and without a carry from the lower one, which is a little longer.
        split = window // 2 + 2
        lower = Signal(split + 1)
        upper, upper_carried = Signal(window + 1 - split), Signal(window + 1 - split)
        total = Cat(lower[:split], Mux(lower[split], upper_carried, upper))
        m.d.comb += [
            lower.eq(i.leading[:split] + trailing[:split]),
            upper.eq(i.leading[split:] + trailing[split:]),
            upper_carried.eq(i.leading[split:] + trailing[split:] + 1),
            o.total.eq(total[:window]), o.negative.eq(total[window]),
        ]
        m.d.comb += [o[name].eq(i[name]) for name in ("sticky", "exponent", "sign", "subtracted", "infinity", "nan")]
        return m
