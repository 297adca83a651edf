"""The processing element: one weight, one multiply-accumulate a cycle."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..arith.layouts import partial_sum_layout
from .accumulate import Accumulator
from .operand import OperandShapes
from .product import ProductUnit

__all__ = ["PE"]


class PE(wiring.Component):
    """One multiply-accumulate of the array, weight stationary, the weight double-buffered (rules N1, N2, N4, N5, N13, N14).

    ``moving_i`` passes to the right-hand neighbour in one cycle; ``sum_i`` comes from the element above
    ``shapes.product_latency`` cycles after the moving operand that it belongs to, and the sum reaches the element below
    ``adder_stages`` cycles later, so rows follow each other at that distance. A row that holds no element is given +0
    to move and a weight of -0: adding the product, -0, leaves every running sum as it is, so that bypassing a row costs
    no gates.

    Latency: moving operand to the right 1 cycle; moving operand to ``sum_o`` ``adder_stages`` +
    ``shapes.product_latency`` cycles; ``sum_i`` to ``sum_o`` ``adder_stages`` cycles. Throughput: one
    multiply-accumulate a cycle, two in pairs, a quarter in fp32.

    Parameters
    ----------
    core : spec.config.CoreConfig
        ``formats``, ``fp8_pairs``, ``transpose`` and ``adder_stages`` decide what is built.

    Members
    -------
    moving_i, moving_o : OperandShapes.moving
        With ``control.swap`` the weight loaded last comes into use for this operand and those after it.
    sum_i, sum_o : partial_sum_layout
    weight_i : In(OperandShapes.weight)
        The next weight, taken when ``load`` is high.
    load : In(1)
    """

    module_name = "onc_pe"

    def __init__(self, core):
        self.shapes = OperandShapes(core)
        super().__init__({
            "moving_i": In(self.shapes.moving), "moving_o": Out(self.shapes.moving),
            "sum_i": In(partial_sum_layout), "sum_o": Out(partial_sum_layout),
            "weight_i": In(self.shapes.weight), "load": In(1),
        })

    @property
    def facts(self):
        """Latencies for the manifest."""
        stages = self.shapes.adder_stages
        return {"latency_cycles": {"moving_i to moving_o": 1, "sum_i to sum_o": stages,
                                   "moving_i to sum_o": stages + self.shapes.product_latency}}

    def elaborate(self, platform):
        m = Module()
        moving = Signal(self.shapes.moving, reset_less=True)
        swapped = Signal()
        m.d.sync += [moving.eq(self.moving_i), swapped.eq(self.moving_i.control.swap)]
        m.d.comb += [self.moving_o.eq(moving), self.moving_o.control.swap.eq(swapped)]

        next_weight = Signal(self.shapes.weight, reset_less=True)
        weight = Signal(self.shapes.weight, reset_less=True)
        with m.If(self.load):
            m.d.sync += next_weight.eq(self.weight_i)
        with m.If(self.moving_i.control.swap):
            m.d.sync += weight.eq(next_weight)

        m.submodules.product = product = ProductUnit(self.shapes)
        m.submodules.accumulate = accumulate = Accumulator(self.shapes)
        m.d.comb += [
            product.moving.eq(moving), product.weight.eq(weight),
            accumulate.term.eq(product.o), accumulate.sum_i.eq(self.sum_i), self.sum_o.eq(accumulate.sum_o),
        ]
        return m
