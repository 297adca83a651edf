"""Writes runs to memory or the state buffer, and adds to what is there."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from spec.dma import ENGINE_BYTES
from spec.memory import OFFSET_BITS, PARTITION_BITS

from ..arith.add import Add
from ..emit import place
from ..memory.local_access import access_port
from .layouts import BYTES_BITS, LANE_BITS, WORD_BITS, run_layout
from .memory_reader import address_layout

__all__ = ["OLD_ID", "Writer", "write_word_layout"]

OLD_ID = 8
"""Identifier of reads of old values."""
_MOST_UNANSWERED = 63

write_word_layout = data.StructLayout({"data": WORD_BITS, "strobe": ENGINE_BYTES, "last": 1})
"""A word to write, as AXI has it."""


class Writer(wiring.Component):
    """Takes the bytes of each run and puts them in place: a burst for a run in memory, an access for a word in the state
    buffer. With ``accumulate`` each element is read, added to (rule N6) and written, one after the other.

    Throughput: a word a cycle; an element in 6 cycles in the state buffer with ``accumulate``, in memory in 8 and the time
    that memory takes.

    Members
    -------
    i : In(stream of run_layout)
    local, accumulate : In(1)
        Whether the destination is the state buffer; whether to add. Held for a transfer.
    dry : In(1)
        Write nothing, but do all the rest: something has failed.
    data, level : In, take : Out
        See :class:`hdl.dma.funnel.Funnel`.
    address : Out(stream of address_layout), word : Out(stream of write_word_layout), answered : In(1)
        The channels to memory; ``answered`` is high for a cycle when a burst has been answered.
    old_address : Out(stream of address_layout), old : In(64), old_valid : In(1)
        Reads of old values.
    port : Out(access_port)
    finished : Out(1)
        High for a cycle when the last byte of the last run is on its way.
    settled : Out(1)
        All bursts are answered.
    """

    module_name = "onc_dma_writer"

    def __init__(self):
        super().__init__({
            "i": In(stream.Signature(run_layout)), "local": In(1), "accumulate": In(1), "dry": In(1), "data": In(WORD_BITS),
            "level": In(BYTES_BITS + 1), "take": Out(BYTES_BITS), "address": Out(stream.Signature(address_layout)),
            "word": Out(stream.Signature(write_word_layout)), "answered": In(1),
            "old_address": Out(stream.Signature(address_layout)), "old": In(WORD_BITS), "old_valid": In(1),
            "port": Out(access_port()), "finished": Out(1), "settled": Out(1)})

    def elaborate(self, platform):
        m = Module()
        run, port = self.i.payload, self.port
        written, left, at = Signal.like(run.bytes), Signal.like(run.bytes), Signal.like(run.address)
        lane, amount, most = Signal(LANE_BITS), Signal(BYTES_BITS), Signal(BYTES_BITS)
        m.d.comb += [
            at.eq(run.address + written), lane.eq(at[:LANE_BITS]), left.eq(run.bytes - written),
            most.eq(Mux(self.accumulate, 4, ENGINE_BYTES - lane)), amount.eq(Mux(left < most, left, most)),
        ]
        sum_ready, total = Signal(), Signal(32)
        m.submodules.add = place(platform, add := Add())
        content, strobe = Signal(WORD_BITS), Signal(ENGINE_BYTES)
        m.d.comb += [
            content.eq(Mux(self.accumulate, total, self.data) << (lane << 3)),
            strobe.eq(Mux(self.dry, 0, ((1 << amount) - 1) << lane)),
        ]

        ready_to_write = (self.level >= amount) & (~self.accumulate | sum_ready)
        first, writes, ends = (written == 0) | self.accumulate, Signal(), Signal()
        m.d.comb += [ends.eq(writes & (amount == left)), self.i.ready.eq(ends), self.take.eq(Mux(writes, amount, 0)),
                     self.finished.eq(ends & run.last)]
        with m.If(writes):
            m.d.sync += [written.eq(Mux(ends, 0, written + amount)), sum_ready.eq(0)]

        self._old(m, at, lane, add, total, sum_ready)
        unanswered = Signal(range(_MOST_UNANSWERED + 2))
        address_free, word_free = (~channel.valid | channel.ready for channel in (self.address, self.word))
        begins, is_write = Signal(), Signal()
        with m.If(self.local):
            with m.If(self.i.valid & ready_to_write):
                m.d.comb += [port.valid.eq(1), is_write.eq(1), writes.eq(port.ready)]
        with m.Else():
            m.d.comb += [
                writes.eq(self.i.valid & ready_to_write & word_free
                          & (~first | (address_free & (unanswered < _MOST_UNANSWERED)))),
                begins.eq(writes & first),
            ]
        m.d.comb += port.access.eq(Cat(
            is_write, Const(0, 1), at[:OFFSET_BITS], at[OFFSET_BITS:][:PARTITION_BITS], content, strobe))
        with m.If(begins):
            m.d.sync += [
                self.address.valid.eq(1), self.address.payload.address.eq(at & -ENGINE_BYTES),
                self.address.payload.length.eq(Mux(self.accumulate, 0, (lane + left - 1) >> LANE_BITS))]
        with m.Elif(self.address.ready):
            m.d.sync += self.address.valid.eq(0)
        with m.If(writes & ~self.local):
            m.d.sync += [self.word.valid.eq(1), self.word.payload.data.eq(content), self.word.payload.strobe.eq(strobe),
                         self.word.payload.last.eq(self.accumulate | (amount == left))]
        with m.Elif(self.word.ready):
            m.d.sync += self.word.valid.eq(0)
        m.d.sync += unanswered.eq(unanswered + begins - self.answered)
        m.d.comb += self.settled.eq(unanswered == 0)
        return m

    def _old(self, m, at, lane, add, total, sum_ready):
        """Read the old value of the next element, and add; ``total`` holds while ``sum_ready``."""
        port, old = self.port, Signal(32)
        bits = Mux(lane[-1], self._half(port.data, 1), self._half(port.data, 0))
        m.d.comb += [
            add.a.eq(old), add.b.eq(self.data[:32]),
            self.old_address.payload.address.eq(at & -ENGINE_BYTES), self.old_address.payload.id.eq(OLD_ID),
        ]
        with m.FSM():
            with m.State("idle"):
                with m.If(self.accumulate & self.i.valid & (self.level >= 4) & ~sum_ready):
                    with m.If(self.local):
                        m.d.comb += port.valid.eq(1)
                        with m.If(port.ready):
                            m.next = "local"
                    with m.Else():
                        m.d.comb += self.old_address.valid.eq(1)
                        with m.If(self.old_address.ready):
                            m.next = "memory"
            with m.State("local"):
                m.d.sync += old.eq(bits)
                m.next = "add"
            with m.State("memory"):
                with m.If(self.old_valid):
                    m.d.sync += old.eq(Mux(lane[-1], self._half(self.old, 1), self._half(self.old, 0)))
                    m.next = "add"
            with m.State("add"):
                m.next = "sum"
            with m.State("sum"):
                m.d.sync += [total.eq(add.o), sum_ready.eq(1)]
                m.next = "idle"

    @staticmethod
    def _half(word, number):
        return word.word_select(number, 32)
