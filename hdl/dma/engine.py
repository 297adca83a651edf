"""A DMA engine: takes descriptors from its rings and carries them out, one after the other."""

from amaranth import Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from spec.dma import DESCRIPTOR_BYTES, ENGINE_BYTES, RINGS, SPACES
from spec.isa import Cause
from spec.memory import ADDRESS_BITS

from ..axi import BURST_INCR, RESP_OKAY, axi_signature
from ..control.layouts import CAUSE_BITS, update_layout
from ..emit import place
from ..memory.local_access import access_port
from .cast import Cast
from .check import Check, element_size
from .funnel import Funnel
from .layouts import BYTES_BITS, WORD_BITS, descriptor_layout, side_layout, sides_of
from .local_reader import LocalReader
from .memory_reader import SLOTS, MemoryReader, address_layout
from .rings import Rings, ring_signature
from .walker import Walker
from .writer import OLD_ID, Writer

__all__ = ["DMA_ID_BITS", "DMAEngine", "rings_of_an_engine"]

DMA_ID_BITS = 4
_DESCRIPTOR_ID = 9
_BEATS = DESCRIPTOR_BYTES // ENGINE_BYTES
_MEMORY, _SBUF, _PSUM = range(len(SPACES))


def rings_of_an_engine(core):
    """How many rings an engine serves at most."""
    return -(-RINGS // core.dma_engines)


class DMAEngine(wiring.Component):
    """Carries out descriptors as ``spec.dma`` says, rings in turn, one descriptor at a time.

    An AXI4 manager of 64 bits: bursts of whole words that cross no multiple of 128 bytes; up to 8 reads outstanding under
    identifiers of their own, whose answers may come in any order; up to 63 writes. A transfer is done when its last write is
    answered. After an answer with an error it goes on to its end and writes nothing more.

    Throughput: 8 bytes a cycle where elements touch each other on both sides and are not cast; else an element a cycle, or
    what memory takes for a burst for each; with ``accumulate`` see :class:`hdl.dma.writer.Writer`.
    Latency: from a ring that is rung to the first read 17 cycles of checks and what memory takes for the descriptor's fetch.

    Parameters
    ----------
    core : spec.config.CoreConfig

    Members
    -------
    ring : rings x Out(ring_signature)
    ring_failed : Out(1)
        For one cycle, a ring stopped.
    written : In
        Banks of the partial-sum buffer that something was written to.
    memory : Out(axi_signature)
    port : Out(access_port)
        To the state and the partial-sum buffer.
    update : Out(stream of update_layout)
    notify : Out(1)
        For one cycle, a descriptor that notifies is done.
    active : Out(1), descriptor_address : Out(40)
        Whether it has a descriptor, and where that one is.
    bytes_read, bytes_written : Out(4)
        Bytes of elements that came from memory, or went there, in this cycle.
    """

    module_name = "onc_dma_engine"

    def __init__(self, core):
        self._core = core
        super().__init__({
            "ring": Out(ring_signature()).array(rings_of_an_engine(core)), "ring_failed": Out(1), "written": In(core.psum_banks),
            "memory": Out(axi_signature(ADDRESS_BITS, WORD_BITS, DMA_ID_BITS)), "port": Out(access_port()),
            "update": Out(stream.Signature(update_layout)), "notify": Out(1), "active": Out(1),
            "descriptor_address": Out(ADDRESS_BITS), "bytes_read": Out(BYTES_BITS),
            "bytes_written": Out(BYTES_BITS)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.rings = rings = Rings(len(self.ring))
        m.submodules.check = place(platform, check := Check(self._core))
        m.submodules.reader = place(platform, memory_reader := MemoryReader())
        m.submodules.local_reader = place(platform, local_reader := LocalReader())
        m.submodules.cast = place(platform, cast := Cast())
        m.submodules.funnel = place(platform, funnel := Funnel())
        m.submodules.writer = place(platform, writer := Writer())
        for outer, inner in zip(self.ring, rings.ring):
            m.d.comb += [*(getattr(inner, name).eq(getattr(outer, name))
                           for name in ("base", "size", "restart", "doorbell", "descriptors")),
                         *(getattr(outer, name).eq(getattr(inner, name)) for name in ("pending", "cause", "address"))]
        descriptor, memory = Signal(descriptor_layout, reset_less=True), self.memory
        failed, reason, beat = Signal(), Signal(CAUSE_BITS), Signal(range(_BEATS))
        m.d.comb += [check.descriptor.eq(descriptor), check.written.eq(self.written), self.ring_failed.eq(rings.failed)]

        fetch = Signal(address_layout)
        asks, asked, address = Signal(), Signal(), Signal(ADDRESS_BITS)
        answered = {name: memory.rvalid & (memory.rid == number) for name, number in (("old", OLD_ID), ("fetch", _DESCRIPTOR_ID))}
        wrong = memory.rresp != RESP_OKAY
        m.d.comb += [fetch.address.eq(address), fetch.length.eq(_BEATS - 1), fetch.id.eq(_DESCRIPTOR_ID)]
        self._read_address(m, [
            (writer.old_address.valid, writer.old_address.payload, writer.old_address.ready),
            (memory_reader.address.valid, memory_reader.address.payload, memory_reader.address.ready),
            (asks, fetch, asked)])

        source, destination, sizes, start = self._walkers(m, platform, descriptor)
        self._source(m, source, memory_reader, local_reader, cast, funnel)
        m.d.comb += [cast.source.eq(source.side.format), cast.target.eq(destination.side.format), cast.source_size.eq(sizes[0]),
                     cast.target_size.eq(sizes[1]), cast.saturate.eq(descriptor.saturate)]
        self._destination(m, destination, descriptor, funnel, writer, failed, wrong & answered["old"])
        self._local_port(m, local_reader, writer)
        m.d.comb += [
            memory.rready.eq(1), memory_reader.response_valid.eq(memory.rvalid & (memory.rid < SLOTS)),
            memory_reader.response.data.eq(memory.rdata), memory_reader.response.id.eq(memory.rid),
            memory_reader.response.error.eq(wrong), writer.old.eq(memory.rdata), writer.old_valid.eq(answered["old"]),
            self.bytes_read.eq(Mux(memory_reader.o.valid & memory_reader.o.ready, memory_reader.o.payload.bytes, 0)),
        ]
        with m.If((funnel.i.valid & funnel.i.ready & funnel.i.payload.error) | (answered["old"] & wrong)
                  | (memory.bvalid & (memory.bresp != RESP_OKAY))):
            m.d.sync += failed.eq(1)

        change = self.update.payload
        m.d.comb += [change.semaphore.eq(descriptor.update_semaphore), change.kind.eq(descriptor.update_kind),
                     change.value.eq(descriptor.update_value), rings.cause.eq(reason)]

        def fail(cause):
            m.d.sync += reason.eq(cause)
            m.next = "failed"

        with m.FSM() as fsm:
            m.d.comb += [self.active.eq(~fsm.ongoing("idle")), self.descriptor_address.eq(address)]
            with m.State("idle"):
                m.d.sync += [failed.eq(0), beat.eq(0), reason.eq(Cause.NONE), address.eq(rings.address)]
                with m.If(rings.valid):
                    m.d.comb += rings.take.eq(1)
                    m.next = "ask"
            with m.State("ask"):
                m.d.comb += asks.eq(1)
                with m.If(asked):
                    m.next = "fetch"
            with m.State("fetch"):
                with m.If(answered["fetch"]):
                    m.d.sync += [descriptor.as_value().word_select(beat, WORD_BITS).eq(memory.rdata), beat.eq(beat + 1),
                                 failed.eq(failed | wrong)]
                    with m.If(beat == _BEATS - 1):
                        m.next = "fetched"
            with m.State("fetched"):
                m.d.comb += check.start.eq(~failed)
                m.next = "check"
                with m.If(failed):
                    fail(Cause.FETCH)
            with m.State("check"):
                with m.If(check.done):
                    m.d.comb += start.eq(check.cause == Cause.NONE)
                    m.next = "move"
                    with m.If(check.cause != Cause.NONE):
                        fail(check.cause)
            with m.State("move"):
                with m.If(writer.finished):
                    m.next = "settle"
            with m.State("settle"):
                with m.If(writer.settled):
                    m.next = "update"
                    with m.If(failed):
                        fail(Cause.MEMORY)
            with m.State("update"):
                m.d.comb += self.update.valid.eq(descriptor.update_used)
                with m.If(~descriptor.update_used | self.update.ready):
                    m.d.comb += [self.notify.eq(descriptor.notify), rings.done.eq(1)]
                    m.next = "idle"
            with m.State("failed"):
                m.d.comb += rings.done.eq(1)
                m.next = "idle"
        return m

    def _read_address(self, m, sources):
        """The first of those that ask goes out next; a register in between, since an address must not change while it waits."""
        memory = self.memory
        free = Signal()
        m.d.comb += [free.eq(~memory.arvalid | memory.arready), memory.arsize.eq(ENGINE_BYTES.bit_length() - 1),
                     memory.arburst.eq(BURST_INCR)]
        with m.If(free):
            m.d.sync += memory.arvalid.eq(0)
        taken = Const(0, 1)
        for valid, payload, ready in sources:
            m.d.comb += ready.eq(valid & free & ~taken)
            with m.If(ready):
                m.d.sync += [memory.arvalid.eq(1), memory.araddr.eq(payload.address), memory.arlen.eq(payload.length),
                             memory.arid.eq(payload.id)]
            taken |= valid

    def _walkers(self, m, platform, descriptor):
        """The walkers of both sides, their elements' sizes, and the signal that starts them."""
        start, walkers, sizes = Signal(), [], []
        for name, bits in zip(("source", "destination"), sides_of(descriptor)):
            walker, side = Walker(), Signal(side_layout, name=name)
            m.submodules[f"{name}_walker"] = place(platform, walker)
            size = element_size(m, f"{name}_size", side.format)
            m.d.comb += [side.eq(bits), walker.side.eq(side), walker.size.eq(size), walker.start.eq(start)]
            walkers.append(walker)
            sizes.append(size)
        return *walkers, sizes, start

    @staticmethod
    def _source(m, walker, memory_reader, local_reader, cast, funnel):
        is_memory = walker.side.space == _MEMORY
        for reader, chosen in ((memory_reader, is_memory), (local_reader, ~is_memory)):
            with m.If(chosen):
                m.d.comb += [reader.i.valid.eq(walker.o.valid), walker.o.ready.eq(reader.i.ready),
                             cast.i.payload.eq(reader.o.payload), cast.i.valid.eq(reader.o.valid),
                             reader.o.ready.eq(cast.i.ready)]
        m.d.comb += [memory_reader.i.payload.eq(walker.o.payload), local_reader.i.payload.eq(walker.o.payload),
                     local_reader.psum.eq(walker.side.space == _PSUM), funnel.i.payload.eq(cast.o.payload),
                     funnel.i.valid.eq(cast.o.valid), cast.o.ready.eq(funnel.i.ready)]

    def _destination(self, m, walker, descriptor, funnel, writer, failed, fails):
        memory = self.memory
        m.d.comb += [
            writer.i.payload.eq(walker.o.payload), writer.i.valid.eq(walker.o.valid), walker.o.ready.eq(writer.i.ready),
            writer.local.eq(walker.side.space != _MEMORY), writer.accumulate.eq(descriptor.accumulate),
            writer.dry.eq(failed | fails), writer.data.eq(funnel.data), writer.level.eq(funnel.level),
            funnel.take.eq(writer.take),
            memory.awvalid.eq(writer.address.valid), memory.awaddr.eq(writer.address.payload.address),
            memory.awlen.eq(writer.address.payload.length), memory.awsize.eq(ENGINE_BYTES.bit_length() - 1),
            memory.awburst.eq(BURST_INCR), writer.address.ready.eq(memory.awready),
            memory.wvalid.eq(writer.word.valid), memory.wdata.eq(writer.word.payload.data),
            memory.wstrb.eq(writer.word.payload.strobe), memory.wlast.eq(writer.word.payload.last),
            writer.word.ready.eq(memory.wready), memory.bready.eq(1), writer.answered.eq(memory.bvalid),
            self.bytes_written.eq(Mux(writer.local, 0, writer.take)),
        ]

    def _local_port(self, m, reader, writer):
        """One port for both, the writer first: what is read can wait."""
        port = self.port
        m.d.comb += [
            port.valid.eq(reader.port.valid | writer.port.valid),
            port.access.eq(Mux(writer.port.valid, writer.port.access, reader.port.access)),
            writer.port.ready.eq(port.ready), reader.port.ready.eq(port.ready & ~writer.port.valid),
            writer.port.data.eq(port.data), reader.port.data.eq(port.data),
        ]
