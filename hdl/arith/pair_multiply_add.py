"""Two products of 8-bit floating-point formats, added onto binary32."""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from spec.formats import FLOAT_FORMATS, FORMAT_CODES, PAIR_FORMATS

from .align_add import AlignAdd
from .checks import check_factors
from .layouts import SUM_FRACTION_BITS, OperandFormat, connect_term, pack, partial_sum_layout, unpack
from .normalize_round import NormalizeRound
from .pair_product import PairProduct
from .recode import Recode

__all__ = ["PairMultiplyAdd"]

FLOAT_PAIR_FORMATS = tuple(name for name in PAIR_FORMATS if name in FLOAT_FORMATS)


class PairMultiplyAdd(wiring.Component):
    """``o = c + (a0 * b0 + a1 * b1)``, rounded to binary32 after each of the two additions (rule N5).

    Latency: 4 cycles. Throughput: one a cycle. The inputs and ``o`` are not registered.

    Parameters
    ----------
    a_format, b_format : str
        Floating-point formats of rule N5: e4m3, e5m2 and e4m3fn, e4m3 never with e4m3fn.

    Members
    -------
    a0, a1, b0, b1 : In(8)
    second : In(1)
        When low there is no second element: ``a1`` and ``b1`` are ignored and the step is rule N1's.
    c, o : In(32), Out(32)
        Binary32.

    Raises
    ------
    TypeError
        A format is not named by a string.
    ValueError
        A format that rule N5 does not name, or two that do not go together.
    """

    latency = 4

    def __init__(self, a_format, b_format):
        check_factors(a_format, b_format, FLOAT_PAIR_FORMATS)
        self._formats = {"a": a_format, "b": b_format}
        self.module_name = f"onc_pair_fma_{a_format}_{b_format}"
        super().__init__({"a0": In(8), "a1": In(8), "b0": In(8), "b1": In(8), "second": In(1), "c": In(32), "o": Out(32)})

    @property
    def facts(self):
        """Formats and latency for the manifest."""
        return {"formats": list(self._formats.values()), "latency_cycles": self.latency}

    def elaborate(self, platform):
        m = Module()
        operand = OperandFormat(self._formats.values())
        m.submodules.products = products = PairProduct(operand, operand)
        # +0 times -0 is -0, which added to the first product leaves even the sign of a zero as it is.
        absent = {"a1": operand.layout.const({}), "b1": operand.layout.const({"sign": 1})}
        for name in ("a0", "b0", "a1", "b1"):
            format_name = self._formats[name[0]]
            m.submodules[f"recode_{name}"] = recode = Recode([format_name], operand)
            m.d.comb += [recode.bits.eq(getattr(self, name)), recode.format.eq(FORMAT_CODES[format_name])]
            value = Mux(self.second, recode.o, absent[name]) if name in absent else recode.o
            register = Signal(operand.layout, name=f"{name}_operand", reset_less=True)
            m.d.sync += register.eq(value)
            m.d.comb += getattr(products, name).eq(register)

        m.submodules.align = align = AlignAdd(len(products.o.significand) - 2, SUM_FRACTION_BITS)
        m.submodules.round = rounding = NormalizeRound(align.window)
        term, exact = Signal.like(products.o, reset_less=True), Signal.like(align.o, reset_less=True)
        addend, waiting = Signal(partial_sum_layout), self.c
        for number in range(3):
            register = Signal(32, name=f"c_{number}", reset_less=True)
            m.d.sync += register.eq(waiting)
            waiting = register
        m.d.sync += [term.eq(products.o), exact.eq(align.o)]
        m.d.comb += [
            *unpack(addend, waiting), align.x.eq(term), *connect_term(align.y, addend),
            rounding.i.eq(exact), self.o.eq(pack(rounding.o)),
        ]
        return m
