"""The tensor engine's control: commands in, one wave, one load and one read a cycle out."""

from amaranth import Array, Module, Mux, Signal
from amaranth.lib import data, fifo, stream, wiring
from amaranth.lib.wiring import In, Out

from spec.formats import FORMAT_CODES
from spec.tensor import FP32_PASSES, WEIGHTS_PER_CYCLE, Opcode, command_fields

from ..arith.quarter_product import PASSES
from ..memory.psum import ACCUMULATE_DISTANCE, read_layout
from .operand import OperandShapes
from .wave import WaveShapes, buffer_depth

__all__ = ["QUEUE_DEPTH", "TensorIssue", "command_layout", "starved_layout"]

QUEUE_DEPTH = 4
"""Commands of a kind that wait."""
READ_TAG_BITS = 4


def _older(age, oldest):
    """An age one cycle later; it stops at ``oldest``."""
    return Mux(age == oldest, oldest, age + 1)


def command_layout(core):
    """The command as a structure; see :func:`spec.tensor.command_fields`."""
    return data.StructLayout(dict(command_fields(core)))


starved_layout = data.StructLayout({"no_moving": 1, "no_weights": 1, "no_instruction": 1})
"""What the next wave lacks: its moving operand, its weights, or the MULTIPLY that asks for it."""


class TensorIssue(wiring.Component):
    """Takes commands in order and issues waves, loads and reads so that every hazard is kept by hardware.

    A LOAD follows the last wave of the weights before it across the array at two columns a cycle; a MULTIPLY starts as
    soon as its weights are sure to lead its wave; successive MULTIPLYs leave no gap. A READ waits until all
    MULTIPLYs before it are stored; a MULTIPLY waits until READs before it of the same bank are sent.

    Latency: command to first load 2 cycles; first load to first wave 2 cycles. Throughput: one wave a cycle; weights
    can change every ``cols / 2 + 1`` cycles, but not before ``cols / tile + 2``.

    Parameters
    ----------
    core : spec.config.CoreConfig

    Members
    -------
    command : In(stream)
    moving_level, stationary_level : In
        Words in the operand buffers that have not been issued.
    wave, load, read : Out
        This cycle's instructions.
    retired : In(1)
        A MULTIPLY's last sum is stored.
    read_ready : In(1)
        The last word read has been taken, or is being taken.
    read_valid : Out(1)
        A word read is waiting to be taken.
    starved : Out(starved_layout)
        Why there is no wave in this cycle, where that is for want of something.
    """

    module_name = "onc_tensor_issue"

    def __init__(self, core):
        self._core = core
        self._shapes = WaveShapes(core, OperandShapes(core))
        level = buffer_depth(core).bit_length()
        super().__init__({
            "command": In(stream.Signature(command_layout(core))),
            "moving_level": In(level), "stationary_level": In(level),
            "wave": Out(self._shapes.wave), "load": Out(self._shapes.load), "read": Out(read_layout(core)),
            "retired": In(1), "read_ready": In(1), "read_valid": Out(1), "starved": Out(starved_layout),
        })

    def elaborate(self, platform):
        m = Module()
        core = self._core
        # While a READ waits, no more MULTIPLYs than this are let through behind it, so that counts can be compared.
        in_flight = core.adder_stages * core.rows + core.cols + 32
        self._tag_bits = in_flight.bit_length() + 1
        self._oldest = core.cols + 8

        load_queue = self._queue(m, "load_queue", {
            "tag": READ_TAG_BITS, "replaces": 1, "beats": core.cols.bit_length(), "format": 4, "paired": 1, "raw": 1,
            "rows": self._shapes.rows_held})
        multiply_queue = self._queue(m, "multiply_queue", {
            "swap": 1, "load_tag": READ_TAG_BITS, "waits_for_read": 1, "read_tag": READ_TAG_BITS, "quarter": 1,
            "paired": 1, "count": core.psum_bank_words.bit_length(), "format": 4, "rows": self._shapes.rows_held,
            "destination": self._shapes.destination})
        read_queue = self._queue(m, "read_queue", {
            "multiply_tag": self._tag_bits, "count": core.psum_bank_words.bit_length(), "bank": self.read.bank.shape(),
            "offset": self.read.offset.shape()})

        self._reads_sent = Signal(READ_TAG_BITS)
        self._dispatch(m, load_queue, multiply_queue, read_queue)
        swap, age = Signal(), self._age_counter(m)
        m.d.comb += swap.eq(self.wave.swap)
        load_state = self._load_unit(m, load_queue, swap, age)
        self._multiply_unit(m, multiply_queue, load_state, age)
        self._read_unit(m, read_queue)
        return m

    @staticmethod
    def _queue(m, name, fields):
        layout = data.StructLayout(fields)
        queue = fifo.SyncFIFO(width=layout.size, depth=QUEUE_DEPTH)
        m.submodules[name] = queue
        entry, head = Signal(layout, name=f"{name}_entry"), Signal(layout, name=f"{name}_head")
        m.d.comb += [queue.w_data.eq(entry), head.eq(queue.r_data)]
        queue.entry, queue.head = entry, head
        return queue

    def _dispatch(self, m, load_queue, multiply_queue, read_queue):
        """Send each command to its unit, with what it must wait for."""
        command, banks = self.command.payload, self._core.psum_banks
        loads, multiplies, reads = Signal(READ_TAG_BITS), Signal(self._tag_bits), Signal(READ_TAG_BITS)
        fresh = Signal()
        weights = Signal(data.StructLayout({"rows": self._shapes.rows_held, "columns": command.columns.shape(),
                                            "fp32": 1, "paired": 1, "integer": 1, "transpose": 1}))
        outstanding = Array(Signal(range(QUEUE_DEPTH + 2), name=f"outstanding_{bank}") for bank in range(banks))
        last_read = Array(Signal(READ_TAG_BITS, name=f"last_read_{bank}") for bank in range(banks))

        rows_held = Signal(self._shapes.rows_held)
        elements = (command.contraction + 1) >> 1
        integer = command.format == FORMAT_CODES["int8"]
        m.d.comb += [
            rows_held.first_row.eq(command.first_row),
            rows_held.first_end.eq(command.first_row + Mux(command.paired, elements, command.contraction)),
            rows_held.second_end.eq(command.first_row + Mux(command.paired, command.contraction - elements, 0)),
        ]
        new_load = load_queue.entry
        m.d.comb += [
            new_load.tag.eq(loads + 1), new_load.replaces.eq(fresh), new_load.format.eq(command.format),
            new_load.beats.eq((command.columns + (WEIGHTS_PER_CYCLE - 1)) // WEIGHTS_PER_CYCLE),
            new_load.paired.eq(command.paired), new_load.raw.eq(command.transpose | integer),
            new_load.rows.eq(rows_held),
        ]
        new_multiply, destination = multiply_queue.entry, multiply_queue.entry.destination
        m.d.comb += [
            new_multiply.swap.eq(fresh), new_multiply.load_tag.eq(loads),
            new_multiply.waits_for_read.eq(outstanding[command.bank] != 0),
            new_multiply.read_tag.eq(last_read[command.bank]),
            new_multiply.quarter.eq(~weights.transpose
                                    & (weights.fp32 | (command.format == FORMAT_CODES["fp32"]))),
            new_multiply.paired.eq(weights.paired), new_multiply.count.eq(command.count),
            new_multiply.format.eq(command.format), new_multiply.rows.eq(weights.rows),
            destination.accumulate.eq(command.accumulate), destination.integer.eq(weights.integer),
            destination.transpose.eq(weights.transpose), destination.columns.eq(weights.columns),
            destination.bank.eq(command.bank), destination.offset.eq(command.offset),
            destination.count_special.eq(command.count_special),
        ]
        new_read = read_queue.entry
        m.d.comb += [new_read.multiply_tag.eq(multiplies), new_read.count.eq(command.count),
                     new_read.bank.eq(command.bank), new_read.offset.eq(command.offset)]

        ahead, empty = Signal(self._tag_bits), Signal()
        m.d.comb += ahead.eq(multiplies - read_queue.head.multiply_tag)
        loaded = Signal()
        with m.Switch(command.opcode):
            with m.Case(Opcode.LOAD):
                m.d.comb += empty.eq((command.columns == 0) | (command.contraction == 0))
            with m.Case(Opcode.MULTIPLY):
                m.d.comb += empty.eq((command.count == 0) | ~loaded)
            with m.Default():
                m.d.comb += empty.eq(command.count == 0)
        with m.If(self.command.valid & empty):
            m.d.comb += self.command.ready.eq(1)
        with m.Elif(self.command.valid):
            with m.Switch(command.opcode):
                with m.Case(Opcode.LOAD):
                    m.d.comb += [load_queue.w_en.eq(1), self.command.ready.eq(load_queue.w_rdy)]
                    with m.If(load_queue.w_rdy):
                        m.d.sync += [
                            loads.eq(loads + 1), loaded.eq(1), fresh.eq(1), weights.rows.eq(rows_held),
                            weights.columns.eq(command.columns), weights.paired.eq(command.paired),
                            weights.fp32.eq(command.format == FORMAT_CODES["fp32"]),
                            weights.integer.eq(integer & ~command.transpose), weights.transpose.eq(command.transpose),
                        ]
                with m.Case(Opcode.MULTIPLY):
                    room = multiply_queue.w_rdy & ~(read_queue.r_rdy & ahead[-1])
                    m.d.comb += [multiply_queue.w_en.eq(room), self.command.ready.eq(room)]
                    with m.If(room):
                        m.d.sync += [multiplies.eq(multiplies + 1), fresh.eq(0)]
                with m.Case(Opcode.READ):
                    m.d.comb += [read_queue.w_en.eq(1), self.command.ready.eq(read_queue.w_rdy)]
                    with m.If(read_queue.w_rdy):
                        m.d.sync += [reads.eq(reads + 1), last_read[command.bank].eq(reads + 1)]
                with m.Default():
                    m.d.comb += self.command.ready.eq(1)

        self._read_done_bank = Signal(self.read.bank.shape())
        self._read_done = Signal()
        new_read_taken = read_queue.w_en & read_queue.w_rdy
        for bank in range(banks):
            begins = new_read_taken & (command.bank == bank)
            ends = self._read_done & (self._read_done_bank == bank)
            with m.If(begins & ~ends):
                m.d.sync += outstanding[bank].eq(outstanding[bank] + 1)
            with m.Elif(ends & ~begins):
                m.d.sync += outstanding[bank].eq(outstanding[bank] - 1)

    def _age_counter(self, m):
        """Cycles since weights were last swapped at the first row and column, up to when the wave has left the array."""
        age = Signal(range(self._oldest + 1), init=self._oldest)
        with m.If(self.wave.swap):
            m.d.sync += age.eq(1)
        with m.Else():
            m.d.sync += age.eq(_older(age, self._oldest))
        return age

    def _load_unit(self, m, queue, swap, age):
        """Issue the words of one LOAD after another; the next starts when the last is in use or replaced."""
        state = Signal(data.StructLayout({"tag": READ_TAG_BITS, "beats": queue.head.beats.shape(),
                                          "index": queue.head.beats.shape(), "spare": 1, "settled": 1}))
        entry = Signal.like(queue.head)
        own_age = Signal.like(age)
        busy = state.index != state.beats
        # Column 2i takes its weight only after the wave before, one column a cycle, has taken the old one into use.
        may_follow = own_age >= (state.index << 1)
        issues = Signal()
        m.d.comb += issues.eq(busy & may_follow & (self.stationary_level != 0))
        m.d.sync += own_age.eq(_older(own_age, self._oldest))
        with m.If(issues):
            m.d.sync += state.index.eq(state.index + 1)
        m.d.sync += state.settled.eq(state.index != 0)
        with m.If(swap):
            m.d.sync += state.spare.eq(0)

        ends = issues & (state.index + 1 == state.beats)
        with m.If((~busy | ends) & queue.r_rdy & (~state.spare | queue.head.replaces)):
            m.d.comb += queue.r_en.eq(1)
            m.d.sync += [state.tag.eq(queue.head.tag), state.beats.eq(queue.head.beats), state.index.eq(0),
                         state.spare.eq(1), entry.eq(queue.head), own_age.eq(_older(age, self._oldest))]

        pointer = self._pointer(m, "stationary_pointer", issues)
        m.d.comb += [
            self.load.active.eq(issues), self.load.index.eq(state.index), self.load.format.eq(entry.format),
            self.load.paired.eq(entry.paired), self.load.raw.eq(entry.raw), self.load.rows.eq(entry.rows),
            self.load.pointer.eq(pointer),
        ]
        return state

    def _pointer(self, m, name, advances):
        """A pointer that walks through an operand buffer."""
        pointer = Signal(range(buffer_depth(self._core)), name=name)
        with m.If(advances):
            m.d.sync += pointer.eq(Mux(pointer == buffer_depth(self._core) - 1, 0, pointer + 1))
        return pointer

    def _multiply_unit(self, m, queue, load_state, age):
        """Issue the waves of one MULTIPLY after another, without a gap where nothing must be waited for."""
        entry, destination = queue.head, self.wave.destination
        done, step = Signal.like(entry.count), Signal(range(FP32_PASSES))
        first = (done == 0) & (step == 0)
        last_step, last = step == Mux(entry.quarter, FP32_PASSES - 1, 0), Signal()
        m.d.comb += last.eq((done + 1 == entry.count) & last_step)

        # The wave may start when the weights of its first columns are on their way and all others are sure to follow
        # in time: they are in the buffer, and the wave that they in turn have to follow is far enough ahead.
        remaining = load_state.beats - load_state.index
        weights_lead = (
            (load_state.tag == entry.load_tag) & load_state.settled
            & ((load_state.index >= 2) | (remaining == 0)) & (remaining <= self.stationary_level)
            & (age >= self._core.cols // self._core.tile + 2)
        )
        reads_past = (self._reads_sent - entry.read_tag)[:READ_TAG_BITS]
        bank_free = ~entry.waits_for_read | ~reads_past[-1]
        may_start = (~entry.swap | weights_lead) & bank_free

        offset = Signal.like(destination.offset)
        m.d.comb += offset.eq(entry.destination.offset + done)
        clash = self._accumulate_clash(m, entry, offset)
        issues = Signal()
        m.d.comb += issues.eq(queue.r_rdy & (~first | may_start) & ~clash
                              & (entry.destination.transpose | (self.moving_level != 0)))
        lacks_weights = first & entry.swap & ~weights_lead
        m.d.comb += [
            self.starved.no_instruction.eq(~queue.r_rdy), self.starved.no_weights.eq(queue.r_rdy & lacks_weights),
            self.starved.no_moving.eq(queue.r_rdy & ~lacks_weights & ~entry.destination.transpose & (self.moving_level == 0)),
        ]
        pops = issues & last_step
        pointer = self._pointer(m, "moving_pointer", pops & ~entry.destination.transpose)
        with m.If(issues):
            m.d.sync += step.eq(Mux(last_step, 0, step + 1))
        with m.If(pops):
            m.d.sync += done.eq(Mux(last, 0, done + 1))
            m.d.comb += queue.r_en.eq(last)

        steps = Array(passing.as_bits() for passing in PASSES)
        single = PASSES[-1].shape().const({"a_high": 1, "b_high": 1, "first": 1}).as_bits()
        m.d.comb += [
            self.wave.active.eq(issues & ~entry.destination.transpose),
            self.wave.swap.eq(issues & first & entry.swap),
            self.wave.pops.eq(pops & ~entry.destination.transpose),
            self.wave.format.eq(entry.format), self.wave.paired.eq(entry.paired),
            self.wave.step.as_value().eq(Mux(entry.quarter, steps[step], single)),
            self.wave.rows.eq(entry.rows),
            # A transpose moves nothing: its n-th wave selects the n-th row.
            self.wave.pointer.eq(Mux(entry.destination.transpose, entry.rows.first_row + done, pointer)),
            destination.eq(entry.destination), destination.offset.eq(offset),
            destination.commit.eq(pops), destination.last.eq(last),
        ]

    def _accumulate_clash(self, m, entry, offset):
        """Whether this wave would accumulate onto a word whose last sum is not stored yet."""
        clash = 0
        word = data.StructLayout({"valid": 1, "bank": entry.destination.bank.shape(), "offset": offset.shape()})
        previous = self.wave.destination
        valid, bank, place = previous.commit, previous.bank, previous.offset
        for distance in range(1, ACCUMULATE_DISTANCE):
            recent = Signal(word, name=f"recent_{distance}")
            m.d.sync += [recent.valid.eq(valid), recent.bank.eq(bank), recent.offset.eq(place)]
            clash |= recent.valid & (recent.bank == entry.destination.bank) & (recent.offset == offset)
            valid, bank, place = recent.valid, recent.bank, recent.offset
        return clash & entry.destination.accumulate

    def _read_unit(self, m, queue):
        """Read the words of one READ after another when all MULTIPLYs before it are stored."""
        entry = queue.head
        retired, done = Signal(self._tag_bits), Signal.like(entry.count)
        m.d.sync += retired.eq(retired + self.retired)
        stored = ~(retired - entry.multiply_tag)[self._tag_bits - 1]
        waiting, waiting_last, waiting_bank = Signal(), Signal(), Signal.like(entry.bank)
        issues, last = Signal(), done + 1 == entry.count
        m.d.comb += issues.eq(queue.r_rdy & stored & (~waiting | self.read_ready))
        m.d.comb += [self.read.enable.eq(issues), self.read.bank.eq(entry.bank),
                     self.read.offset.eq(entry.offset + done), self.read_valid.eq(waiting)]
        taken = waiting & self.read_ready
        m.d.comb += [self._read_done.eq(taken & waiting_last), self._read_done_bank.eq(waiting_bank)]
        with m.If(taken):
            m.d.sync += waiting.eq(0)
        with m.If(issues):
            m.d.sync += [waiting.eq(1), waiting_last.eq(last), waiting_bank.eq(entry.bank),
                         done.eq(Mux(last, 0, done + 1))]
            m.d.comb += queue.r_en.eq(last)
        m.d.sync += self._reads_sent.eq(self._reads_sent + self._read_done)
