"""The vector engine: checks, control and lanes between the two buffers."""

from amaranth import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from spec.vector import SHUFFLE_GROUP, SHUFFLE_KEEPS

from ..control.layouts import CAUSE_BITS, instruction_layout
from ..control.sequencer import OFFSET_SHAPE
from ..emit import place
from ..memory.local_access import LANE_BITS, WORD_BITS
from ..memory.lockstep import PSUM_WORD_BITS, lockstep_psum, lockstep_read, lockstep_write
from .control import VectorControl
from .dispatch import VectorDispatch
from .lane import VectorLane

__all__ = ["VectorEngine"]


class VectorEngine(wiring.Component):
    """Executes the instructions of ``docs/vector-engine.md``, one after the other, a lane for each partition.

    Operands and results may begin at any quarter of their buffers: lane i takes and gives what belongs to the i-th partition of
    each.

    Latency and throughput: from ``issue`` to ``accepted`` see :class:`hdl.vector.dispatch.VectorDispatch`, from there to
    ``done`` :class:`hdl.vector.control.VectorControl`.

    Parameters
    ----------
    core : spec.config.CoreConfig

    Members
    -------
    issue : In(stream of instruction_layout), offsets : In, 3 x OFFSET_SHAPE
        Both hold until the answer.
    accepted : Out(1), refused : Out(4)
        The answer, for one cycle.
    done : Out(1)
        For one cycle: the last result of the oldest instruction is written.
    busy : Out(1)
        An instruction is being carried out.
    read : Out(lockstep_read), write : Out(lockstep_write), psum : Out(lockstep_psum)
    written : In
        Banks of the partial-sum buffer that something was written to.
    will_write : Out
        Banks that become such, for one cycle.
    special : Out
        How many results that are to be counted were written a cycle ago and are NaN or infinite.
    """

    module_name = "onc_vector"

    def __init__(self, core):
        self._core = core
        self._lanes = max(core.rows, core.cols)
        super().__init__({
            "issue": In(stream.Signature(instruction_layout)), "offsets": In(OFFSET_SHAPE).array(3), "accepted": Out(1),
            "refused": Out(CAUSE_BITS), "done": Out(1), "busy": Out(1), "read": Out(lockstep_read(core)),
            "write": Out(lockstep_write(core)),
            "psum": Out(lockstep_psum(core)), "written": In(core.psum_banks), "will_write": Out(core.psum_banks),
            "special": Out(self._lanes.bit_length())})

    def elaborate(self, platform):
        m = Module()
        core = self._core
        m.submodules.dispatch = place(platform, dispatch := VectorDispatch(core))
        m.submodules.control = place(platform, control := VectorControl(self._lanes))
        connect(m, flipped(self.issue), dispatch.issue)
        connect(m, dispatch.task, control.i)
        m.d.comb += [
            *(inner.eq(outer) for inner, outer in zip(dispatch.offsets, self.offsets)), self.accepted.eq(dispatch.accepted),
            self.refused.eq(dispatch.refused), dispatch.written.eq(self.written), self.will_write.eq(dispatch.will_write),
            self.done.eq(control.done), self.busy.eq(control.busy),
            self.read.enable.eq(control.sbuf.enable), self.read.address.eq(control.sbuf.at[LANE_BITS:]),
            control.sbuf_ready.eq(self.read.ready), self.psum.read.eq(control.psum.enable),
            self.psum.read_address.eq(control.psum.at[2:]), control.psum_ready.eq(self.psum.read_ready),
        ]
        sbuf = self._rotated(m, "sbuf", self.read.data, WORD_BITS, core.rows, control.sbuf_arrives)
        psum = self._rotated(m, "psum", self.psum.read_data, PSUM_WORD_BITS, core.cols, control.psum_arrives)
        active = Signal(self._lanes)
        m.d.comb += active.eq((1 << control.partitions) - 1)
        lanes = []
        for index in range(self._lanes):
            lane = VectorLane()
            m.submodules[f"lane_{index}"] = place(platform, lane)
            lanes.append(lane)
            row = control.loads.row & (control.row_lane == index)
            m.d.comb += [lane.enable.eq(control.enable), lane.active.eq(active[index]), lane.sbuf.eq(sbuf[index]), lane.psum.eq(psum[index]),
                         lane.loads.eq(control.loads), lane.loads.row.eq(row), lane.setting.eq(control.setting),
                         lane.token.eq(control.token), lane.join.eq(control.join), lane.target.eq(control.target)]
        self._join(m, control, lanes)
        shuffled, kept = self._exchange(m, control, lanes)
        self._write(m, control, lanes, active & ~kept, shuffled)
        return m

    def _join(self, m, control, lanes):
        """Lane i is joined with lane i + 2^level; only where 2^level divides i does that lead to lane 0."""
        for index, lane in enumerate(lanes):
            with m.Switch(control.level):
                for level in range((self._lanes - 1).bit_length()):
                    other = index + (1 << level)
                    if index % (2 << level) == 0 and other < self._lanes:
                        with m.Case(level):
                            m.d.comb += [lane.neighbor.eq(lanes[other].partner), lane.has_neighbor.eq(other < control.sources)]
            m.d.comb += lane.begins_joining.eq(control.level == 0)

    def _exchange(self, m, control, lanes):
        """Collected elements go from the lane whose turn it is to the lanes of its group; results where the mask says. Gives the results,
        and which lanes keep what they have."""
        group, shuffled, kept = min(SHUFFLE_GROUP, self._core.rows), [], Signal(self._lanes)
        bits = range(group)
        for index, lane in enumerate(lanes):
            column, first = index % group, index - index % group
            source, result = Signal(bits, name=f"source_{index}"), Signal(32, name=f"result_{index}")
            members = lanes[first:first + group]
            m.d.comb += [
                lane.exchanged.eq(Array(member.columns.word_select(column, 32) for member in members)[control.exchange]),
                source.eq(Mux(control.shuffles, control.mask[column], column)),
                result.eq(Array(member.o for member in members)[source]),
                kept[index].eq(control.shuffles & (control.mask[column] == SHUFFLE_KEEPS))]
            shuffled.append(result)
        return shuffled, kept

    def _rotated(self, m, name, data, bits, partitions, first):
        """The word for each lane: that of its partition, counted from the operand's first one."""
        quadrant = max(1, partitions // 4)
        words = []
        for lane in range(self._lanes):
            word = Signal(bits, name=f"{name}_{lane}")
            with m.Switch(first):
                for start in range(0, partitions, quadrant):
                    if start + lane < partitions:
                        with m.Case(start):
                            m.d.comb += word.eq(data.word_select(start + lane, bits))
            words.append(word)
        return words

    def _write(self, m, control, lanes, active, results):
        core, asked = self._core, control.write
        wanted = Signal(self._lanes)
        m.d.comb += [wanted.eq(active & Cat(lane.keep | ~asked.keeps for lane in lanes)),
                     control.write_ready.eq(~asked.psum | self.psum.write_ready)]
        special = Cat(lane.special for lane in lanes) & Mux(asked.valid & control.write_ready & asked.counts_special, active, 0)
        m.d.sync += self.special.eq(sum(special))
        words, strobe = [], Signal(WORD_BITS // 8)
        for index, result in enumerate(results):
            word = Signal(WORD_BITS, name=f"written_{index}")
            with m.Switch(asked.size):
                for size in range(3):
                    with m.Case(size):
                        m.d.comb += word.eq(result[:8 << size].replicate(WORD_BITS >> 3 + size))
            words.append(word)
        with m.Switch(asked.size):
            for size in range(3):
                with m.Case(size):
                    m.d.comb += strobe.eq(((1 << (1 << size)) - 1) << asked.at[:LANE_BITS])
        m.d.comb += [
            self.write.enable.eq(asked.valid & ~asked.psum), self.write.address.eq(asked.at[LANE_BITS:]),
            self.write.strobe.eq(strobe), self.psum.write.eq(asked.valid & asked.psum),
            self.psum.write_address.eq(asked.at[2:])]
        for data, mask, bits, partitions in ((self.write.data, self.write.mask, WORD_BITS, core.rows),
                                             (self.psum.write_data, self.psum.mask, PSUM_WORD_BITS, core.cols)):
            quadrant = max(1, partitions // 4)
            with m.Switch(asked.partition):
                for start in range(0, partitions, quadrant):
                    with m.Case(start):
                        # A shift as wide would cost minutes: each of its bits depends on all others.
                        m.d.comb += [data.eq(Cat(Const(0, start * bits), *(word[:bits] for word in words[:partitions - start]))),
                                     mask.eq(wanted[:partitions - start].shift_left(start))]
