"""Where an access pattern leads, one element after the other."""

from amaranth import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from spec.isa import DIMENSIONS
from spec.memory import OFFSET_BITS

__all__ = ["Odometer", "walk_layout"]

_COUNT_BITS = 16


_counts_layout = data.ArrayLayout(_COUNT_BITS, DIMENSIONS)


def _steps_layout(bits):
    return data.ArrayLayout(signed(bits + 1), DIMENSIONS)


walk_layout = data.StructLayout({"offset": OFFSET_BITS, "steps": _steps_layout(OFFSET_BITS), "counts": _counts_layout})
"""Bytes from the partitions' beginning to the first element, and the (step, count) pairs, steps in bytes."""


class Odometer(wiring.Component):
    """Walks the elements of a pattern.

    Latency: ``at`` is there the cycle after ``start`` or ``advance``. Throughput: an element a cycle.

    Parameters
    ----------
    bits : int
        Of a place; what is beyond wraps.

    Members
    -------
    start : In(1), first : In(bits)
        Go to the first element's place.
    steps, counts : In
        Of the pairs, steps in places; held while it walks.
    advance : In(1)
    at : Out(bits)
        The present element's place.
    ends : Out(4)
        Whether it is the last one of each pair's count.
    """

    def __init__(self, bits=OFFSET_BITS):
        self._bits = bits
        super().__init__({"start": In(1), "first": In(bits), "steps": In(_steps_layout(bits)), "counts": In(_counts_layout),
                          "advance": In(1), "at": Out(bits), "ends": Out(DIMENSIONS)})

    @property
    def module_name(self):
        return f"onc_odometer_{self._bits}"

    def elaborate(self, platform):
        m = Module()
        indices = [Signal(_COUNT_BITS, name=f"index_{index}") for index in range(DIMENSIONS)]
        # Where the present run of each slower dimension began.
        begins = [self.at, *(Signal(self._bits, name=f"begin_{index}") for index in range(1, DIMENSIONS))]
        ends = [index + 1 == self.counts[number] for number, index in enumerate(indices)]
        m.d.comb += self.ends.eq(Cat(ends))
        with m.If(self.advance):
            for dimension in range(DIMENSIONS):
                carries = Cat(ends[:dimension]).all() if dimension else 1
                with m.If(carries):
                    m.d.sync += indices[dimension].eq(Mux(ends[dimension], 0, indices[dimension] + 1))
                with m.If(carries & ~ends[dimension]):
                    place = (begins[dimension] + self.steps[dimension])[:self._bits]
                    m.d.sync += [begin.eq(place) for begin in begins[:dimension + 1]]
        with m.If(self.start):
            m.d.sync += [*(begin.eq(self.first) for begin in begins), *(index.eq(0) for index in indices)]
        return m
