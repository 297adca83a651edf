"""The descriptor rings of one engine: where each is, and whose turn it is."""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from spec.dma import DESCRIPTOR_BYTES, MOST_PENDING
from spec.isa import Cause
from spec.memory import ADDRESS_BITS

from ..control.layouts import CAUSE_BITS
from ..round_robin import RoundRobin

__all__ = ["Rings", "ring_signature"]

_COUNT_BITS = 16


def ring_signature():
    """A ring as the host sees it, from the engine: ``restart`` takes it back to its first descriptor, with nothing pending and
    no cause; ``doorbell`` adds ``descriptors`` to those pending."""
    return wiring.Signature({
        "base": In(ADDRESS_BITS), "size": In(_COUNT_BITS), "restart": In(1), "doorbell": In(1), "descriptors": In(_COUNT_BITS),
        "pending": Out(_COUNT_BITS), "cause": Out(CAUSE_BITS), "address": Out(ADDRESS_BITS)})


class Rings(wiring.Component):
    """State of ``rings`` rings. One that has failed, or has no size, forgets what the doorbell adds.

    Latency: a ring that is rung offers its descriptor in the next cycle.

    Parameters
    ----------
    rings : int

    Members
    -------
    ring : rings x Out(ring_signature)
    valid : Out(1), address : Out(40)
        A descriptor to carry out; holds from ``take`` to ``done``.
    take : In(1)
        It is being carried out.
    done : In(1), cause : In(4)
        The one taken is done, or has failed with a cause; for one cycle.
    failed : Out(1)
        For one cycle, a ring stopped.
    """

    def __init__(self, rings):
        self._rings = rings
        super().__init__({"ring": Out(ring_signature()).array(rings), "valid": Out(1), "address": Out(ADDRESS_BITS),
                          "take": In(1), "done": In(1), "cause": In(CAUSE_BITS), "failed": Out(1)})

    @property
    def module_name(self):
        return f"onc_dma_rings_{self._rings}"

    def elaborate(self, platform):
        m = Module()
        m.submodules.turn = turn = RoundRobin(self._rings)
        current = Signal(range(max(2, self._rings)))
        m.d.comb += [self.valid.eq(turn.any), turn.taken.eq(self.take), self.failed.eq(self.done & (self.cause != Cause.NONE))]
        with m.If(self.take):
            m.d.sync += current.eq(turn.chosen)
        for index, ring in enumerate(self.ring):
            position = Signal(_COUNT_BITS, name=f"position_{index}")
            own, works = self.done & (current == index), Signal(name=f"works_{index}")
            more = Signal(_COUNT_BITS + 1, name=f"more_{index}")
            m.d.comb += [
                works.eq((ring.size != 0) & (ring.cause == Cause.NONE)),
                turn.requests[index].eq(works & (ring.pending != 0)),
                ring.address.eq(ring.base + position * DESCRIPTOR_BYTES),
                more.eq(ring.pending + Mux(ring.doorbell & works, ring.descriptors, 0)
                        - (own & (self.cause == Cause.NONE) & (ring.pending != 0))),
            ]
            m.d.sync += ring.pending.eq(Mux(more > MOST_PENDING, MOST_PENDING, more))
            with m.If(own):
                m.d.sync += ring.cause.eq(self.cause)
                with m.If(self.cause == Cause.NONE):
                    m.d.sync += position.eq(Mux(position + 1 == ring.size, 0, position + 1))
            with m.If(ring.restart):
                m.d.sync += [position.eq(0), ring.pending.eq(0), ring.cause.eq(Cause.NONE)]
            with m.If(turn.grants[index]):
                m.d.comb += self.address.eq(ring.address)
        return m
