"""The tensor engine with its own access to the state buffer: what the tensor stream issues to."""

from amaranth import Module
from amaranth.lib import fifo, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from spec.tensor import WEIGHTS_PER_CYCLE

from ..control.layouts import CAUSE_BITS, instruction_layout
from ..control.sequencer import OFFSET_SHAPE
from ..emit import place
from ..memory.local_access import access_port
from ..memory.lockstep import lockstep_psum, lockstep_read
from ..memory.parity import pass_report, report_members
from .dispatch import TensorDispatch
from .engine import TensorEngine, activity_layout, counters_layout
from .issue import QUEUE_DEPTH
from .operand_fetch import OperandFetch, operand_walk_layout

__all__ = ["TensorUnit"]


class TensorUnit(wiring.Component):
    """Checks instructions, reads their operands from the state buffer, and computes into the partial-sum buffer.

    Up to four loads and four multiplications wait in queues, so that checks, operand reads, weights and products of
    successive instructions overlap.

    Throughput: a column of ``moving`` a cycle, a column of weights a cycle; see :class:`OperandFetch` for pairs.

    Parameters
    ----------
    core : spec.config.CoreConfig

    Members
    -------
    issue, offsets, accepted, refused
        See :class:`hdl.tensor.dispatch.TensorDispatch`.
    load_done : Out(1)
        For one cycle: the state buffer is read to the end for the oldest load.
    multiply_done : Out(1)
        For one cycle: the last sum of the oldest multiplication is stored.
    moving, stationary : Out(lockstep_read)
    groups, special, counters, counters_clear, activity, inject, parity
        See :class:`hdl.tensor.engine.TensorEngine`.
    vector : In(lockstep_psum), vector_written : In
        The vector engine's way to the partial-sum buffer; banks to which it will write, for one cycle.
    written : Out
        Banks of the partial-sum buffer that something was written to.
    """

    module_name = "onc_tensor_unit"

    def __init__(self, core):
        self._core = core
        super().__init__({
            "issue": In(stream.Signature(instruction_layout)), "offsets": In(OFFSET_SHAPE).array(2), "accepted": Out(1),
            "refused": Out(CAUSE_BITS), "load_done": Out(1), "multiply_done": Out(1), "moving": Out(lockstep_read(core)),
            "stationary": Out(lockstep_read(core)), "groups": In(access_port()).array(core.dma_engines),
            "written": Out(core.psum_banks), "special": Out(core.cols.bit_length()), "counters": Out(counters_layout()),
            "counters_clear": In(1), "activity": Out(activity_layout),
            "vector": In(lockstep_psum(core)), "vector_written": In(core.psum_banks),
            **report_members(core, core.cols)})

    def elaborate(self, platform):
        m = Module()
        core = self._core
        m.submodules.dispatch = place(platform, dispatch := TensorDispatch(core))
        m.submodules.engine = place(platform, engine := TensorEngine(core))
        fetches = {}
        for name, slots in (("moving", 1), ("stationary", WEIGHTS_PER_CYCLE)):
            fetch = OperandFetch(core, slots)
            m.submodules[f"{name}_fetch"] = place(platform, fetch)
            m.submodules[f"{name}_walks"] = walks = fifo.SyncFIFOBuffered(width=operand_walk_layout.size, depth=QUEUE_DEPTH)
            asked = getattr(dispatch, name)
            m.d.comb += [walks.w_data.eq(asked.payload), walks.w_en.eq(asked.valid), asked.ready.eq(walks.w_rdy),
                         fetch.i.payload.eq(walks.r_data), fetch.i.valid.eq(walks.r_rdy), walks.r_en.eq(fetch.i.ready)]
            connect(m, fetch.read, flipped(getattr(self, name)))
            connect(m, fetch.o, getattr(engine, name))
            fetches[name] = fetch
        connect(m, flipped(self.vector), engine.vector)
        pass_report(m, core, self, engine)
        connect(m, dispatch.command, engine.command)
        connect(m, flipped(self.issue), dispatch.issue)
        for outer, inner in zip(self.groups, engine.groups):
            connect(m, flipped(outer), inner)
        m.d.comb += [
            *(inner.eq(outer) for inner, outer in zip(dispatch.offsets, self.offsets)),
            self.accepted.eq(dispatch.accepted), self.refused.eq(dispatch.refused),
            self.load_done.eq(fetches["stationary"].done), self.multiply_done.eq(engine.retired),
            self.written.eq(dispatch.written), self.special.eq(engine.special), self.counters.eq(engine.counters),
            engine.counters_clear.eq(self.counters_clear), dispatch.others_written.eq(self.vector_written),
            self.activity.eq(engine.activity),
        ]
        return m
