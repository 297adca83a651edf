"""The second half of an exact addition: two aligned terms make a sum or a difference."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .layouts import aligned_fields, connect_fields, fields_port, unrounded_fields

__all__ = ["AddAligned"]


class AddAligned(wiring.Component):
    """``o = leading + trailing``, or their difference; combinational.

    Parameters
    ----------
    window : int
        Width of the addition.
    is_fast : bool
        Whether the adder is larger and faster: carry select.

    Members
    -------
    i : In(aligned_fields)
    o : Out(unrounded_fields)
        For :class:`~hdl.arith.normalize_round.NormalizeRound`.
    """

    def __init__(self, window, is_fast=False):
        self._window, self._is_fast = window, is_fast
        super().__init__({"i": In(fields_port(aligned_fields(window))), "o": Out(fields_port(unrounded_fields(window)))})

    def elaborate(self, platform):
        m = Module()
        i, o, window = self.i, self.o, self._window
        trailing = Signal(window + 1)
        m.d.comb += trailing.eq(Cat(i.trailing, Const(0, 1)) ^ i.subtracted.replicate(window + 1))

        total = Signal(window + 1)
        m.d.comb += [
            total.eq(self._carry_select(m, trailing) if self._is_fast else i.leading + trailing),
            o.total.eq(total[:window]), o.negative.eq(total[window]),
        ]
        m.d.comb += connect_fields(("sticky", "exponent", "sign", "subtracted", "infinity", "nan"), o, i)
        return m

    def _carry_select(self, m, trailing):
        """The sum, its upper part added with and without a carry from the lower one, which is a little longer."""
        leading, split = self.i.leading, self._window // 2 + 2
        lower = Signal(split + 1)
        upper, upper_carried = Signal(self._window + 1 - split), Signal(self._window + 1 - split)
        m.d.comb += [
            lower.eq(leading[:split] + trailing[:split]),
            upper.eq(leading[split:] + trailing[split:]),
            upper_carried.eq(leading[split:] + trailing[split:] + 1),
        ]
        return Cat(lower[:split], Mux(lower[split], upper_carried, upper))
