"""The tensor engine: commands and operands in, products out of the partial-sum buffer."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from spec.tensor import WEIGHTS_PER_CYCLE

from ..emit import place
from ..memory.local_access import access_port
from ..memory.lockstep import lockstep_psum
from ..memory.parity import pass_report, report_members
from ..memory.psum import PartialSumBuffer
from .array import SystolicArray
from .feeder import RowFeeder
from .issue import TensorIssue, command_layout, starved_layout
from .operand import OperandShapes
from .wave import buffer_depth

__all__ = ["TensorEngine", "activity_layout", "counters_layout", "read_latency"]

COUNTER_BITS = 32

activity_layout = data.StructLayout({"multiplying": 1, "loading": 1})
"""Whether a wave, or weights, were issued in the cycle before."""


def counters_layout():
    """What the engine counts, in cycles, since reset or ``counters_clear``; each wraps at 2**32.

    ``multiplying``: a wave was issued, a quarter of an fp32 column included. ``loading``: weights were issued.
    ``idle``: neither. ``span``: from the first wave to the last, both included. ``no_moving``, ``no_weights``,
    ``no_instruction``: cycles of the span without a wave, by what it lacked.
    """
    names = ("multiplying", "loading", "idle", "span", *starved_layout.members)
    return data.StructLayout({name: COUNTER_BITS for name in names})


def read_latency(core):
    """Cycles from the issue of a wave until its words can be read from the partial-sum buffer."""
    return core.adder_stages * core.rows + core.cols + OperandShapes(core).product_latency + 5


class TensorEngine(wiring.Component):
    """``result[M, N] = stationary[K, M]^T . moving[K, N]`` on a systolic array with a partial-sum buffer.

    Streams of whole columns are written into a buffer beside each row and read with the wavefront; in a core the state
    buffer takes that place. Every stream may stall at any time.

    Latency: a column's words can be read ``adder_stages * rows + cols + product_latency + 5`` cycles after its wave,
    which starts 4 cycles after the first word of its weights is taken, at the earliest.
    Throughput: one column of ``moving`` a cycle (fp32: one in four), two columns of ``stationary`` a cycle.

    Parameters
    ----------
    core : spec.config.CoreConfig

    Members
    -------
    command : In(stream of command_layout)
        Executed in order of issue; see :func:`spec.tensor.command_fields`.
    stationary : In(stream)
        ``2 * rows`` slots: columns 2i and 2i + 1, row r's two slots side by side. Slots are ``slot_bits`` wide; in
        pairs an element is in the low byte and its partner in the next.
    moving : In(stream)
        ``rows`` slots: one column.
    results : Out(stream)
        ``cols`` words of 32 bits: one word of each partition.
    groups : dma_engines x In(access_port)
        Reads of the partial-sum buffer; see :class:`hdl.memory.psum.PartialSumBuffer`.
    retired : Out(1)
        For one cycle, the last sum of a MULTIPLY is stored.
    special : Out
        How many results were stored just now that are to be counted and are NaN or infinite.
    counters : Out(counters_layout)
    counters_clear : In(1)
    activity : Out(activity_layout)
    vector : In(lockstep_psum)
        Another engine's way to the partial-sum buffer.
    inject, parity
        With parity only; see :mod:`hdl.memory.parity`.
    """

    module_name = "onc_tensor"

    def __init__(self, core):
        self._core = core
        self._operands = OperandShapes(core)
        super().__init__({
            "command": In(stream.Signature(command_layout(core))),
            "stationary": In(stream.Signature(core.rows * WEIGHTS_PER_CYCLE * core.slot_bits)),
            "moving": In(stream.Signature(core.rows * core.slot_bits)),
            "results": Out(stream.Signature(32 * core.cols)),
            "groups": In(access_port()).array(core.dma_engines),
            "retired": Out(1), "special": Out(core.cols.bit_length()),
            "counters": Out(counters_layout()), "counters_clear": In(1), "activity": Out(activity_layout),
            "vector": In(lockstep_psum(core)),
            **report_members(core, core.cols),
        })

    @property
    def facts(self):
        """Formats and latencies for the manifest."""
        core = self._core
        return {
            "formats": list(core.formats), "pair_formats": list(core.pair_formats), "transpose": core.transpose,
            "parameters": {"rows": core.rows, "cols": core.cols, "tile": core.tile, "slot_bits": core.slot_bits,
                           "psum_banks": core.psum_banks, "psum_bank_words": core.psum_bank_words},
            "command_fields": [[name, shape.width] for name, shape in self._command_shapes()],
            "latency_cycles": {"wave to read": read_latency(core)},
        }

    def _command_shapes(self):
        return [(name, field) for name, field in command_layout(self._core)]

    def elaborate(self, platform):
        m = Module()
        core = self._core
        m.submodules.issue = place(platform, issue := TensorIssue(core))
        m.submodules.array = place(platform, array := SystolicArray(core))
        m.submodules.psum = place(platform, psum := PartialSumBuffer(core))

        wave, load = issue.wave, issue.load
        moving_write = self._buffer_pointers(m, "moving", self.moving, issue.moving_level, wave.pops)
        stationary_write = self._buffer_pointers(m, "stationary", self.stationary, issue.stationary_level, load.active)
        feeders = []
        for index in range(core.rows):
            feeder = RowFeeder(core)
            m.submodules[f"feeder_{index}"] = place(platform, feeder)
            m.d.comb += [feeder.row.eq(index), feeder.wave_i.eq(wave), feeder.load_i.eq(load)]
            for port, write, payload, slots in ((feeder.moving_write, moving_write, self.moving.payload, 1),
                                                (feeder.stationary_write, stationary_write, self.stationary.payload,
                                                 WEIGHTS_PER_CYCLE)):
                m.d.comb += [port.enable.eq(write.enable), port.address.eq(write.address),
                             port.data.eq(payload.word_select(index, slots * core.slot_bits))]
            feeders.append(feeder)
            wave, load = feeder.wave_o, feeder.load_o
        m.d.comb += [array.moving.eq(Cat(feeder.moving.as_value() for feeder in feeders)),
                     array.weights.eq(Cat(feeder.weights.as_value() for feeder in feeders))]
        m.d.comb += [moving_write.released.eq(wave.pops), stationary_write.released.eq(load.active)]

        # From the last row's instruction to the sum of column 0: through the element, and the feeder's own two cycles
        # less those that the instruction took to pass it, which are the element's adder stages.
        destination = wave.destination
        for index in range(2 + self._operands.product_latency):
            delayed = Signal.like(destination, name=f"destination_{index}")
            m.d.sync += delayed.eq(destination)
            destination = delayed
        m.d.comb += [
            psum.sums.eq(array.sums), psum.destination.eq(destination), psum.read.eq(issue.read),
            issue.command.payload.eq(self.command.payload), issue.command.valid.eq(self.command.valid),
            self.command.ready.eq(issue.command.ready), issue.retired.eq(psum.retired),
            self.results.payload.eq(psum.read_data), self.results.valid.eq(issue.read_valid),
            issue.read_ready.eq(self.results.ready), self.retired.eq(psum.retired), self.special.eq(psum.special),
        ]
        for outer, inner in zip(self.groups, psum.groups):
            m.d.comb += [inner.valid.eq(outer.valid), inner.access.eq(outer.access), outer.ready.eq(inner.ready),
                         outer.data.eq(inner.data)]
        connect(m, flipped(self.vector), psum.vector)
        pass_report(m, core, self, psum)
        self._count(m, issue)
        return m

    def _buffer_pointers(self, m, name, source, level, issued):
        """The write side of all rows' buffers: accepts while the last row has read what would be overwritten."""
        depth = buffer_depth(self._core)
        write = Signal(data.StructLayout({"enable": 1, "address": range(depth), "released": 1}), name=f"{name}_write")
        held = Signal(range(depth + 1), name=f"{name}_held")
        address, ready = Signal(range(depth), name=f"{name}_address"), Signal(name=f"{name}_ready")
        available = Signal(range(depth + 1), name=f"{name}_level")
        m.d.comb += [
            ready.eq(held != depth), source.ready.eq(ready), level.eq(available),
            write.enable.eq(source.valid & ready), write.address.eq(address),
        ]
        m.d.sync += [
            held.eq(held + write.enable - write.released),
            available.eq(available + write.enable - issued),
        ]
        with m.If(write.enable):
            m.d.sync += address.eq(Mux(address == depth - 1, 0, address + 1))
        return write

    def _count(self, m, issue):
        """Performance counters, one cycle behind what they count."""
        counters = Signal(counters_layout())
        since_first = Signal(COUNTER_BITS)
        issued, started = Signal(), Signal()
        m.d.comb += [self.counters.eq(counters),
                     issued.eq(issue.wave.active | issue.wave.destination.commit)]
        m.d.sync += self.activity.eq(Cat(issued, issue.load.active))
        m.d.sync += [
            counters.multiplying.eq(counters.multiplying + issued),
            counters.loading.eq(counters.loading + issue.load.active),
            counters.idle.eq(counters.idle + ~(issued | issue.load.active)),
            started.eq(started | issued), since_first.eq(since_first + (started | issued)),
        ]
        # Whether a cycle belongs to the span is known only when a later wave comes.
        waits = {name: Signal(COUNTER_BITS, name=f"waits_{name}") for name in starved_layout.members}
        for name, wait in waits.items():
            m.d.sync += wait.eq(wait + (started & issue.starved[name]))
        with m.If(issued):
            m.d.sync += [counters.span.eq(since_first + 1),
                         *(counters[name].eq(counters[name] + wait) for name, wait in waits.items()),
                         *(wait.eq(0) for wait in waits.values())]
        with m.If(self.counters_clear):
            m.d.sync += [counters.eq(0), since_first.eq(0), started.eq(0), *(wait.eq(0) for wait in waits.values())]
