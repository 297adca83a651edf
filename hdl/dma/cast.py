"""Casts the elements that pass through an engine."""

from amaranth import EnableInserter, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from spec.formats import FORMATS

from ..arith.convert import Convert
from .layouts import BYTES_BITS, SIDE_FORMAT_BITS, chunk_layout

__all__ = ["Cast"]


class Cast(wiring.Component):
    """Hands chunks on as they are, or takes them apart and casts each element (rule N7).

    Latency: none where nothing is cast, else 2 cycles. Throughput: a chunk a cycle, or an element.

    Members
    -------
    i : In(stream of chunk_layout), o : Out(stream of chunk_layout)
    source, target : In(4)
        Formats; nothing is cast where they are equal. Held for a transfer, as are the others.
    source_size, target_size : In(2)
        Of their elements, as powers of two of bytes.
    saturate : In(1)
    """

    module_name = "onc_dma_cast"

    def __init__(self):
        super().__init__({
            "i": In(stream.Signature(chunk_layout)), "o": Out(stream.Signature(chunk_layout)), "source": In(SIDE_FORMAT_BITS),
            "target": In(SIDE_FORMAT_BITS), "source_size": In(2), "target_size": In(2), "saturate": In(1)})

    def elaborate(self, platform):
        m = Module()
        convert, moves = Convert(FORMATS, FORMATS), Signal()
        m.submodules.convert = EnableInserter(moves)(convert)
        rest, left = Signal.like(self.i.payload.data), Signal(BYTES_BITS)
        failed, converted, converted_error = Signal(), Signal(), Signal()
        element = Signal(BYTES_BITS)
        m.d.comb += [
            convert.bits.eq(rest), convert.source.eq(self.source), convert.target.eq(self.target),
            convert.saturate.eq(self.saturate), element.eq(1 << self.source_size),
            moves.eq(~converted | self.o.ready),
        ]
        with m.If(self.source == self.target):
            m.d.comb += [self.o.payload.eq(self.i.payload), self.o.valid.eq(self.i.valid), self.i.ready.eq(self.o.ready)]
        with m.Else():
            m.d.comb += [
                self.o.payload.data.eq(convert.o), self.o.payload.bytes.eq(1 << self.target_size),
                self.o.payload.error.eq(converted_error), self.o.valid.eq(converted),
                self.i.ready.eq((left == 0) | ((left == element) & moves)),
            ]
            with m.If(moves):
                m.d.sync += [converted.eq(left != 0), converted_error.eq(failed)]
                with m.If(left != 0):
                    m.d.sync += [left.eq(left - element), rest.eq(rest >> (element << 3))]
            with m.If(self.i.valid & self.i.ready):
                m.d.sync += [left.eq(self.i.payload.bytes), rest.eq(self.i.payload.data), failed.eq(self.i.payload.error)]
        return m
