"""The rounded sum of two exact products: rule N5's term."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .align_add import AlignAdd
from .exact_product import ExactProduct
from .layouts import SUM_FRACTION_BITS, connect_term, product_layout
from .normalize_round import NormalizeRound

__all__ = ["PairProduct"]


class PairProduct(wiring.Component):
    """``o = round(a0 * b0 + a1 * b1)`` in binary32 (rule N5). Latency: 1 cycle. Throughput: one a cycle.

    Parameters
    ----------
    first, second : OperandFormat
        Forms of the two pairs' operands; they may differ in width. Only for 8-bit formats, whose products and sums
        never leave binary32's normal range.

    Members
    -------
    a0, b0 : In(first.layout)
    a1, b1 : In(second.layout)
    o : Out(product_layout(23))
    """

    def __init__(self, first, second):
        self._first, self._second = first, second
        super().__init__({
            "a0": In(first.layout), "b0": In(first.layout), "a1": In(second.layout), "b1": In(second.layout),
            "o": Out(product_layout(SUM_FRACTION_BITS)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.multiply_0 = multiply_0 = ExactProduct(self._first, self._first)
        m.submodules.multiply_1 = multiply_1 = ExactProduct(self._second, self._second)
        m.submodules.align = align = AlignAdd(2 * self._first.fraction_bits, 2 * self._second.fraction_bits)
        m.submodules.round = rounding = NormalizeRound(align.window)
        exact = Signal.like(align.o)
        m.d.comb += [
            multiply_0.a.eq(self.a0), multiply_0.b.eq(self.b0), multiply_1.a.eq(self.a1), multiply_1.b.eq(self.b1),
            align.x.eq(multiply_0.o), align.y.eq(multiply_1.o),
        ]
        m.d.sync += exact.eq(align.o)
        m.d.comb += rounding.i.eq(exact)
        m.d.comb += connect_term(self.o, rounding.o)
        return m
