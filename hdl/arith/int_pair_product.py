"""The sum of two products of 8-bit integers: rule N13's term."""

from amaranth import Module, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["IntPairProduct"]


class IntPairProduct(wiring.Component):
    """``o = a0 * b0 + a1 * b1`` in two's complement, exact; combinational.

    Members
    -------
    a0, b0, a1, b1 : In(signed(8))
    o : Out(signed(17))
    """

    a0: In(signed(8))
    b0: In(signed(8))
    a1: In(signed(8))
    b1: In(signed(8))
    o: Out(signed(17))

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.o.eq(self.a0 * self.b0 + self.a1 * self.b1)
        return m
