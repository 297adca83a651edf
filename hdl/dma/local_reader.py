"""Reads runs from the state and the partial-sum buffer."""

from amaranth import Module, Mux, Signal
from amaranth.lib import fifo, stream, wiring
from amaranth.lib.wiring import In, Out

from spec.dma import ENGINE_BYTES
from spec.memory import OFFSET_BITS

from ..memory.local_access import access_port
from .layouts import BYTES_BITS, LANE_BITS, chunk_layout, run_layout

__all__ = ["LocalReader"]

_HELD = 4


class LocalReader(wiring.Component):
    """An access for each word of a run; of the partial-sum buffer words have 4 bytes, of the state buffer 8.

    Latency: run to the first chunk 3 cycles. Throughput: a word a cycle.

    Members
    -------
    i : In(stream of run_layout)
    psum : In(1)
        Which of the two; held for a transfer.
    port : Out(access_port)
    o : Out(stream of chunk_layout)
    """

    module_name = "onc_dma_local_reader"

    def __init__(self):
        super().__init__({"i": In(stream.Signature(run_layout)), "psum": In(1), "port": Out(access_port()),
                          "o": Out(stream.Signature(chunk_layout))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.chunks = chunks = fifo.SyncFIFOBuffered(width=chunk_layout.size, depth=_HELD)
        run, port = self.i.payload, self.port
        taken, left, amount = Signal.like(run.bytes), Signal.like(run.bytes), Signal(BYTES_BITS)
        at, lane = Signal.like(run.address), Signal(LANE_BITS)
        granted, arrives, arriving = Signal(), Signal(), Signal(chunk_layout)
        arriving_lane = Signal(LANE_BITS)
        most = Mux(self.psum, 4, ENGINE_BYTES - lane)
        m.d.comb += [
            at.eq(run.address + taken), lane.eq(at[:LANE_BITS]), left.eq(run.bytes - taken),
            amount.eq(Mux(left < most, left, most)),
            port.access.psum.eq(self.psum), port.access.offset.eq(at[:OFFSET_BITS]),
            port.access.partition.eq(at[OFFSET_BITS:]),
            port.valid.eq(self.i.valid & (chunks.level + arrives < _HELD)), granted.eq(port.valid & port.ready),
            self.i.ready.eq(granted & (amount == left)),
        ]
        m.d.sync += [arrives.eq(granted), arriving.bytes.eq(amount), arriving_lane.eq(lane)]
        with m.If(granted):
            m.d.sync += taken.eq(Mux(amount == left, 0, taken + amount))
        entry = Signal(chunk_layout)
        m.d.comb += [entry.bytes.eq(arriving.bytes), entry.data.eq(port.data >> (arriving_lane << 3)),
                     chunks.w_data.eq(entry), chunks.w_en.eq(arrives),
                     self.o.payload.eq(chunks.r_data), self.o.valid.eq(chunks.r_rdy), chunks.r_en.eq(self.o.ready)]
        return m
