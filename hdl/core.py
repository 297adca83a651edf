"""A NeuronCore: instruction streams, semaphores, the tensor unit, both buffers and DMA engines, between a host and memory."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from spec.dma import ENGINE_BYTES, RINGS
from spec.isa import STREAMS
from spec.memory import ADDRESS_BITS
from spec.registers import WINDOW_BITS

from .axi import axi_read_signature, axi_signature
from .control.fetch import FETCH_ID_BITS, InstructionFetch
from .control.host_port import HOST_ID_BITS, HostPort
from .control.host_registers import HostRegisters
from .control.semaphores import Semaphores
from .control.sequencer import Sequencer
from .control.shared_issue import SharedIssue
from .dma.engine import DMA_ID_BITS, DMAEngine
from .emit import place
from .memory.crossbar import AccessCrossbar
from .memory.state_buffer import StateBuffer
from .round_robin import RoundRobin
from .tensor.engine import activity_layout as tensor_activity_layout
from .tensor.unit import TensorUnit
from .vector.engine import VectorEngine

__all__ = ["NeuronCore", "activity_layout"]

_COUNTER_BITS = 32
_VECTOR_STREAMS = ("vector", "gpsimd")
_WORD_BITS = 8 * ENGINE_BYTES


def activity_layout(core):
    """What goes on in a cycle, for whoever draws a timeline.

    ``<stream>_running``, ``<stream>_waiting`` and ``<stream>_address`` of each stream: where it is, or stopped; then
    ``dma_<number>_active`` and ``dma_<number>_descriptor`` of each DMA engine: the address of the descriptor that it has;
    then ``multiplying`` and ``loading`` of the tensor engine, a cycle late, and ``vector_busy``.
    """
    return data.StructLayout({
        **{f"{name}_{part}": bits for name in STREAMS
           for part, bits in (("running", 1), ("waiting", 1), ("address", ADDRESS_BITS))},
        **{f"dma_{index}_{part}": bits for index in range(core.dma_engines)
           for part, bits in (("active", 1), ("descriptor", ADDRESS_BITS))},
        **{name: 1 for name in (*tensor_activity_layout.members, "vector_busy")}})


class NeuronCore(wiring.Component):
    """Runs programs from memory; semantics of ``docs/isa.md``, ``spec.dma`` and ``docs/registers.md``.

    Ring r belongs to DMA engine r modulo the number of engines. Streams, DMA engines and the host share the semaphores, an
    update a cycle in turn.

    Parameters
    ----------
    core : spec.config.CoreConfig

    Members
    -------
    host : In(axi_signature)
        The register window, 32 bits wide.
    fetch : Out(axi_read_signature)
        Instructions of all streams.
    dma_<number> : Out(axi_signature)
        One for each DMA engine.
    irq : Out(1)
        The interrupt, as long as a bit of ``interrupt_status`` is set and enabled.
    activity : Out(activity_layout)
        What goes on, cycle by cycle.
    """

    module_name = "onc_core"

    def __init__(self, core):
        self._core = core
        memory = axi_signature(ADDRESS_BITS, _WORD_BITS, DMA_ID_BITS)
        super().__init__({
            "host": In(axi_signature(WINDOW_BITS, 32, HOST_ID_BITS)),
            "fetch": Out(axi_read_signature(ADDRESS_BITS, _WORD_BITS, FETCH_ID_BITS)),
            **{f"dma_{index}": Out(memory) for index in range(core.dma_engines)}, "irq": Out(1),
            "activity": Out(activity_layout(core))})

    @property
    def facts(self):
        """Parameters for the manifest."""
        core = self._core
        return {"formats": list(core.formats), "pair_formats": list(core.pair_formats), "transpose": core.transpose,
                "parameters": {"rows": core.rows, "cols": core.cols, "sbuf_bytes": core.sbuf_bytes,
                               "psum_banks": core.psum_banks, "psum_bank_bytes": core.psum_bank_bytes,
                               "dma_engines": core.dma_engines},
                "activity_fields": [[name, field.width] for name, field in activity_layout(core)]}

    def elaborate(self, platform):
        m = Module()
        core = self._core
        m.submodules.port = place(platform, port := HostPort())
        m.submodules.registers = place(platform, registers := HostRegisters(core))
        m.submodules.fetch = place(platform, fetch := InstructionFetch(len(STREAMS)))
        m.submodules.semaphores = place(platform, semaphores := Semaphores(len(STREAMS) + 1, core.dma_engines))
        m.submodules.tensor = place(platform, tensor := TensorUnit(core))
        m.submodules.vector = place(platform, vector := VectorEngine(core))
        m.submodules.vector_issue = vector_issue = SharedIssue(len(_VECTOR_STREAMS))
        m.submodules.sbuf = place(platform, sbuf := StateBuffer(core))
        m.submodules.crossbar = place(platform, crossbar := AccessCrossbar(core))
        connect(m, flipped(self.host), port.memory)
        connect(m, port.bus, registers.bus)
        connect(m, fetch.memory, flipped(self.fetch))
        connect(m, tensor.moving, sbuf.moving)
        connect(m, tensor.stationary, sbuf.stationary)
        connect(m, vector.read, sbuf.vector_read)
        connect(m, vector.write, sbuf.vector_write)
        connect(m, vector.psum, tensor.vector)
        m.d.comb += [vector.written.eq(tensor.written), tensor.vector_written.eq(vector.will_write)]

        sequencers = self._sequencers(m, platform, registers, fetch, semaphores, tensor)
        self._vector_streams(m, sequencers, vector_issue, vector)
        engines = self._engines(m, platform, registers, semaphores, tensor, crossbar, sbuf)
        self._doorbells(m, registers, sequencers, engines)
        host = len(STREAMS)
        connect(m, registers.update, semaphores.update[host])
        m.d.comb += [semaphores.read[host].semaphore.eq(registers.semaphore_number),
                     registers.semaphore_value.eq(semaphores.read[host].value), self.irq.eq(registers.interrupt)]
        parity_error = sbuf.parity.error | tensor.parity.error if core.parity else Const(0, 1)
        special = tensor.special + vector.special
        self._events(m, registers, sequencers, engines, parity_error, special)
        self._counters(m, registers, sequencers, engines, tensor, vector, parity_error, special)
        self._activity(m, sequencers, engines, tensor, vector)
        self._parity(m, registers, sbuf, tensor)
        return m

    def _parity(self, m, registers, sbuf, tensor):
        if self._core.parity:
            m.d.comb += Cat(sbuf.inject, tensor.inject).eq(registers.parity_inject)
            for is_psum, report in enumerate((sbuf.parity, tensor.parity)):
                with m.If(report.error):
                    m.d.sync += registers.parity_place.eq(Cat(Const(is_psum, 1), report.partition))

    def _activity(self, m, sequencers, engines, tensor, vector):
        streams = [Cat(sequencer.running, sequencer.waiting, sequencer.address) for sequencer in sequencers]
        transfers = [Cat(engine.active, engine.descriptor_address) for engine in engines]
        m.d.comb += self.activity.eq(Cat(*streams, *transfers, tensor.activity, vector.busy))

    def _sequencers(self, m, platform, registers, fetch, semaphores, tensor):
        sequencers = []
        for index, name in enumerate(STREAMS):
            sequencer = Sequencer(name)
            m.submodules[f"stream_{name}"] = place(platform, sequencer)
            sequencers.append(sequencer)
            connect(m, sequencer.fetch_request, fetch.request[index])
            connect(m, fetch.response[index], sequencer.fetch_response)
            connect(m, sequencer.update, semaphores.update[index])
            breakpoint_high = registers.stream_breakpoint_high[index]
            m.d.comb += [
                semaphores.read[index].semaphore.eq(sequencer.semaphore),
                sequencer.semaphore_value.eq(semaphores.read[index].value),
                sequencer.control.as_value().eq(Mux(registers.stream_command_written[index], registers.stream_command, 0)),
                sequencer.start_address.eq(Cat(registers.stream_start_low[index], registers.stream_start_high[index])),
                sequencer.breakpoint_address.eq(Cat(registers.stream_breakpoint_low[index], breakpoint_high)),
                sequencer.breakpoint_enable.eq(breakpoint_high[-1]),
                sequencer.register_number.eq(registers.stream_register_number[index]),
                registers.stream_register_value[index].eq(sequencer.register_value),
                registers.stream_status[index].eq(Cat(sequencer.running, sequencer.waiting, sequencer.cause,
                                                      sequencer.semaphore)),
                Cat(registers.stream_address_low[index], registers.stream_address_high[index]).eq(sequencer.address),
            ]
        first = sequencers[STREAMS.index("tensor")]
        connect(m, first.issue, tensor.issue)
        m.d.comb += [
            *(inner.eq(outer) for inner, outer in zip(tensor.offsets, first.offsets)), first.accepted.eq(tensor.accepted),
            first.refused.eq(tensor.refused), first.load_done.eq(tensor.load_done),
            first.multiply_done.eq(tensor.multiply_done)]
        return sequencers

    @staticmethod
    def _vector_streams(m, sequencers, shared, vector):
        """The streams whose instructions the vector engine executes."""
        connect(m, shared.engine.issue, vector.issue)
        m.d.comb += [*(inner.eq(outer) for inner, outer in zip(vector.offsets, shared.engine.offsets)),
                     shared.engine.accepted.eq(vector.accepted), shared.engine.refused.eq(vector.refused),
                     shared.engine.done.eq(vector.done)]
        for name, side in zip(_VECTOR_STREAMS, shared.streams):
            sequencer = sequencers[STREAMS.index(name)]
            connect(m, sequencer.issue, side.issue)
            m.d.comb += [*(inner.eq(outer) for inner, outer in zip(side.offsets, sequencer.offsets)),
                         sequencer.accepted.eq(side.accepted), sequencer.refused.eq(side.refused),
                         sequencer.vector_done.eq(side.done)]

    def _engines(self, m, platform, registers, semaphores, tensor, crossbar, sbuf):
        engines = []
        for index in range(self._core.dma_engines):
            engine = DMAEngine(self._core)
            m.submodules[f"dma_{index}"] = place(platform, engine)
            engines.append(engine)
            connect(m, engine.memory, flipped(getattr(self, f"dma_{index}")))
            connect(m, engine.port, crossbar.engines[index])
            connect(m, crossbar.sbuf[index], sbuf.groups[index])
            connect(m, crossbar.psum[index], tensor.groups[index])
            connect(m, engine.update, semaphores.update[len(STREAMS) + 1 + index])
            m.d.comb += engine.written.eq(tensor.written)
        for number in range(RINGS):
            ring = self._ring(engines, number)
            m.d.comb += [
                ring.base.eq(Cat(registers.ring_base_low[number], registers.ring_base_high[number])),
                ring.size.eq(registers.ring_size[number]), ring.restart.eq(registers.ring_size_written[number]),
                registers.ring_pending[number].eq(ring.pending), registers.ring_status[number].eq(ring.cause),
                Cat(registers.ring_address_low[number], registers.ring_address_high[number]).eq(ring.address),
            ]
        return engines

    @staticmethod
    def _ring(engines, number):
        return engines[number % len(engines)].ring[number // len(engines)]

    def _doorbells(self, m, registers, sequencers, engines):
        """One ring is rung in a cycle: the host's turn comes first."""
        m.submodules.doorbell_turn = turn = RoundRobin(len(sequencers))
        by_host = Signal()
        number, descriptors = Signal(range(RINGS)), Signal(16)
        has_size = Cat(registers.ring_size[ring][:16] != 0 for ring in range(RINGS))
        m.d.comb += [by_host.eq(Cat(registers.ring_doorbell_written).any()), turn.taken.eq(~by_host)]
        for index, sequencer in enumerate(sequencers):
            m.d.comb += [turn.requests[index].eq(sequencer.doorbell.valid), sequencer.rings.eq(has_size),
                         sequencer.doorbell.ready.eq(turn.grants[index] & ~by_host)]
            with m.If(turn.grants[index]):
                m.d.comb += [number.eq(sequencer.doorbell.payload.ring), descriptors.eq(sequencer.doorbell.payload.descriptors)]
        for index in range(RINGS):
            ring = self._ring(engines, index)
            m.d.comb += [
                ring.doorbell.eq(registers.ring_doorbell_written[index] | (turn.any & ~by_host & (number == index))),
                ring.descriptors.eq(Mux(by_host, registers.ring_doorbell, descriptors))]

    @staticmethod
    def _events(m, registers, sequencers, engines, parity_error, special):
        notify = Cat(*(sequencer.notify for sequencer in sequencers), *(engine.notify for engine in engines))
        m.d.comb += registers.event.eq(Cat(
            notify.any(), Cat(sequencer.failed for sequencer in sequencers).any(),
            Cat(engine.ring_failed for engine in engines).any(), Cat(sequencer.stopped for sequencer in sequencers).any(),
            parity_error, special != 0))
        notifications = Signal(_COUNTER_BITS)
        m.d.sync += notifications.eq(notifications + sum(notify))
        m.d.comb += registers.notifications.eq(notifications)

    @staticmethod
    def _counters(m, registers, sequencers, engines, tensor, vector, parity_error, special):
        clear = registers.counters_clear_written
        waiting = sequencers[STREAMS.index("tensor")].waiting
        counted = {"cycles": 1, "waiting": waiting, "vector_busy": vector.busy,
                   "bytes_read": sum(engine.bytes_read for engine in engines),
                   "bytes_written": sum(engine.bytes_written for engine in engines), "special": special,
                   "parity_errors": parity_error}
        for name, amount in counted.items():
            counter = Signal(_COUNTER_BITS, name=name)
            m.d.sync += counter.eq(Mux(clear, 0, counter + amount))
            m.d.comb += getattr(registers, name).eq(counter)
        m.d.comb += [tensor.counters_clear.eq(clear),
                     *(getattr(registers, name).eq(tensor.counters[name]) for name, _ in tensor.counters.shape())]
