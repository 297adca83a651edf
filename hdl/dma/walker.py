"""The addresses of one side of a transfer, in runs of bytes that follow each other."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from spec.dma import DIMENSIONS
from spec.memory import ADDRESS_BITS

from .layouts import BURST_BYTES, run_layout, side_layout

__all__ = ["Walker"]


class Walker(wiring.Component):
    """Walks the (step, count) pairs of a side; elements of the fastest pair that touch each other come as one run.

    Latency: 1 cycle from ``start``. Throughput: a run a cycle.

    Members
    -------
    start : In(1)
    side : In(side_layout), size : In(2)
        Held while it walks; an element's size as a power of two of bytes.
    o : Out(stream of run_layout)
    """

    module_name = "onc_dma_walker"

    def __init__(self):
        super().__init__({"start": In(1), "side": In(side_layout), "size": In(2), "o": Out(stream.Signature(run_layout))})

    def elaborate(self, platform):
        m = Module()
        dims = self.side.dims
        indices = [Signal(16, name=f"index_{index}") for index in range(DIMENSIONS)]
        # Where the present run of each dimension began; of the fastest, where it is.
        begins = [Signal(ADDRESS_BITS, name=f"begin_{index}") for index in range(DIMENSIONS)]
        at, element = begins[0], Signal(4)
        to_boundary, to_end = Signal(range(BURST_BYTES + 1)), Signal(19)
        length, elements = Signal(range(BURST_BYTES + 1)), Signal(range(BURST_BYTES + 1))
        m.d.comb += [
            element.eq(1 << self.size), to_boundary.eq(BURST_BYTES - at[:(BURST_BYTES - 1).bit_length()]),
            to_end.eq((dims[0].count - indices[0]) << self.size),
            length.eq(Mux(dims[0].step != element, element, Mux(to_end < to_boundary, to_end, to_boundary))),
            elements.eq(length >> self.size),
        ]
        ends = [indices[0] + elements == dims[0].count,
                *(index + 1 == dims[number].count for number, index in enumerate(indices) if number)]
        m.d.comb += [self.o.payload.address.eq(at), self.o.payload.bytes.eq(length), self.o.payload.last.eq(Cat(ends).all())]
        with m.If(self.o.valid & self.o.ready):
            for number in range(DIMENSIONS):
                carries = Cat(ends[:number]).all() if number else 1
                amount = elements if number == 0 else 1
                with m.If(carries):
                    m.d.sync += indices[number].eq(Mux(ends[number], 0, indices[number] + amount))
                with m.If(carries & ~ends[number]):
                    onward = Mux(dims[0].step == element, length, dims[0].step) if number == 0 else dims[number].step
                    place = (begins[number] + onward)[:ADDRESS_BITS]
                    m.d.sync += [begin.eq(place) for begin in begins[:number + 1]]
            with m.If(self.o.payload.last):
                m.d.sync += self.o.valid.eq(0)
        with m.If(self.start):
            m.d.sync += [self.o.valid.eq(1), *(begin.eq(self.side.address) for begin in begins)]
        return m
