"""The exact product of two binary32 operands in four passes of 12-bit partial products: rule N4's term."""

from amaranth import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .layouts import EXPONENT_BITS, product_layout

__all__ = ["QuarterProduct", "CHUNK_BITS", "PASSES", "chunk_layout", "pass_layout"]

CHUNK_BITS = 12
"""Bits of the significand that one pass multiplies."""

pass_layout = data.StructLayout({"a_high": 1, "b_high": 1, "first": 1})
"""Which halves this pass multiplies, and whether it begins a product."""

PASSES = tuple(pass_layout.const({"a_high": high_a, "b_high": high_b, "first": not high_a and not high_b})
               for high_a in (0, 1) for high_b in (0, 1))
"""The four passes of a product, in order."""


def chunk_layout(operand):
    """An operand of which one half of the significand, hidden bit included, is present."""
    return data.StructLayout({"chunk": CHUNK_BITS, "exponent": operand.exponent_bits, "sign": 1})


class QuarterProduct(wiring.Component):
    """``o = a * b``, exact to 48 bits. Latency: 1 cycle after the last pass. Throughput: one in four cycles.

    An operand of at most 12 significand bits takes one pass: both high halves, marked ``first``.

    Parameters
    ----------
    operand : OperandFormat
        A form with 23 fraction bits.

    Members
    -------
    a : In(chunk_layout(operand))
        The half that ``step`` names; zero in both halves for a zero.
    b : In(operand.layout)
    step : In(pass_layout)
    o : Out(product_layout(46))
        Complete after the pass with both high halves.
    """

    def __init__(self, operand):
        if operand.fraction_bits != 2 * CHUNK_BITS - 1:
            raise ValueError(f"Operand must have {2 * CHUNK_BITS - 1} fraction bits, not {operand.fraction_bits}")
        self._operand = operand
        super().__init__({
            "a": In(chunk_layout(operand)), "b": In(operand.layout), "step": In(pass_layout),
            "o": Out(product_layout(2 * operand.fraction_bits)),
        })

    def elaborate(self, platform):
        m = Module()
        a, b, step, o = self.a, self.b, self.step, self.o
        is_zero, is_infinity, is_nan = self._operand.is_zero, self._operand.is_infinity, self._operand.is_nan

        b_chunk = Mux(is_zero(b), 0, Mux(step.b_high, Cat(b.fraction[CHUNK_BITS:], Const(1, 1)),
                                         b.fraction[:CHUNK_BITS]))
        partial, partial_step = Signal(2 * CHUNK_BITS), Signal(pass_layout)
        sign, exponent = Signal(), Signal(signed(EXPONENT_BITS))
        infinity, nan = Signal(), Signal()
        m.d.sync += [
            partial.eq(a.chunk * b_chunk),
            partial_step.eq(step),
            sign.eq(a.sign ^ b.sign),
            exponent.eq(a.exponent + b.exponent - (2 * self._operand.bias - 127)),
            infinity.eq(is_infinity(a) | is_infinity(b)),
            nan.eq(is_nan(a) | is_nan(b) | (is_zero(a) & is_infinity(b)) | (is_infinity(a) & is_zero(b))),
        ]

        # Each pass adds at its own place to what the passes before it left.
        gathered = Signal(4 * CHUNK_BITS)
        both_high, any_high = partial_step.a_high & partial_step.b_high, partial_step.a_high | partial_step.b_high
        placed = Mux(both_high, partial << (2 * CHUNK_BITS), Mux(any_high, partial << CHUNK_BITS, partial))
        m.d.comb += o.significand.eq(Mux(partial_step.first, 0, gathered) + placed)
        m.d.sync += gathered.eq(o.significand)
        m.d.comb += [o.sign.eq(sign), o.exponent.eq(exponent), o.infinity.eq(infinity), o.nan.eq(nan)]
        return m
