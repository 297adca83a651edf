"""Leads the elements of an instruction through the lanes: reads of words, tokens, running results, writes."""

from amaranth import Cat, Const, EnableInserter, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from spec.formats import FORMAT_CODES
from spec.isa import DIMENSIONS
from spec.memory import OFFSET_BITS, PARTITION_BITS
from spec.vector import SHUFFLE_GROUP

from ..arith.convert import Convert
from ..arith.reciprocal import Reciprocal
from ..memory.local_access import LANE_BITS, SIZE_BITS
from ..memory.odometer import Odometer
from .lane import DIVISION_DELAY, LANE_LATENCY, loads_layout
from .layouts import FORMAT_BITS, PARTIALS, join_layout, setting_layout, task_layout, token_layout

__all__ = ["VectorControl", "read_layout", "write_layout"]

_JOINS_AT = LANE_LATENCY - 4
"""Stage at which a step of joining meets the results of tokens: its result is 4 cycles away."""

read_layout = data.StructLayout({"enable": 1, "at": OFFSET_BITS, "partition": PARTITION_BITS})
"""A word to read: a byte of it, and the first partition."""

write_layout = data.StructLayout({
    "valid": 1, "psum": 1, "at": OFFSET_BITS, "partition": PARTITION_BITS, "size": SIZE_BITS, "keeps": 1, "counts_special": 1})
"""Elements to write, one a lane: their byte and first partition; ``keeps``: only where the lane's predicate holds."""

_group_layout = data.StructLayout({"valid": 1, "last": 1, "highest": range(PARTIALS), "half": 1})
"""The end of what gives one result: whether it is the last one, its highest running result, and in which half they are."""

_result_layout = data.StructLayout({"valid": 1, "last": 1, "reduced": 1})


def _join_steps(count):
    """The steps that join so many running results: the two, and which of them the step before gives."""
    steps, present = [], list(range(count))
    while len(present) > 1:
        steps += list(zip(present[::2], present[1::2]))
        present = present[::2]
    firsts = [None, *(a for a, _ in steps)]
    return [(a, b, a == before, b == before) for (a, b), before in zip(steps, firsts)] or [(0, 0, False, False)]


class VectorControl(wiring.Component):
    """Carries out one instruction after the other.

    Of each operand the word that was read last is kept, so that its other elements cost no read. Each buffer gives a word a
    cycle, and may be asked ahead.

    Latency: 6 cycles from a task to its first read, as many more as it has partitions where there is an affine value; from the
    last read to the last write 8, and 9 more for a reduction's joining. Throughput: an element a cycle, or in two where it
    needs two words of the same buffer; of a scan an element in two cycles, of reciprocals one in eight.

    Members
    -------
    i : In(stream of task_layout)
    done : Out(1)
        For one cycle: the last result is written.
    busy : Out(1)
        It has a task.
    sbuf, psum : Out(read_layout), sbuf_ready, psum_ready : In(1)
    sbuf_arrives, psum_arrives : Out
        First partition of the read of the cycle before.
    loads : Out(loads_layout), row_lane : Out
        ``loads.row`` is for one lane.
    partitions : Out
        How many lanes work.
    level, sources : Out
        Where lanes are joined: by 2^level lanes further on, and how many have anything.
    exchange : Out
        Whose collected element the lanes get.
    shuffles : Out(1), mask : Out
        Results go to other lanes.
    enable, setting, token, join, target : Out
        See :class:`hdl.vector.lane.VectorLane`.
    write : Out(write_layout), write_ready : In(1)
    """

    @property
    def module_name(self):
        return f"onc_vector_control_{self._levels}"

    def __init__(self, lanes):
        self._levels = max(1, (lanes - 1).bit_length())
        super().__init__({
            "i": In(stream.Signature(task_layout)), "done": Out(1), "busy": Out(1), "sbuf": Out(read_layout), "sbuf_ready": In(1),
            "psum": Out(read_layout), "psum_ready": In(1), "sbuf_arrives": Out(PARTITION_BITS),
            "psum_arrives": Out(PARTITION_BITS), "loads": Out(loads_layout), "row_lane": Out(PARTITION_BITS),
            "partitions": Out(PARTITION_BITS + 1), "enable": Out(1), "level": Out(range(self._levels)),
            "sources": Out(PARTITION_BITS + 1), "exchange": Out(range(SHUFFLE_GROUP)), "shuffles": Out(1),
            "mask": Out(data.ArrayLayout(8, SHUFFLE_GROUP)),
            "setting": Out(setting_layout), "token": Out(token_layout), "join": Out(join_layout), "target": Out(FORMAT_BITS),
            "write": Out(write_layout), "write_ready": In(1)})

    def elaborate(self, platform):
        m = Module()
        task = Signal(task_layout, reset_less=True)
        m.d.comb += [self.setting.eq(task.setting), self.partitions.eq(task.partitions), self.sources.eq(task.sources),
                     self.shuffles.eq(task.shuffles), self.mask.eq(task.mask),
                     self.enable.eq(~self.write.valid | self.write_ready)]
        begins, run = Signal(), Signal()
        scalar_read, scalar_number = Signal(), Signal()
        advance, last, group = self._elements(m, task, begins, run, scalar_read, scalar_number)
        joined = self._joins(m, task, group)
        ended = self._results(m, task, advance, last, joined, begins)

        loads = self.loads
        value, lane = Signal(32), Signal(PARTITION_BITS)
        m.d.comb += self.row_lane.eq(lane)
        scalar_loads = Signal(2)
        with m.FSM() as fsm:
            m.d.comb += self.busy.eq(~fsm.ongoing("idle"))
            with m.State("idle"):
                m.d.comb += self.i.ready.eq(1)
                m.d.sync += task.eq(self.i.payload)
                with m.If(self.i.valid):
                    m.next = "scalar_0"
            for number in range(2):
                with m.State(f"scalar_{number}"):
                    scalar = task.scalars[number]
                    m.d.comb += [scalar_read.eq(scalar.stored), scalar_number.eq(number)]
                    with m.If(~scalar.stored):
                        m.d.comb += [loads.scalars[number].eq(1), loads.value.eq(scalar.value)]
                    with m.If(~scalar.stored | self.sbuf_ready):
                        m.d.sync += scalar_loads[number].eq(scalar.stored)
                        m.next = f"arrive_{number}"
                with m.State(f"arrive_{number}"):
                    m.d.comb += [loads.scalars[number].eq(scalar_loads[number]), loads.stored.eq(1),
                                 loads.upper.eq(task.scalars[number].value[LANE_BITS - 1])]
                    m.next = "begin" if number else "scalar_1"
            with m.State("begin"):
                m.d.comb += [begins.eq(1), loads.state.eq(1)]
                m.d.sync += [value.eq(task.base), lane.eq(0)]
                m.next = "run"
                with m.If(task.affine):
                    m.next = "rows"
            with m.State("rows"):
                m.d.comb += [loads.row.eq(1), loads.value.eq(value)]
                m.d.sync += [value.eq(value + task.multiplier), lane.eq(lane + 1)]
                with m.If(lane + 1 == task.partitions):
                    m.next = "run"
            with m.State("run"):
                m.d.comb += run.eq(1)
                with m.If(advance & last):
                    m.next = "drain"
            with m.State("drain"):
                with m.If(ended):
                    m.d.comb += self.done.eq(~task.more)
                    m.next = "idle"
        return m

    def _elements(self, m, task, begins, run, scalar_read, scalar_number):
        """Reads what the next element needs, and lets it go when all of it has been asked for.

        Source 1 is an element ahead where it can be: what its next element needs is asked for in a cycle in which source 0 needs
        nothing, so that one buffer serves both without a gap.
        """
        advance, last, allowed, pause = Signal(), Signal(), Signal(), Signal(range(Reciprocal.interval))
        sources = [task.source0, task.source1]
        odometers, needs, granted, tags, held = [], [], [], [], []
        for number, source in enumerate(sources):
            m.submodules[f"odometer_{number}"] = odometer = Odometer()
            tag, holds = Signal(OFFSET_BITS, name=f"tag_{number}"), Signal(name=f"holds_{number}")
            needed, at = Signal(name=f"need_{number}"), odometer.at
            same = (tag[LANE_BITS:] == at[LANE_BITS:]) & (~source.psum | (tag[LANE_BITS - 1] == at[LANE_BITS - 1]))
            m.d.comb += [odometer.start.eq(begins), odometer.first.eq(source.walk.offset), odometer.steps.eq(source.walk.steps),
                         odometer.counts.eq(source.walk.counts), needed.eq(source.used & ~(holds & same))]
            odometers.append(odometer)
            needs.append(needed)
            granted.append(Signal(name=f"granted_{number}"))
            tags.append(tag)
            held.append(holds)
        m.submodules.affine = affine = Odometer(32)
        m.d.comb += [affine.start.eq(begins), affine.counts.eq(task.result.walk.counts), affine.advance.eq(advance),
                     *(affine.steps[index].eq(task.affine_steps[index].as_signed()) for index in range(DIMENSIONS))]
        ends = Mux(task.source0.used, odometers[0].ends, affine.ends)
        m.d.comb += [last.eq(ends.all()), allowed.eq(run & self.enable)]

        # ``ready``: source 1 is at the next element already; what the present one needs was asked for, ``changed``: a new word.
        ready, changed, byte_ahead, goes_ahead = Signal(), Signal(), Signal(LANE_BITS), Signal()
        same_buffer = task.source0.psum == task.source1.psum
        m.d.comb += goes_ahead.eq(ready & ~needs[0] & (pause == 0))
        asks = [needs[0] & ~(needs[1] & ~ready & same_buffer), needs[1] & (~ready | goes_ahead)]
        for source, odometer, asked, given, tag, holds in zip(sources, odometers, asks, granted, tags, held):
            for is_psum, read, readiness in ((0, self.sbuf, self.sbuf_ready), (1, self.psum, self.psum_ready)):
                with m.If(allowed & asked & (source.psum == is_psum)):
                    m.d.comb += [read.eq(Cat(Const(1, 1), odometer.at, source.partition)), given.eq(readiness)]
            with m.If(given):
                m.d.sync += [tag.eq(odometer.at), holds.eq(1)]
            with m.If(begins):
                m.d.sync += holds.eq(0)
        for number, scalar in enumerate(task.scalars):
            with m.If(scalar_read & (scalar_number == number)):
                m.d.comb += self.sbuf.eq(Cat(Const(1, 1), scalar.value[:OFFSET_BITS], scalar.partition))
        has_word = ~needs[1] | granted[1]
        asked_for = allowed & has_word & (~ready | advance)
        m.d.comb += [
            advance.eq(allowed & (pause == 0) & (~needs[0] | granted[0]) & (ready | has_word)),
            odometers[0].advance.eq(advance), odometers[1].advance.eq(asked_for),
        ]
        with m.If(allowed):
            m.d.sync += ready.eq(Mux(ready, ~advance | asked_for, asked_for & ~advance))
            with m.If(asked_for):
                m.d.sync += [changed.eq(granted[1]), byte_ahead.eq(odometers[1].at[:LANE_BITS])]
        with m.If(begins):
            m.d.sync += ready.eq(0)

        loads = Signal(loads_layout, name="arriving")
        m.d.sync += [loads.word0.eq(granted[0]), loads.ahead1.eq(granted[1]), loads.direct1.eq(~ready),
                     loads.word1.eq(advance & Mux(ready, changed, granted[1])), self.sbuf_arrives.eq(self.sbuf.partition),
                     self.psum_arrives.eq(self.psum.partition)]
        m.d.comb += [*(self.loads[name].eq(loads[name]) for name in ("word0", "ahead1", "word1", "direct1")),
                     self.loads.psum.eq(Cat(source.psum for source in sources))]

        partial, beyond, half, group_ends = Signal(range(PARTIALS)), Signal(), Signal(), Signal()
        for axes in range(1, DIMENSIONS + 1):
            with m.If(task.axes == axes):
                m.d.comb += group_ends.eq(ends[:axes].all())
        position = Signal(signed(32))
        m.submodules.convert = EnableInserter(self.enable)(convert := Convert(["int32"], ["fp32"]))
        entered = Signal(token_layout)
        m.d.comb += [convert.bits.eq(position), convert.source.eq(FORMAT_CODES["int32"]), convert.target.eq(FORMAT_CODES["fp32"]),
                     self.token.eq(entered), self.token.position.eq(convert.o)]
        with m.If(self.enable):
            m.d.sync += [entered.valid.eq(advance), 
                         entered.affine.eq(Mux(task.setting.finds | task.setting.collects, position, affine.at)), entered.first.eq(~beyond),
                         entered.partial.eq(partial), entered.half.eq(half),
                         entered.byte0.eq(Mux(task.source0.psum, 0, odometers[0].at[:LANE_BITS])),
                         entered.byte1.eq(Mux(task.source1.psum, 0, Mux(ready, byte_ahead, odometers[1].at[:LANE_BITS])))]
            with m.If(pause != 0):
                m.d.sync += pause.eq(pause - 1)
        with m.If(advance):
            m.d.sync += pause.eq(Mux(task.setting.divides, Reciprocal.interval - 1,
                                     Mux(task.setting.spans, self._levels - 1, task.setting.scans)))
            m.d.sync += [partial.eq(Mux(group_ends, 0, partial + 1)),
                         beyond.eq(~group_ends & (beyond | (partial == PARTIALS - 1))),
                         half.eq(half ^ group_ends), position.eq(position + 1)]
        with m.If(begins):
            m.d.sync += [partial.eq(0), beyond.eq(0), half.eq(0), position.eq(task.start)]
        group = Signal(_group_layout)
        setting = task.setting
        gathers = setting.reduces | setting.reduces_results | setting.sorts | setting.finds | setting.collects
        waits = Signal(2)
        with m.If(self.enable):
            # A token meets the first operator two stages on; from there its lanes are joined, a level a cycle.
            m.d.sync += [waits.eq(Cat(entered.valid, waits)), self.level.eq(Mux(waits[0], 0, self.level + 1))]
        m.d.comb += group.eq(Cat(advance & group_ends & gathers, last,
                                 Mux(beyond, PARTIALS - 1, partial), half))
        return advance, last, group

    def _joins(self, m, task, group):
        """Starts when a group's last element is in its running result; gives what ends a group."""
        stages = [Signal(_group_layout, name=f"ends_{stage}") for stage in range(5)]
        ends = Signal()
        current, step, join = Signal(_group_layout), Signal(range(SHUFFLE_GROUP)), self.join
        with m.If(self.enable):
            m.d.sync += [later.eq(sooner) for sooner, later in zip([group, *stages], stages)]
            with m.If(stages[-1].valid):
                m.d.sync += [current.eq(stages[-1]), step.eq(0)]
            with m.Elif(current.valid):
                m.d.sync += [step.eq(step + 1), current.valid.eq(~ends)]
        m.d.comb += [join.valid.eq(current.valid), join.half.eq(current.half | task.setting.finds)]
        with m.Switch(current.highest):
            for highest in range(PARTIALS):
                with m.Case(highest):
                    steps = _join_steps(highest + 1)
                    m.d.comb += join.single.eq(highest == 0)
                    with m.Switch(step):
                        for number, (a, b, forward_a, forward_b) in enumerate(steps):
                            with m.Case(number):
                                m.d.comb += [join.a.eq(a), join.b.eq(b), join.forward_a.eq(forward_a),
                                             join.forward_b.eq(forward_b), join.final.eq(number == len(steps) - 1)]
        m.d.comb += ends.eq(join.final)
        with m.If(task.setting.sorts | task.setting.finds | task.setting.collects):
            # One after the other, as they are.
            results = Mux(task.setting.collects, task.sources, PARTIALS)
            m.d.comb += [join.a.eq(step), join.forward_a.eq(0), join.single.eq(1), join.final.eq(1), ends.eq(step + 1 == results)]
        with m.If(self.enable):
            m.d.sync += self.exchange.eq(step)
        joined = Signal(_result_layout)
        with m.If(join.valid & join.final):
            m.d.comb += joined.eq(Cat(Const(1, 1), current.last & ends, task.setting.reduces_results))
        return joined

    def _results(self, m, task, advance, last, joined, begins):
        """Follows results to where they are written; gives whether the last one is."""
        write, stages = self.write, [Signal(_result_layout, name=f"result_{stage}") for stage in range(LANE_LATENCY + 1)]
        ended = Signal()
        with m.If(self.enable):
            # Nothing of it may be set where there is no result: what ends a group joins in below.
            none = task.setting.reduces | task.setting.sorts | task.setting.finds | task.setting.collects
            enters = Mux(advance & ~none, Cat(Const(1, 1), last & ~task.setting.reduces_results, Const(0, 1)), 0)
            late = [Signal(_result_layout, name=f"late_{stage}") for stage in range(DIVISION_DELAY)]
            m.d.sync += [later.as_value().eq(sooner) for sooner, later in zip([enters, *late], late)]
            joining = late[self._levels - 2] if self._levels > 1 else enters
            m.d.sync += stages[0].eq(Mux(task.setting.divides, late[-1], Mux(task.setting.spans, joining, enters)))
            for stage, (sooner, later) in enumerate(zip(stages, stages[1:])):
                meets = sooner.as_value() | joined.as_value() if stage == _JOINS_AT else sooner.as_value()
                m.d.sync += later.as_value().eq(meets)
        m.submodules.odometer_result = odometer = Odometer()
        done, place = stages[-1], Mux(stages[-1].reduced, task.reduced.as_value(), task.result.as_value())
        where = Signal(task.result.shape(), name="where")
        m.d.comb += [
            where.eq(place), odometer.start.eq(begins), odometer.first.eq(task.result.walk.offset),
            odometer.steps.eq(task.result.walk.steps), odometer.counts.eq(task.result.walk.counts),
            odometer.advance.eq(done.valid & self.write_ready & ~done.reduced),
            self.target.eq(Mux(stages[LANE_LATENCY - 2].reduced, task.reduced.format, task.result.format)),
            write.valid.eq(done.valid & ~task.discards), write.psum.eq(where.psum), write.partition.eq(where.partition), write.size.eq(where.size),
            write.at.eq(Mux(done.reduced, task.reduced.walk.offset, odometer.at)), write.keeps.eq(task.keeps & ~done.reduced),
            write.counts_special.eq(task.count_special & ~done.reduced), ended.eq(done.valid & done.last & self.write_ready),
        ]
        return ended
