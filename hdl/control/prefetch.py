"""One stream's instructions, asked for ahead of need."""

from amaranth import Module, Mux, ResetInserter, Signal
from amaranth.lib import fifo, stream, wiring
from amaranth.lib.wiring import In, Out

from spec.isa import INSTRUCTION_BYTES
from spec.memory import ADDRESS_BITS

from .layouts import BEATS, beat_layout

__all__ = ["Prefetch"]

_DEPTH = 4 * BEATS
"""Words that are held, or asked for, ahead of the instruction that is executed: four instructions."""


class Prefetch(wiring.Component):
    """Fetches instructions one after another from where ``jump`` points to; a jump forgets what it has.

    Latency: the first request in the cycle after the next from ``jump``; a word that memory sends is offered two cycles
    later. Throughput: a word a cycle.

    Members
    -------
    jump : In(1), target : In(40)
        Go on at an address, a multiple of an instruction's size.
    request : Out(stream of addresses)
    response : In(stream of beat_layout)
        16 words for each request, in order; always ready.
    beats : Out(stream of beat_layout)
    """

    module_name = "onc_prefetch"

    def __init__(self):
        super().__init__({
            "jump": In(1), "target": In(ADDRESS_BITS), "request": Out(stream.Signature(ADDRESS_BITS)),
            "response": In(stream.Signature(beat_layout)), "beats": Out(stream.Signature(beat_layout))})

    def elaborate(self, platform):
        m = Module()
        queue = fifo.SyncFIFOBuffered(width=beat_layout.size, depth=_DEPTH)
        m.submodules.queue = ResetInserter(self.jump)(queue)
        address, active, asks = Signal(ADDRESS_BITS), Signal(), Signal()
        # Of the words that are on their way, those asked for before a jump are stale; they come first.
        coming, stale, claimed = (Signal(range(_DEPTH + 1), name=name) for name in ("coming", "stale", "claimed"))
        received, taken, still_coming = Signal(), Signal(), Signal.like(coming)
        m.d.comb += [
            self.response.ready.eq(1), received.eq(self.response.valid), still_coming.eq(coming - received),
            queue.w_data.eq(self.response.payload), queue.w_en.eq(received & (stale == 0)),
            self.beats.payload.eq(queue.r_data), self.beats.valid.eq(queue.r_rdy), queue.r_en.eq(self.beats.ready),
            taken.eq(queue.r_rdy & self.beats.ready),
            asks.eq(active & ~self.jump & (~self.request.valid | self.request.ready)
                    & (claimed <= _DEPTH - BEATS) & (coming <= _DEPTH - BEATS)),
        ]
        m.d.sync += [
            coming.eq(still_coming + Mux(asks, BEATS, 0)),
            stale.eq(Mux(self.jump, still_coming, stale - (received & (stale != 0)))),
            claimed.eq(Mux(self.jump, 0, claimed - taken + Mux(asks, BEATS, 0))),
        ]
        with m.If(asks):
            m.d.sync += [self.request.valid.eq(1), self.request.payload.eq(address), address.eq(address + INSTRUCTION_BYTES)]
        with m.Elif(self.request.ready):
            m.d.sync += self.request.valid.eq(0)
        with m.If(self.jump):
            m.d.sync += [active.eq(1), address.eq(self.target)]
        return m
