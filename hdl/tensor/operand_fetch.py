"""One operand of the tensor engine, read from the state buffer along its access pattern."""

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from spec.dma import ENGINE_BYTES
from spec.memory import OFFSET_BITS

from ..memory.local_access import LANE_BITS, SIZE_BITS
from ..memory.lockstep import lockstep_read
from ..memory.odometer import Odometer, walk_layout
from .operand import PAIR_ELEMENT_BITS

__all__ = ["OperandFetch", "operand_walk_layout"]

operand_walk_layout = data.StructLayout({"size": SIZE_BITS, "paired": 1, **{name: field.shape for name, field in walk_layout}})
"""What to read; the element's size is a power of two of bytes. In pairs the last step leads from an element to its partner,
and its count does not matter."""


class OperandFetch(wiring.Component):
    """Reads the elements of an access pattern, in all partitions at once, and hands them on as operand slots.

    Each cycle it reads one word and takes from it the next element, and in pairs the partner too where that lies in the same
    word; else the partner takes a cycle of its own.

    Latency: request to the first word of slots 2 cycles, where the state buffer is free. Throughput: an element (pair) a
    cycle, from one pattern to the next without a gap.

    Parameters
    ----------
    core : spec.config.CoreConfig
    slots : int
        Elements of a word of ``o``: 1, or 2. The last word of a pattern may hold less.

    Members
    -------
    i : In(stream of operand_walk_layout)
        All its elements are within the partitions.
    read : Out(lockstep_read)
    o : Out(stream)
        ``rows * slots`` slots, row after row, a row's slots side by side.
    done : Out(1)
        For one cycle: the last element of a pattern is being read.
    """

    def __init__(self, core, slots):
        self._core, self._slots = core, slots
        super().__init__({
            "i": In(stream.Signature(operand_walk_layout)), "read": Out(lockstep_read(core)),
            "o": Out(stream.Signature(core.rows * slots * core.slot_bits)), "done": Out(1)})

    @property
    def module_name(self):
        return f"onc_operand_fetch_{self._slots}"

    def elaborate(self, platform):
        m = Module()
        walk, active = Signal(operand_walk_layout), Signal()
        m.submodules.odometer = odometer = Odometer()
        at, partner_only, last = odometer.at, Signal(), odometer.ends.all()
        m.d.comb += [
            odometer.first.eq(self.i.payload.offset), odometer.steps.eq(walk.steps), odometer.counts.eq(walk.counts),
            odometer.counts[-1].eq(Mux(walk.paired, 1, walk.counts[-1]))]

        partner = Signal(OFFSET_BITS)
        m.d.comb += partner.eq(at + walk.steps[-1])
        same_word = partner[LANE_BITS:] == at[LANE_BITS:]
        takes = Signal(data.StructLayout({"first": 1, "second": 1}))
        m.d.comb += [
            takes.first.eq(~partner_only), takes.second.eq(walk.paired & (partner_only | same_word)),
            self.read.address.eq(Mux(partner_only, partner, at)[LANE_BITS:]),
        ]
        stalled, reads = Signal(), Signal()
        m.d.comb += [stalled.eq(self.o.valid & ~self.o.ready), self.read.enable.eq(active & ~stalled),
                     reads.eq(self.read.enable & self.read.ready)]
        whole = reads & (takes.second | ~walk.paired)
        m.d.comb += [odometer.advance.eq(whole), odometer.start.eq(self.i.ready & self.i.valid), self.done.eq(whole & last),
                     self.i.ready.eq(~active | self.done)]
        with m.If(reads):
            m.d.sync += partner_only.eq(~whole)
        with m.If(self.i.ready):
            m.d.sync += [active.eq(self.i.valid), walk.eq(self.i.payload)]

        slot = Signal(range(max(2, self._slots)))
        completes = whole & (last | (slot == self._slots - 1))
        with m.If(whole):
            m.d.sync += slot.eq(Mux(completes, 0, slot + 1))
        self._gather(m, reads, completes, slot, takes, walk, at, partner)
        return m

    def _gather(self, m, reads, completes, slot, takes, walk, at, partner):
        """A cycle later the word is there: its elements go out, or wait until their word of slots is whole and taken."""
        core, slots = self._core, self._slots
        arrived = Signal(data.StructLayout({
            "valid": 1, "completes": 1, "paired": 1, "slot": slot.shape(), "first": 1, "second": 1,
            "first_lane": LANE_BITS, "second_lane": LANE_BITS}))
        waiting = Signal()
        m.d.sync += [
            arrived.valid.eq(reads), arrived.completes.eq(completes), arrived.paired.eq(walk.paired), arrived.slot.eq(slot),
            arrived.first.eq(takes.first), arrived.second.eq(takes.second), arrived.first_lane.eq(at[:LANE_BITS]),
            arrived.second_lane.eq(partner[:LANE_BITS]), waiting.eq(self.o.valid & ~self.o.ready),
        ]
        m.d.comb += self.o.valid.eq(waiting | (arrived.valid & arrived.completes))

        pairs = core.slot_bits >= 2 * PAIR_ELEMENT_BITS
        payload = []
        for row in range(core.rows):
            word = self.read.data.word_select(row, 8 * ENGINE_BYTES)
            first, lanes = Signal(core.slot_bits, name=f"first_{row}"), range(ENGINE_BYTES)
            m.d.comb += first.eq(Array((word >> 8 * lane)[:core.slot_bits] for lane in lanes)[arrived.first_lane])
            second = word.word_select(arrived.second_lane, PAIR_ELEMENT_BITS)
            for index in range(slots):
                held, new = (Signal(core.slot_bits, name=f"{name}_{row}_{index}") for name in ("held", "new"))
                here = arrived.valid & (arrived.slot == index)
                m.d.comb += new.eq(held)
                with m.If(here & arrived.first):
                    m.d.comb += new.eq(first)
                if pairs:
                    with m.If(here & arrived.paired):
                        m.d.comb += new[PAIR_ELEMENT_BITS:2 * PAIR_ELEMENT_BITS].eq(
                            Mux(arrived.second, second, held[PAIR_ELEMENT_BITS:2 * PAIR_ELEMENT_BITS]))
                m.d.sync += held.eq(new)
                payload.append(new)
        m.d.comb += self.o.payload.eq(Cat(payload))
