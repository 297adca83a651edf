"""Driving a core: programs and tensors into memory, start, run, fetch; the same calls as :class:`golden.core.Core` has."""

import functools
from dataclasses import dataclass

import numpy as np

from golden.core import Blocked, Failure
from hdl.core import NeuronCore
from hdl.emit import emit
from spec.dma import ENGINE_BYTES, RINGS, Side, Transfer, encode_transfer
from spec.errors import SpecError
from spec.isa import INSTRUCTION_BYTES, REGISTERS, SEMAPHORES, STREAMS, Cause, decode
from spec.memory import local_address
from spec.registers import REGISTER_MAP, find_register

from .errors import OutOfCycles
from .host import Host
from .memory import Memory
from .model import Model
from .tensor import repeated_modules
from .timeline import Timeline

__all__ = ["COUNTERS", "CoreDriver", "build_core", "memory_ports"]

COUNTERS = tuple(register.name for register in REGISTER_MAP if 0x040 <= register.offset < 0x100)
"""Names of the performance counters."""
_STATUS = {name: (sum(width for _, width, _ in fields[:place]), bits)
           for fields in [find_register("stream_status").fields] for place, (name, bits, _) in enumerate(fields)}
_SETTLED = 400
"""Cycles in which nothing changes after which a waiting core is taken to wait for ever: more than memory's slowest answer."""
_CHUNK = 20_000
_EVENTS = tuple(name for name, _, _ in find_register("interrupt_status").fields)
_ENABLED = sum(1 << _EVENTS.index(name) for name in ("stream_error", "ring_error", "stopped", "parity_error"))


def memory_ports(core):
    """Prefixes of the AXI4 managers of a core."""
    return ["fetch", *(f"dma_{index}" for index in range(core.dma_engines))]


@functools.cache
def _emission(core):
    return emit(NeuronCore(core))


def build_core(core, trace=False):
    """A model of ``NeuronCore(core)``, compiled if the cache does not hold it."""
    return Model.build(_emission(core), hierarchical=repeated_modules(core), trace=trace)


@dataclass
class _StreamView:
    address: int
    running: bool
    failure: Failure | None


class CoreDriver:
    """A Verilated core with memory on its ports, driven through its registers.

    Parameters
    ----------
    core : spec.config.CoreConfig
    size : int
        Bytes of memory, a multiple of 8: a port's word that is not all there is answered with an error.
    model : sim.model.Model
        Of ``NeuronCore(core)``; built if not given, and reset in any case.
    timing
        Of the memory, as :class:`sim.memory.Memory` takes it: ``latency``, ``stall``, ``reorder``, ``faulty``, ``seed``.

    Attributes
    ----------
    memory : uint8 array
        What programs, descriptors and tensors are in.
    bus : sim.memory.Memory
    host : sim.host.Host
    """

    def __init__(self, core, size, *, model=None, **timing):
        if size % ENGINE_BYTES:
            raise SpecError("size", size, f"a multiple of {ENGINE_BYTES}")
        self.core = core
        self.model = model or build_core(core)
        self.bus = Memory(self.model, memory_ports(core), size, **timing)
        self.memory = self.bus.bytes
        self.host = Host(self.model)
        self.reset()

    def reset(self):
        """Streams and rings stop, registers and semaphores are cleared; the memories keep their contents."""
        self.model.reset()
        self._rings = set()
        self.host.write("interrupt_enable", _ENABLED)

    def start(self, stream, address):
        """Let a stream run from an address; errors as :meth:`golden.core.Core.start`."""
        if stream not in STREAMS:
            raise SpecError("stream", stream, ", ".join(STREAMS))
        if address % INSTRUCTION_BYTES or address < 0:
            raise SpecError("address", address, f"a multiple of {INSTRUCTION_BYTES} from 0")
        index = STREAMS.index(stream)
        self.host.write64("stream_start", address, index)
        self.host.write("stream_command", 1, index)

    def set_ring(self, ring, base, size):
        """Where a ring's descriptors are, and how many; takes it back to the first one."""
        self.host.write64("ring_base", base, ring)
        self.host.write("ring_size", size, ring)
        self._rings.add(ring)

    def ring_doorbell(self, ring, count):
        """Let a ring take so many descriptors more."""
        self.host.write("ring_doorbell", count, ring)

    def add_semaphore(self, number, value):
        """Add to a semaphore."""
        self.host.write("semaphore_add", value, number)

    def timeline(self):
        """Context that records what goes on in it; see :class:`sim.timeline.Timeline`."""
        return Timeline(self)

    def run(self, limit=1_000_000, progress=None):
        """Run until no stream and no ring can go on.

        Parameters
        ----------
        limit : int
            Cycles.
        progress : callable
            Called now and then with the cycles run and the limit.

        Returns
        -------
        list of golden.core.Blocked
            Streams that wait for ever; empty where all halted or failed.

        Raises
        ------
        sim.errors.OutOfCycles
            It still goes on after ``limit`` cycles; the message says where each stream is.
        """
        begins, before, chunk = self.model.cycle, None, _SETTLED
        while True:
            views, now = self._views(), self._standing()
            running = [name for name, view in views.items() if view.running]
            if not running and not now["pending"]:
                return []
            if now == before and not now["pending"] and len(now["waiting"]) == len(running):
                return [self._blocked(name, views[name]) for name in running]
            if self.model.cycle - begins > limit:
                places = ", ".join(f"{name} at {views[name].address:#x}" for name in running)
                raise OutOfCycles(f"The core still runs after {limit} cycles: {places or 'no stream'}; rings with "
                                  f"descriptors: {now['pending'] or 'none'}")
            before = now
            try:
                self.model.run_until("irq", min(chunk, max(_SETTLED, limit)),
                                     progress and (lambda *_: progress(self.model.cycle - begins, limit)))
            except OutOfCycles:
                chunk = min(2 * chunk, _CHUNK)
            self.host.write("interrupt_status", (1 << len(_EVENTS)) - 1)
            if len(now["waiting"]) == len(running):
                chunk = _SETTLED

    def _views(self):
        return {name: self._view(index) for index, name in enumerate(STREAMS)}

    def _view(self, index):
        status = self.host.read("stream_status", index)
        address, cause = self.host.read64("stream_address", index), Cause(_field(status, "cause"))
        failure = None if cause == Cause.NONE else Failure(cause, address, cause.meaning)
        return _StreamView(address, bool(_field(status, "running")), failure)

    def _standing(self):
        """Whatever changes as long as anything goes on."""
        waiting = {name: self.host.read("stream_status", index) for index, name in enumerate(STREAMS)}
        return {
            "waiting": {name: status for name, status in waiting.items() if _field(status, "waiting")},
            "addresses": [self.host.read64("stream_address", index) for index in range(len(STREAMS))],
            "issued": [self.host.read(name) for name in ("multiplying", "loading", "vector_busy")],
            "pending": [ring for ring in sorted(self._rings) if self.host.read("ring_pending", ring)
                        and not self.host.read("ring_status", ring)]}

    def _blocked(self, name, view):
        status = self.host.read("stream_status", STREAMS.index(name))
        content = bytes(self.memory[view.address:view.address + INSTRUCTION_BYTES])
        waits = decode(content).waits
        held = [wait.semaphore for wait in waits].index(_field(status, "semaphore"))
        return Blocked(name, view.address, waits[held:],
                       tuple(self.host.read("semaphore", wait.semaphore) for wait in waits[held:]))

    @property
    def streams(self):
        """By name: ``address``, ``running``, ``failure``."""
        return self._views()

    @property
    def failures(self):
        """What stopped with a cause, by the stream's name or ``ring <number>``: a :class:`golden.core.Failure`."""
        failures = {name: view.failure for name, view in self._views().items() if view.failure}
        for ring in sorted(self._rings):
            if cause := self.host.read("ring_status", ring):
                cause = Cause(cause)
                failures[f"ring {ring}"] = Failure(cause, self.host.read64("ring_address", ring), cause.meaning)
        return failures

    @property
    def semaphores(self):
        """What all semaphores hold."""
        return [self.host.read("semaphore", number) for number in range(SEMAPHORES)]

    @property
    def interrupts(self):
        """How often an instruction or a descriptor notified."""
        return self.host.read("notifications")

    @property
    def counters(self):
        """The performance counters by name; see ``docs/registers.md``."""
        return {name: self.host.read(name) for name in COUNTERS}

    @property
    def parity_error(self):
        """Where the last wrong parity was found, ``("sbuf", partition)`` or ``("psum", partition)``; None if there was none
        since the counters were cleared."""
        if not self.host.read("parity_errors"):
            return None
        place = self.host.read("parity_place")
        return ("psum" if place & 1 else "sbuf"), place >> 1

    def clear_counters(self):
        """Set the performance counters to 0."""
        self.host.write("counters_clear", 1)

    def registers(self, stream):
        """The 64 registers of a stream."""
        index, values = STREAMS.index(stream), []
        for number in range(REGISTERS):
            self.host.write("stream_register_number", number, index)
            values.append(self.host.read("stream_register_value", index))
        return values

    def dump(self, scratch, banks):
        """The state buffer and banks of the partial-sum buffer, moved out by the core's own DMA.

        Parameters
        ----------
        scratch : int
            Where in memory there is room: 256 bytes for descriptors, then all of both buffers.
        banks : sequence of int
            Banks that something was written to; others cannot be read.

        Returns
        -------
        (uint8 array [rows, bytes], uint32 array [cols, words])
            Words of other banks are 0.
        """
        core, ring = self.core, RINGS - 1
        held = core.rows, core.sbuf_bytes
        words = core.psum_bank_words
        psum = np.zeros((core.cols, core.psum_banks * words), np.uint32)
        at = scratch + 128 * (len(banks) + 1)
        parts = [(Side("sbuf", "fp8_e4m3", 0, ((1, core.sbuf_bytes // 4), (core.sbuf_bytes // 4, 4), (1 << 20, core.rows))),
                  "fp8_e4m3", 1, held)]
        parts += [(Side("psum", "fp32", local_address(0, bank * core.psum_bank_bytes), ((4, words), (1 << 20, core.cols))),
                   "fp32", 4, (core.cols, words)) for bank in banks]
        places = []
        for index, (side, name, size, shape) in enumerate(parts):
            count, step, dims = shape[0] * shape[1], size, []
            for _, inner in side.dims:
                dims.append((step, inner))
                step *= inner
            target = Side("memory", name, at, tuple(dims))
            content = encode_transfer(Transfer(side, target))
            self.memory[scratch + 128 * index:scratch + 128 * (index + 1)] = np.frombuffer(content, np.uint8)
            places.append((at, count * size, shape))
            at += count * size
        self.set_ring(ring, scratch, len(parts))
        self.ring_doorbell(ring, len(parts))
        self.run()
        if f"ring {ring}" in self.failures:
            raise SpecError("scratch", scratch, f"a place with {at - scratch} bytes of memory behind it that is not faulty")
        contents = [self.memory[first:first + size].copy() for first, size, _ in places]
        for bank, content in zip(banks, contents[1:]):
            psum[:, bank * words:(bank + 1) * words] = content.view(np.uint32).reshape(core.cols, words)
        return contents[0].reshape(held), psum


def _field(status, name):
    position, bits = _STATUS[name]
    return status >> position & ((1 << bits) - 1)
