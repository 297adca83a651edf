"""What an access pattern reaches: the first and last byte, and how many elements."""

from amaranth import Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from spec.isa import DIMENSIONS
from spec.memory import OFFSET_BITS

from ..control.layouts import pattern_layout
from ..control.sequencer import OFFSET_SHAPE
from .local_access import SIZE_BITS

__all__ = ["COUNT_BITS", "PatternRange"]

COUNT_BITS = 16
_BYTE_SHAPE = signed(OFFSET_SHAPE.width + 4)


class PatternRange(wiring.Component):
    """Walks the four (step, count) pairs of a pattern with one multiplier for reach and one for elements.

    Latency: 4 cycles from ``start`` to ``done``; the results hold until the next start.

    Members
    -------
    start : In(1), done : Out(1)
        A cycle each.
    pattern : In(pattern_layout), offset : In, size : In(2)
        Held from ``start`` to ``done``; the first element's byte, and an element's size as a power of two.
    paired : In(1)
        The last pair does not count elements: it leads to the partner.
    limit : In(21)
        Bytes of a partition.
    in_range : Out(1)
        Elements are at multiples of their size, none before the partition's beginning or beyond its end.
    elements : Out(16), too_many : Out(1)
        How many, or that there are more than 65,535.
    inner_pairs : In(3), inner : Out(16)
        How many elements the first so many pairs have.
    lowest, highest : Out
        First bytes of the elements that lie first and last.
    """

    module_name = "onc_pattern_range"

    def __init__(self):
        super().__init__({
            "start": In(1), "done": Out(1), "pattern": In(pattern_layout), "offset": In(OFFSET_SHAPE), "size": In(SIZE_BITS),
            "paired": In(1), "limit": In(OFFSET_BITS + 1), "in_range": Out(1), "elements": Out(COUNT_BITS),
            "too_many": Out(1), "inner_pairs": In(range(DIMENSIONS + 1)), "inner": Out(COUNT_BITS), "lowest": Out(_BYTE_SHAPE),
            "highest": Out(_BYTE_SHAPE)})

    def elaborate(self, platform):
        m = Module()
        number, active = Signal(range(DIMENSIONS)), Signal()
        step, count = Signal(signed(16)), Signal(COUNT_BITS)
        with m.Switch(number):
            for index in range(DIMENSIONS):
                with m.Case(index):
                    m.d.comb += [step.eq(self.pattern[f"step{index}"]), count.eq(self.pattern[f"count{index}"])]
        lowest, highest = self.lowest, self.highest
        reach, product = Signal(_BYTE_SHAPE), Signal(2 * COUNT_BITS)
        m.d.comb += [reach.eq((step * (count - 1).as_signed()) << self.size),
                     product.eq(self.elements * Mux(self.paired & (number == DIMENSIONS - 1), 1, count))]
        with m.If(self.start):
            m.d.sync += [active.eq(1), number.eq(0), lowest.eq(self.offset), highest.eq(self.offset),
                         self.elements.eq(1), self.too_many.eq(0)]
        with m.Elif(active):
            m.d.sync += [number.eq(number + 1), self.elements.eq(product), active.eq(number != DIMENSIONS - 1)]
            with m.If(number + 1 == self.inner_pairs):
                m.d.sync += self.inner.eq(product)
            with m.If(product[COUNT_BITS:] != 0):
                m.d.sync += self.too_many.eq(1)
            with m.If(reach < 0):
                m.d.sync += lowest.eq(lowest + reach)
            with m.Else():
                m.d.sync += highest.eq(highest + reach)
        ends = Signal()
        m.d.sync += ends.eq(active & (number == DIMENSIONS - 1))
        m.d.comb += [
            self.done.eq(ends),
            self.in_range.eq((lowest >= 0) & (highest + (1 << self.size) <= self.limit)
                             & ((self.offset & ((1 << self.size) - 1)) == 0)),
        ]
        return m
