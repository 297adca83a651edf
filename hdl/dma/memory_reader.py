"""Reads runs from memory: bursts ahead of need, answers in any order, bytes in order."""

from amaranth import Array, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from spec.dma import ENGINE_BYTES
from spec.memory import ADDRESS_BITS

from ..emit import place
from ..memory.sram import SRAM
from .layouts import BURST_BYTES, BYTES_BITS, LANE_BITS, WORD_BITS, chunk_layout, run_layout

__all__ = ["MemoryReader", "SLOTS", "address_layout", "response_layout"]

SLOTS = 8
"""Bursts that can be outstanding."""
_BEATS = BURST_BYTES // ENGINE_BYTES

address_layout = data.StructLayout({"address": ADDRESS_BITS, "length": 8, "id": 4})
"""A read or write burst of whole words; ``length`` as AXI has it, one less than the words."""

response_layout = data.StructLayout({"data": WORD_BITS, "id": 4, "error": 1})
"""A word that was read."""


class MemoryReader(wiring.Component):
    """A burst for each run, each under the identifier of its slot; the slots' words are kept until their turn.

    Latency: run to address 1 cycle; a word 2 cycles after it came, where it is its turn. Throughput: a word a cycle.

    Members
    -------
    i : In(stream of run_layout)
    address : Out(stream of address_layout)
        Identifiers 0 to 7.
    response : In(response_layout), response_valid : In(1)
        Always taken.
    o : Out(stream of chunk_layout)
    """

    module_name = "onc_dma_memory_reader"

    def __init__(self):
        super().__init__({
            "i": In(stream.Signature(run_layout)), "address": Out(stream.Signature(address_layout)),
            "response": In(response_layout), "response_valid": In(1), "o": Out(stream.Signature(chunk_layout))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.words = words = place(platform, buffer := SRAM(WORD_BITS + 1, SLOTS * _BEATS))
        info = data.StructLayout({"lane": LANE_BITS, "bytes": BURST_BYTES.bit_length()})
        slots = Array(Signal(info, name=f"slot_{index}") for index in range(SLOTS))
        arrived = Array(Signal(range(_BEATS + 1), name=f"arrived_{index}") for index in range(SLOTS))
        newest, oldest, used = Signal(range(SLOTS)), Signal(range(SLOTS)), Signal(range(SLOTS + 1))

        run = self.i.payload
        lane = run.address[:LANE_BITS]
        asks, frees = Signal(), Signal()
        m.d.comb += [self.i.ready.eq((used != SLOTS) & (~self.address.valid | self.address.ready)),
                     asks.eq(self.i.valid & self.i.ready)]
        with m.If(asks):
            m.d.sync += [
                self.address.valid.eq(1), self.address.payload.address.eq(run.address & -ENGINE_BYTES),
                self.address.payload.length.eq((lane + run.bytes - 1) >> LANE_BITS), self.address.payload.id.eq(newest),
                slots[newest].lane.eq(lane), slots[newest].bytes.eq(run.bytes), newest.eq(newest + 1)]
        with m.Elif(self.address.ready):
            m.d.sync += self.address.valid.eq(0)
        m.d.sync += used.eq(used + asks - frees)

        number = self.response.id[:(SLOTS - 1).bit_length()]
        m.d.comb += [buffer.write_enable.eq(self.response_valid),
                     buffer.write_address.eq((number << (_BEATS - 1).bit_length()) | arrived[number][:-1]),
                     buffer.write_data.eq(self.response.data | (self.response.error << WORD_BITS))]
        with m.If(self.response_valid):
            m.d.sync += arrived[number].eq(arrived[number] + 1)

        # The oldest slot's words, one after the other; the memory keeps a word until the next is read.
        beat, taken = Signal(range(_BEATS + 1)), Signal(range(BURST_BYTES + 1))
        slot = slots[oldest]
        first_lane, left, amount = Signal(LANE_BITS), Signal(range(BURST_BYTES + 1)), Signal(BYTES_BITS)
        reads = Signal()
        m.d.comb += [
            first_lane.eq(Mux(beat == 0, slot.lane, 0)), left.eq(slot.bytes - taken),
            amount.eq(Mux(left < ENGINE_BYTES - first_lane, left, ENGINE_BYTES - first_lane)),
            reads.eq((used != 0) & (arrived[oldest] > beat) & (~self.o.valid | self.o.ready)),
            frees.eq(reads & (amount == left)), buffer.read_enable.eq(reads),
            buffer.read_address.eq((oldest << (_BEATS - 1).bit_length()) | beat[:-1]),
        ]
        shown_lane = Signal(LANE_BITS)
        with m.If(reads):
            m.d.sync += [beat.eq(Mux(frees, 0, beat + 1)), taken.eq(Mux(frees, 0, taken + amount)), self.o.valid.eq(1),
                         self.o.payload.bytes.eq(amount), shown_lane.eq(first_lane)]
        with m.Elif(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(frees):
            m.d.sync += [arrived[oldest].eq(0), oldest.eq(oldest + 1)]
        m.d.comb += [self.o.payload.data.eq(buffer.read_data[:WORD_BITS] >> (shown_lane << 3)),
                     self.o.payload.error.eq(buffer.read_data[WORD_BITS])]
        return m
