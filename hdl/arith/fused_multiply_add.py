"""Fused multiply-add of two formats' product onto binary32."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from spec.formats import FLOAT_FORMATS, FORMAT_CODES

from .align_add import AlignAdd
from .checks import check_factors
from .exact_product import ExactProduct
from .layouts import SUM_FRACTION_BITS, OperandFormat, connect_term, pack, partial_sum_layout, unpack
from .normalize_round import NormalizeRound
from .quarter_product import CHUNK_BITS, PASSES, QuarterProduct, pass_layout
from .recode import Recode

__all__ = ["FusedMultiplyAdd"]


class FusedMultiplyAdd(wiring.Component):
    """``o = a * b + c`` with one rounding to binary32 (rules N1, N4); tf32 is rounded to tf32 as it is read.

    Latency: 3 cycles; 7 where a format is fp32. Throughput: one a cycle; one in four cycles where a format is fp32.
    The inputs and ``o`` are not registered.

    Parameters
    ----------
    a_format, b_format : str
        Floating-point formats; fp32 goes only with fp32 or tf32, e4m3 never with e4m3fn.

    Attributes
    ----------
    latency, interval : int
        Cycles from operands to result, and from operands to the next operands.

    Members
    -------
    a, b : In(width of the format)
    c : In(32)
        Binary32.
    start : In(1)
        Only where a format is fp32: the operands are read in this cycle, and not again for ``interval`` cycles.
    o : Out(32)
        Binary32; where a format is fp32, valid for one cycle.

    Raises
    ------
    TypeError
        A format is not named by a string.
    ValueError
        An unknown format, or two that do not go together.
    """

    def __init__(self, a_format, b_format):
        check_factors(a_format, b_format, tuple(FLOAT_FORMATS))
        self._formats = {"a": a_format, "b": b_format}
        self._is_quarter = "fp32" in (a_format, b_format)
        self.interval = len(PASSES) if self._is_quarter else 1
        self.latency = self.interval + 3 if self._is_quarter else 3
        self.module_name = f"onc_fma_{a_format}_{b_format}"
        members = {"a": In(FLOAT_FORMATS[a_format].width), "b": In(FLOAT_FORMATS[b_format].width), "c": In(32),
                   "o": Out(32)}
        super().__init__(members | ({"start": In(1)} if self._is_quarter else {}))

    @property
    def facts(self):
        """Formats and latency for the manifest."""
        return {"formats": list(self._formats.values()), "latency_cycles": self.latency,
                "interval_cycles": self.interval}

    def elaborate(self, platform):
        m = Module()
        term, c = self._quarter_term(m) if self._is_quarter else self._single_term(m)
        m.submodules.align = align = AlignAdd(len(term.significand) - 2, SUM_FRACTION_BITS)
        m.submodules.round = rounding = NormalizeRound(align.window)
        addend, exact = Signal(partial_sum_layout), Signal.like(align.o, reset_less=True)
        m.d.comb += [*unpack(addend, c), align.x.eq(term), *connect_term(align.y, addend)]
        m.d.sync += exact.eq(align.o)
        m.d.comb += [rounding.i.eq(exact), self.o.eq(pack(rounding.o))]
        return m

    def _recoded(self, m, name, operand):
        format_name = self._formats[name]
        m.submodules[f"recode_{name}"] = recode = Recode([format_name], operand)
        m.d.comb += [recode.bits.eq(getattr(self, name)), recode.format.eq(FORMAT_CODES[format_name])]
        return recode.o

    def _single_term(self, m):
        """The product and the addend, both two cycles after the inputs."""
        both = OperandFormat(self._formats.values())
        forms = {name: both.shortened(FLOAT_FORMATS[f].fraction_bits) for name, f in self._formats.items()}
        m.submodules.multiply = multiply = ExactProduct(forms["a"], forms["b"])
        for name, factor in (("a", multiply.a), ("b", multiply.b)):
            register = Signal(forms[name].layout, name=f"{name}_operand", reset_less=True)
            m.d.sync += register.eq(self._recoded(m, name, forms[name]))
            m.d.comb += factor.eq(register)
        term = Signal.like(multiply.o, reset_less=True)
        c_early, c_late = Signal(32, reset_less=True), Signal(32, reset_less=True)
        m.d.sync += [term.eq(multiply.o), c_early.eq(self.c), c_late.eq(c_early)]
        return term, c_late

    def _quarter_term(self, m):
        """The product and the addend, both six cycles after the inputs."""
        operand = OperandFormat(["fp32"])
        m.submodules.multiply = multiply = QuarterProduct(operand)
        operands = {name: Signal(operand.layout, name=f"{name}_operand", reset_less=True) for name in self._formats}
        c_early, c_late = Signal(32, reset_less=True), Signal(32, reset_less=True)
        count = Signal(range(len(PASSES)))
        with m.If(self.start):
            m.d.sync += [operands[name].eq(self._recoded(m, name, operand)) for name in operands]
            m.d.sync += [c_early.eq(self.c), count.eq(0)]
        with m.Else():
            m.d.sync += count.eq(count + 1)

        step = Signal(pass_layout)
        with m.Switch(count):
            for number, constant in enumerate(PASSES):
                with m.Case(number):
                    m.d.comb += step.eq(constant)
        a = data.View(operand.layout, operands["a"])
        high = Cat(a.fraction[CHUNK_BITS:], ~operand.is_zero(a))
        m.d.comb += [
            multiply.a.chunk.eq(Mux(step.a_high, high, a.fraction[:CHUNK_BITS])),
            multiply.a.exponent.eq(a.exponent), multiply.a.sign.eq(a.sign),
            multiply.b.eq(operands["b"]), multiply.step.eq(step),
        ]
        # The next operands may arrive with the last pass, two cycles before the product meets its addend.
        term = Signal.like(multiply.o, reset_less=True)
        m.d.sync += term.eq(multiply.o)
        with m.If(count == len(PASSES) - 1):
            m.d.sync += c_late.eq(c_early)
        return term, c_late
