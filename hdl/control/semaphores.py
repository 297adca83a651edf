"""The semaphores of a core: the only order between instruction streams."""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from spec.isa import SEMAPHORES, UPDATES

from .layouts import update_layout
from .register_file import RegisterFile

__all__ = ["Semaphores"]

_VALUE_BITS = 16


class Semaphores(wiring.Component):
    """256 counters of 16 bits that wrap, zero after reset, with a port for each of ``ports`` users.

    Latency: ``value`` belongs to ``semaphore`` in the same cycle; an accepted update is seen in the next.
    Throughput: every port reads each cycle; one update a cycle in all, ports in turn, so that each waits for at most all
    others.

    Parameters
    ----------
    ports : int

    Members
    -------
    read : ports x {semaphore : In(8), value : Out(16)}
    update : ports x In(stream of update_layout)
    """

    def __init__(self, ports):
        if ports < 1:
            raise ValueError(f"Ports must be at least 1, not {ports}")
        self._ports = ports
        read = wiring.Signature({"semaphore": Out(8), "value": In(_VALUE_BITS)})
        super().__init__({"read": In(read).array(ports), "update": In(stream.Signature(update_layout)).array(ports)})

    @property
    def module_name(self):
        return f"onc_semaphores_{self._ports}"

    def elaborate(self, platform):
        m = Module()
        m.submodules.counts = counts = RegisterFile(_VALUE_BITS, SEMAPHORES, self._ports + 1)
        for user, count in zip(self.read, counts.read):
            m.d.comb += [count.address.eq(user.semaphore), user.value.eq(count.data)]

        turn = Signal(range(self._ports))
        chosen = Signal(update_layout)
        valid = Signal()
        for first in range(self._ports):
            with m.If(turn == first):
                # The last assignment wins: whoever's turn it is comes last.
                for index in reversed([(first + offset) % self._ports for offset in range(self._ports)]):
                    with m.If(self.update[index].valid):
                        m.d.comb += [chosen.eq(self.update[index].payload), valid.eq(1)]
                        m.d.comb += [port.ready.eq(0) for port in self.update]
                        m.d.comb += self.update[index].ready.eq(1)
        old, new = counts.read[-1].data, Signal(_VALUE_BITS)
        with m.Switch(chosen.kind):
            with m.Case(UPDATES.index("=")):
                m.d.comb += new.eq(chosen.value)
            with m.Case(UPDATES.index("+=")):
                m.d.comb += new.eq(old + chosen.value)
            with m.Case(UPDATES.index("-=")):
                m.d.comb += new.eq(old - chosen.value)
        m.d.comb += [counts.read[-1].address.eq(chosen.semaphore), counts.write_address.eq(chosen.semaphore),
                     counts.write_data.eq(new), counts.write_enable.eq(valid)]
        with m.If(valid):
            m.d.sync += turn.eq(Mux(turn == self._ports - 1, 0, turn + 1))
        return m
