"""An engine that executes instructions of several streams."""

from amaranth import Array, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..round_robin import RoundRobin
from .layouts import CAUSE_BITS, instruction_layout
from .sequencer import OFFSET_SHAPE

__all__ = ["SharedIssue", "issue_signature"]


def issue_signature():
    """A stream's side of its engine: ``issue`` and ``offsets`` hold until ``accepted``, or a cause in ``refused``; ``done`` when
    an accepted instruction is, in order."""
    return wiring.Signature({
        "issue": Out(stream.Signature(instruction_layout)), "offsets": Out(OFFSET_SHAPE).array(3), "accepted": In(1),
        "refused": In(CAUSE_BITS), "done": In(1)})


class SharedIssue(wiring.Component):
    """Hands an engine the instructions of several streams in turn; an answer, and ``done``, go to the stream they belong to.

    The engine is done with an instruction before it accepts the next.

    Latency: 1 cycle from a stream's instruction to the engine's. Throughput: an instruction until it is answered.

    Parameters
    ----------
    streams : int

    Members
    -------
    streams : streams x In(issue_signature)
    engine : Out(issue_signature)
    """

    def __init__(self, streams):
        self._streams = streams
        super().__init__({"streams": In(issue_signature()).array(streams), "engine": Out(issue_signature())})

    @property
    def module_name(self):
        return f"onc_shared_issue_{self._streams}"

    def elaborate(self, platform):
        m = Module()
        m.submodules.turn = turn = RoundRobin(self._streams)
        engine, asks, owner = self.engine, Signal(range(max(2, self._streams))), Signal(range(max(2, self._streams)))
        busy, issued = Signal(), Signal()
        m.d.comb += [turn.taken.eq(~busy), engine.issue.valid.eq(busy & ~issued),
                     engine.issue.payload.eq(Array(source.issue.payload.as_value() for source in self.streams)[asks])]
        for index, outer in enumerate(engine.offsets):
            m.d.comb += outer.eq(Array(source.offsets[index] for source in self.streams)[asks])
        for index, source in enumerate(self.streams):
            mine = asks == index
            m.d.comb += [
                turn.requests[index].eq(source.issue.valid & ~busy),
                source.issue.ready.eq(mine & engine.issue.valid & engine.issue.ready),
                source.accepted.eq(engine.accepted & mine), source.done.eq(engine.done & (owner == index))]
            with m.If(mine):
                m.d.comb += source.refused.eq(engine.refused)
        with m.If(~busy):
            m.d.sync += [busy.eq(turn.any), asks.eq(turn.chosen), issued.eq(0)]
        with m.If(engine.issue.valid & engine.issue.ready):
            m.d.sync += issued.eq(1)
        with m.If(engine.accepted):
            m.d.sync += owner.eq(asks)
        with m.If(engine.accepted | (engine.refused != 0)):
            m.d.sync += busy.eq(0)
        return m
