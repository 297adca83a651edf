"""Binary32 multiplication."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from spec.formats import FORMAT_CODES

from .align_add import AlignAdd
from .exact_product import ExactProduct
from .layouts import OperandFormat, pack
from .normalize_round import NormalizeRound
from .recode import Recode

__all__ = ["Multiply"]


class Multiply(wiring.Component):
    """``o = a * b`` in binary32, rounded to nearest even, subnormal numbers included (N6), NaN canonical (N0).

    Latency: ``latency`` cycles. Throughput: one a cycle. The inputs and ``o`` are not registered.

    Parameters
    ----------
    latency : int
        3, or 1 where a result must be there in the next cycle, at a longer path.

    Members
    -------
    a, b : In(32)
    o : Out(32)
        Binary32 patterns.
    """

    a: In(32)
    b: In(32)
    o: Out(32)

    def __init__(self, latency=3):
        if latency not in (1, 3):
            raise ValueError(f"Latency must be 1 or 3, not {latency}")
        self.latency = latency
        super().__init__()

    @property
    def module_name(self):
        """Names the latency where it is not 3."""
        return "onc_multiply" if self.latency == 3 else f"onc_multiply_{self.latency}"

    @property
    def facts(self):
        """Latency for the manifest."""
        return {"latency_cycles": self.latency}

    def elaborate(self, platform):
        m = Module()
        outer = m.d.comb if self.latency == 1 else m.d.sync  # the stages before and behind the middle one
        operand = OperandFormat(["fp32"])
        m.submodules.multiply = multiply = ExactProduct(operand, operand)
        for name, bits, factor in (("a", self.a, multiply.a), ("b", self.b, multiply.b)):
            m.submodules[f"recode_{name}"] = recode = Recode(["fp32"], operand)
            read = Signal(operand.layout, name=f"{name}_operand", reset_less=True)
            m.d.comb += [recode.bits.eq(bits), recode.format.eq(FORMAT_CODES["fp32"]), factor.eq(read)]
            outer += read.eq(recode.o)

        # Adding a zero of the product's sign changes nothing, but lifts a product below binary32's normal range to the
        # exponent of subnormal numbers, which rounding wants.
        m.submodules.align = align = AlignAdd(2 * operand.fraction_bits, 2 * operand.fraction_bits)
        m.submodules.round = rounding = NormalizeRound(align.window)
        product, exact = Signal.like(multiply.o, reset_less=True), Signal.like(align.o, reset_less=True)
        m.d.sync += product.eq(multiply.o)
        outer += exact.eq(align.o)
        m.d.comb += [
            align.x.eq(product), align.y.exponent.eq(1), align.y.sign.eq(product.sign),
            rounding.i.eq(exact), self.o.eq(pack(rounding.o)),
        ]
        return m
