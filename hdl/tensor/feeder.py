"""The left edge of one row: operand buffers, recoding, and the row's share of each instruction."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from spec.formats import FORMAT_CODES, FORMATS
from spec.tensor import WEIGHTS_PER_CYCLE

from ..arith.quarter_product import CHUNK_BITS
from ..arith.recode import Recode
from ..emit import place
from ..memory.sram import SRAM
from .operand import PAIR_ELEMENT_BITS, OperandShapes
from .wave import WaveShapes, buffer_depth

__all__ = ["RowFeeder", "buffer_write"]


def buffer_write(core, slots):
    """Members of the write side of a row's operand buffer of ``slots`` elements a word."""
    return wiring.Signature({
        "enable": Out(1), "address": Out((buffer_depth(core) - 1).bit_length()), "data": Out(slots * core.slot_bits),
    })


class RowFeeder(wiring.Component):
    """Feeds one row of the array from its buffers, in wavefront time.

    Instructions arrive from the row above and go on to the row below ``adder_stages`` cycles later, so that the
    addresses travel with the wavefront and no skew registers are needed.

    Latency: instruction to ``moving`` and ``weights`` 2 cycles, to ``wave_o`` and ``load_o`` ``adder_stages``.
    Throughput: one wave and one load a cycle.

    Parameters
    ----------
    core : spec.config.CoreConfig

    Members
    -------
    row : In
        Number of this row.
    wave_i, wave_o : WaveShapes.wave
    load_i, load_o : WaveShapes.load
    moving_write, stationary_write : In(buffer_write)
    moving : Out(OperandShapes.moving)
    weights : Out(WaveShapes.weights)
    """

    module_name = "onc_row_feeder"

    def __init__(self, core):
        self._core = core
        self._operands = OperandShapes(core)
        shapes = WaveShapes(core, self._operands)
        super().__init__({
            "row": In(max(1, (core.rows - 1).bit_length())),
            "wave_i": In(shapes.wave), "wave_o": Out(shapes.wave),
            "load_i": In(shapes.load), "load_o": Out(shapes.load),
            "moving_write": In(buffer_write(core, 1)), "stationary_write": In(buffer_write(core, WEIGHTS_PER_CYCLE)),
            "moving": Out(self._operands.moving), "weights": Out(shapes.weights),
        })

    def elaborate(self, platform):
        m = Module()
        self._moving_side(m, platform)
        self._stationary_side(m, platform)
        return m

    def _buffer(self, m, platform, name, write, instruction):
        sram = SRAM(len(write.data), buffer_depth(self._core))
        m.submodules[name] = place(platform, sram)
        m.d.comb += [
            sram.write_enable.eq(write.enable), sram.write_address.eq(write.address), sram.write_data.eq(write.data),
            sram.read_enable.eq(instruction.active), sram.read_address.eq(instruction.pointer),
        ]
        return sram.read_data

    def _travel(self, m, i, o):
        """The instruction one cycle later, on its way to the next row."""
        stages = [i, *(Signal.like(i, name_suffix=f"_{number}") for number in range(1, self._core.adder_stages + 1))]
        m.d.sync += [later.eq(earlier) for earlier, later in zip(stages, stages[1:])]
        m.d.comb += o.eq(stages[-1])
        return stages[1]

    def _holds(self, rows):
        """Whether this row holds a first and a second element."""
        below = self.row >= rows.first_row
        return below & (self.row < rows.first_end), below & (self.row < rows.second_end)

    def _recoded(self, m, name, slot, code):
        """A slot's first and second element as numbers; None where the configuration has no such numbers."""
        shapes, first, second = self._operands, None, None
        if shapes.main:
            m.submodules[f"recode_{name}"] = recode = Recode(shapes.float_formats, shapes.main)
            m.d.comb += [recode.bits.eq(slot), recode.format.eq(code)]
            first = recode.o
        if shapes.second:
            formats = [f for f in self._core.pair_formats if f != "int8"]
            m.submodules[f"recode_{name}_second"] = recode = Recode(formats, shapes.second)
            m.d.comb += [recode.bits.eq(slot[PAIR_ELEMENT_BITS:]), recode.format.eq(code)]
            second = recode.o
        return first, second

    def _moving_side(self, m, platform):
        shapes = self._operands
        slot = self._buffer(m, platform, "moving_buffer", self.moving_write, self.wave_i)
        wave = self._travel(m, self.wave_i, self.wave_o)
        destination = wave.destination
        holds_first, holds_second = (held & wave.active for held in self._holds(wave.rows))

        # A row that holds no element moves +0, all zeros.
        moving = Signal(shapes.moving)
        first, second = self._recoded(m, "moving", slot, wave.format)
        if first is not None:
            main = moving.operand.numbers.main
            with m.If(holds_first):
                m.d.comb += [main.sign.eq(first.sign), main.exponent.eq(first.exponent)]
                if shapes.has_quarter:
                    high = Cat(first.fraction[CHUNK_BITS:], ~shapes.main.is_zero(first))
                    m.d.comb += main.chunk.eq(Mux(wave.step.a_high, high, first.fraction[:CHUNK_BITS]))
                else:
                    m.d.comb += main.fraction.eq(first.fraction)
        if second is not None:
            with m.If(holds_second):
                m.d.comb += moving.operand.numbers.second.eq(second)
        if shapes.has_integer:
            with m.If(destination.integer):
                m.d.comb += moving.operand.as_value().eq(Cat(
                    slot[:PAIR_ELEMENT_BITS] & holds_first.replicate(PAIR_ELEMENT_BITS),
                    slot[PAIR_ELEMENT_BITS:2 * PAIR_ELEMENT_BITS] & holds_second.replicate(PAIR_ELEMENT_BITS)))
        control = {"swap": wave.swap, "step": wave.step, "paired": wave.paired, "integer": destination.integer,
                   "transpose": destination.transpose, "selected": wave.pointer == self.row}
        for name, _ in shapes.moving["control"].shape:
            m.d.comb += moving.control[name].eq(control[name])

        register = Signal(shapes.moving)
        m.d.sync += register.eq(moving)
        m.d.comb += self.moving.eq(register)

    def _stationary_side(self, m, platform):
        shapes, slot_bits = self._operands, self._core.slot_bits
        slots = self._buffer(m, platform, "stationary_buffer", self.stationary_write, self.load_i)
        load = self._travel(m, self.load_i, self.load_o)
        holds_first, holds_second = self._holds(load.rows)

        weights = Signal(self.weights.shape())
        m.d.comb += [weights.active.eq(load.active), weights.index.eq(load.index)]
        for lane in range(WEIGHTS_PER_CYCLE):
            slot, weight = slots.word_select(lane, slot_bits), weights.pair[lane]
            first, second = self._recoded(m, f"stationary_{lane}", slot, load.format)
            # A row that holds no element has a weight of -0, whose product with +0 leaves every sum as it is.
            if first is not None:
                minus_zero = shapes.main.layout.const({"sign": 1})
                m.d.comb += weight.numbers.main.eq(Mux(holds_first, first, minus_zero))
            if second is not None:
                minus_zero = shapes.second.layout.const({"sign": 1})
                m.d.comb += weight.numbers.second.eq(Mux(holds_second, second, minus_zero))
            if shapes.raw_bits:
                with m.If(load.raw):
                    m.d.comb += weight.raw.eq(self._raw(m, lane, slot, load))

        register = Signal(self.weights.shape(), reset_less=True)
        active = Signal()
        m.d.sync += [register.eq(weights), active.eq(weights.active)]
        m.d.comb += [self.weights.eq(register), self.weights.active.eq(active)]

    def _raw(self, m, lane, slot, load):
        """A slot's bits: both integers of a pair, or one element of the format's width, zero-extended."""
        raw = Signal(self._operands.raw_bits, name=f"raw_{lane}")
        with m.Switch(Cat(load.paired, load.format)):
            if self._operands.has_integer:
                with m.Case(FORMAT_CODES["int8"] << 1 | 1):
                    m.d.comb += raw.eq(slot[:2 * PAIR_ELEMENT_BITS])
            for name in self._core.formats if self._operands.has_transpose else ():
                with m.Case(FORMAT_CODES[name] << 1):
                    m.d.comb += raw.eq(slot[:FORMATS[name].width])
        return raw
