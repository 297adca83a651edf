"""The semaphores of a core: the only order between instruction streams."""

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from spec.isa import SEMAPHORES, UPDATES

from ..round_robin import RoundRobin
from .layouts import update_layout
from .register_file import RegisterFile

__all__ = ["Semaphores"]

_VALUE_BITS = 16


class Semaphores(wiring.Component):
    """256 counters of 16 bits that wrap, zero after reset, with a port for each of ``ports`` users, and one that only updates
    for each of ``updaters``.

    Latency: ``value`` belongs to ``semaphore`` in the same cycle; an accepted update is seen in the next.
    Throughput: every port reads each cycle; one update a cycle in all, ports in turn, so that each waits for at most all
    others.

    Parameters
    ----------
    ports, updaters : int

    Members
    -------
    read : ports x {semaphore : In(8), value : Out(16)}
    update : (ports + updaters) x In(stream of update_layout)
    """

    def __init__(self, ports, updaters=0):
        if ports < 1:
            raise ValueError(f"Ports must be at least 1, not {ports}")
        self._ports, self._updates = ports, ports + updaters
        read = wiring.Signature({"semaphore": Out(8), "value": In(_VALUE_BITS)})
        super().__init__({"read": In(read).array(ports), "update": In(stream.Signature(update_layout)).array(self._updates)})

    @property
    def module_name(self):
        return f"onc_semaphores_{self._ports}_{self._updates}"

    def elaborate(self, platform):
        m = Module()
        m.submodules.counts = counts = RegisterFile(_VALUE_BITS, SEMAPHORES, self._ports + 1)
        m.submodules.turn = turn = RoundRobin(self._updates)
        for user, count in zip(self.read, counts.read):
            m.d.comb += [count.address.eq(user.semaphore), user.value.eq(count.data)]
        chosen = Signal(update_layout)
        m.d.comb += turn.taken.eq(1)
        for index, update in enumerate(self.update):
            m.d.comb += [turn.requests[index].eq(update.valid), update.ready.eq(turn.grants[index])]
            with m.If(turn.grants[index]):
                m.d.comb += chosen.eq(update.payload)
        old, new = counts.read[-1].data, Signal(_VALUE_BITS)
        with m.Switch(chosen.kind):
            with m.Case(UPDATES.index("=")):
                m.d.comb += new.eq(chosen.value)
            with m.Case(UPDATES.index("+=")):
                m.d.comb += new.eq(old + chosen.value)
            with m.Case(UPDATES.index("-=")):
                m.d.comb += new.eq(old - chosen.value)
        m.d.comb += [counts.read[-1].address.eq(chosen.semaphore), counts.write_address.eq(chosen.semaphore),
                     counts.write_data.eq(new), counts.write_enable.eq(turn.any)]
        return m
