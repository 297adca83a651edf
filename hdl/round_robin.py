"""Whose turn it is."""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["RoundRobin"]


class RoundRobin(wiring.Component):
    """Chooses one of several who ask; whoever was served last comes last. Combinational but for the memory of that.

    Each waits for at most all others.

    Parameters
    ----------
    users : int

    Members
    -------
    requests, grants : In(users), Out(users)
        A bit for each; at most one grant.
    any : Out(1), chosen : Out
        Whether anyone asks, and the number of who is granted.
    taken : In(1)
        The grant is used in this cycle; until then it may move.
    """

    def __init__(self, users):
        if users < 1:
            raise ValueError(f"Users must be at least 1, not {users}")
        self._users = users
        super().__init__({"requests": In(users), "grants": Out(users), "any": Out(1), "chosen": Out(range(max(2, users))),
                          "taken": In(1)})

    def elaborate(self, platform):
        m = Module()
        last = Signal(range(max(2, self._users)), init=self._users - 1)
        m.d.comb += [self.any.eq(self.requests != 0), self.grants.eq(Mux(self.any, 1 << self.chosen, 0))]
        # The last assignment wins: of those above the last one the lowest, else of all the lowest.
        for above in (False, True):
            for index in reversed(range(self._users)):
                with m.If(self.requests[index] & ((index > last) if above else 1)):
                    m.d.comb += self.chosen.eq(index)
        with m.If(self.taken & self.any):
            m.d.sync += last.eq(self.chosen)
        return m
