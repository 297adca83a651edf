"""Bytes in as they come, out as they are needed."""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from spec.dma import ENGINE_BYTES

from .layouts import BYTES_BITS, WORD_BITS, chunk_layout

__all__ = ["Funnel"]

_DEPTH = 3 * ENGINE_BYTES  # words whose boundaries differ on both sides still pass one a cycle


class Funnel(wiring.Component):
    """Twenty-four bytes between the chunks of the source and the words of the destination.

    Latency: 1 cycle. Throughput: 8 bytes a cycle.

    Members
    -------
    i : In(stream of chunk_layout)
    data : Out(64), level : Out
        The next bytes, the first one lowest, and how many there are.
    take : In
        How many of them are taken in this cycle; at most 8 and ``level``.
    """

    module_name = "onc_dma_funnel"

    def __init__(self):
        super().__init__({"i": In(stream.Signature(chunk_layout)), "data": Out(WORD_BITS), "level": Out(range(_DEPTH + 1)),
                          "take": In(BYTES_BITS)})

    def elaborate(self, platform):
        m = Module()
        held = Signal(8 * _DEPTH)
        remains, rest = Signal.like(self.level), Signal.like(held)
        accepts = self.i.valid & self.i.ready
        m.d.comb += [self.data.eq(held), self.i.ready.eq(self.level <= _DEPTH - ENGINE_BYTES), remains.eq(self.level - self.take),
                     rest.eq(held >> (self.take << 3))]
        # What is above the level is always zero, so that new bytes can be put in their place without a mask.
        new = Signal(WORD_BITS)
        for byte in range(ENGINE_BYTES):
            m.d.comb += new[8 * byte:8 * byte + 8].eq(Mux(byte < self.i.payload.bytes,
                                                           self.i.payload.data.word_select(byte, 8), 0))
        m.d.sync += [self.level.eq(remains + Mux(accepts, self.i.payload.bytes, 0)),
                     held.eq(rest | Mux(accepts, new << (remains << 3), 0))]
        return m
