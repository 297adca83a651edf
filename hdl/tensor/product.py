"""The first half of a processing element: what a row adds to the running sum."""

from amaranth import Cat, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..arith.exact_product import ExactProduct
from ..arith.int_pair_product import IntPairProduct
from ..arith.pair_product import PairProduct
from ..arith.quarter_product import QuarterProduct

__all__ = ["ProductUnit"]


class ProductUnit(wiring.Component):
    """The exact term of a row: a product, a rounded pair (N5), a gathered fp32 product (N4), integers, or raw bits.

    Latency: ``shapes.product_latency`` cycles, the register of ``o`` included. Throughput: one a cycle, fp32 one in four.

    Parameters
    ----------
    shapes : OperandShapes

    Members
    -------
    moving : In(shapes.moving)
    weight : In(shapes.weight)
    o : Out(shapes.term)
    """

    def __init__(self, shapes):
        self._shapes = shapes
        super().__init__({"moving": In(shapes.moving), "weight": In(shapes.weight), "o": Out(shapes.term)})

    def elaborate(self, platform):
        m = Module()
        shapes, operand, weight, control = self._shapes, self.moving.operand, self.weight, self.moving.control

        def staged(value):
            """``value`` one cycle later where the unit has two stages."""
            if shapes.product_latency == 1:
                return value
            register = Signal.like(value, name="staged", reset_less=True)
            m.d.sync += register.eq(value)
            return register

        later = staged(control)
        term = Signal(shapes.term)
        if shapes.main:
            product = self._main_product(m, operand.numbers.main, weight.numbers.main, control, staged)
            m.d.comb += self._widened(term.value.product, product)
        if shapes.second:
            pair = self._pair_product(m, operand.numbers, weight.numbers)
            with m.If(later.paired):
                m.d.comb += self._widened(term.value.product, pair)
        if shapes.has_integer:
            m.submodules.integer = integer = IntPairProduct()
            m.d.comb += [
                integer.a0.eq(operand.raw[:8]), integer.a1.eq(operand.raw[8:16]),
                integer.b0.eq(weight.raw[:8]), integer.b1.eq(weight.raw[8:16]),
            ]
            total = staged(integer.o)
            if shapes.main:
                with m.If(later.integer):
                    m.d.comb += term.value.integer.eq(total)
            else:
                m.d.comb += term.value.integer.eq(total)
        if shapes.has_transpose:
            raw = staged(weight.raw)
            with m.If(later.transpose):
                m.d.comb += term.value.raw.eq(raw)
        for name, _ in shapes.term["control"].shape:
            m.d.comb += term.control[name].eq(later[name])
        register = Signal(shapes.term, reset_less=True)
        m.d.sync += register.eq(term)
        m.d.comb += self.o.eq(register)
        return m

    def _main_product(self, m, a, b, control, staged):
        shapes = self._shapes
        if shapes.has_quarter:
            m.submodules.multiply = multiply = QuarterProduct(shapes.main)
            m.d.comb += [multiply.a.eq(a), multiply.b.eq(b), multiply.step.eq(control.step)]
            return multiply.o
        m.submodules.multiply = multiply = ExactProduct(shapes.main, shapes.main)
        m.d.comb += [multiply.a.eq(a), multiply.b.eq(b)]
        return staged(multiply.o)

    def _pair_product(self, m, a, b):
        shapes = self._shapes
        short = shapes.main.shortened(shapes.second.fraction_bits)
        m.submodules.pair = pair = PairProduct(short, shapes.second)
        a_fraction = a.main.chunk[:-1] if shapes.has_quarter else a.main.fraction
        for port, main, fraction in ((pair.a0, a.main, a_fraction), (pair.b0, b.main, b.main.fraction)):
            m.d.comb += [port.sign.eq(main.sign), port.exponent.eq(main.exponent),
                         port.fraction.eq(fraction[len(fraction) - short.fraction_bits:])]
        m.d.comb += [pair.a1.eq(a.second), pair.b1.eq(b.second)]
        return pair.o

    @staticmethod
    def _widened(target, source):
        """Assignments of a product to a target with as many fraction bits or more."""
        padding = len(target.significand) - len(source.significand)
        return [
            target.significand.eq(Cat(Const(0, padding), source.significand)),
            target.exponent.eq(source.exponent),
            target.sign.eq(source.sign),
            target.infinity.eq(source.infinity),
            target.nan.eq(source.nan),
        ]
