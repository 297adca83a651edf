"""The port through which all instruction streams fetch."""

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from spec.dma import ENGINE_BYTES
from spec.memory import ADDRESS_BITS

from ..axi import BURST_INCR, RESP_OKAY, axi_read_signature
from ..round_robin import RoundRobin
from .layouts import BEATS, beat_layout

__all__ = ["FETCH_ID_BITS", "InstructionFetch"]

FETCH_ID_BITS = 4


class InstructionFetch(wiring.Component):
    """A read-only AXI4 manager: each request becomes one burst of 16 words, under the stream's number as identifier.

    Throughput: a word a cycle, streams in turn. Latency: request to address 1 cycle, data to response none.

    Parameters
    ----------
    streams : int

    Members
    -------
    request : streams x In(stream of addresses)
    response : streams x Out(stream of beat_layout)
        Must be ready.
    memory : Out(axi_read_signature)
    """

    def __init__(self, streams):
        self._streams = streams
        super().__init__({
            "request": In(stream.Signature(ADDRESS_BITS)).array(streams),
            "response": Out(stream.Signature(beat_layout)).array(streams),
            "memory": Out(axi_read_signature(ADDRESS_BITS, 8 * ENGINE_BYTES, FETCH_ID_BITS))})

    @property
    def module_name(self):
        return f"onc_instruction_fetch_{self._streams}"

    def elaborate(self, platform):
        m = Module()
        memory = self.memory
        m.submodules.turn = turn = RoundRobin(self._streams)
        free = Signal()
        m.d.comb += [
            free.eq(~memory.arvalid | memory.arready), turn.taken.eq(free), memory.rready.eq(1),
            memory.arlen.eq(BEATS - 1), memory.arsize.eq(ENGINE_BYTES.bit_length() - 1), memory.arburst.eq(BURST_INCR),
        ]
        with m.If(free):
            m.d.sync += [memory.arvalid.eq(turn.any), memory.arid.eq(turn.chosen)]
        for index, (request, response) in enumerate(zip(self.request, self.response)):
            chosen = turn.grants[index]
            m.d.comb += [turn.requests[index].eq(request.valid), request.ready.eq(chosen & free)]
            with m.If(chosen & free):
                m.d.sync += memory.araddr.eq(request.payload)
            m.d.comb += [response.valid.eq(memory.rvalid & (memory.rid == index)), response.payload.data.eq(memory.rdata),
                         response.payload.error.eq(memory.rresp != RESP_OKAY)]
        return m
