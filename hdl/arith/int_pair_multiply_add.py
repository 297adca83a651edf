"""Two products of 8-bit integers, added onto a 32-bit integer."""

from amaranth import Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .int_pair_product import IntPairProduct

__all__ = ["IntPairMultiplyAdd"]


class IntPairMultiplyAdd(wiring.Component):
    """``o = c + a0 * b0 + a1 * b1`` in 32-bit two's complement that wraps (rule N13).

    Latency: 1 cycle. Throughput: one a cycle. The inputs and ``o`` are not registered.

    Members
    -------
    a0, a1, b0, b1 : In(8)
        int8 patterns.
    second : In(1)
        When low there is no second element: ``a1`` and ``b1`` are ignored.
    c, o : In(32), Out(32)
        int32 patterns.
    """

    module_name = "onc_int_pair_multiply_add"
    latency = 1
    a0: In(8)
    a1: In(8)
    b0: In(8)
    b1: In(8)
    second: In(1)
    c: In(32)
    o: Out(32)

    @property
    def facts(self):
        """Latency for the manifest."""
        return {"latency_cycles": self.latency}

    def elaborate(self, platform):
        m = Module()
        m.submodules.products = products = IntPairProduct()
        term, addend = Signal(signed(17), reset_less=True), Signal(32, reset_less=True)
        m.d.comb += [
            products.a0.eq(self.a0), products.b0.eq(self.b0),
            products.a1.eq(Mux(self.second, self.a1, 0)), products.b1.eq(self.b1),
        ]
        m.d.sync += [term.eq(products.o), addend.eq(self.c)]
        m.d.comb += self.o.eq(addend + term)
        return m
