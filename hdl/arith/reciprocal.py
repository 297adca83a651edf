"""The correctly rounded reciprocal of a binary32 number."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from spec.formats import FORMAT_CODES

from .align_add import AlignAdd
from .layouts import OperandFormat, pack
from .normalize_round import NormalizeRound
from .recode import Recode

__all__ = ["Reciprocal"]

_BITS_A_CYCLE = 4
_STEPS = 7
_QUOTIENT_BITS = _BITS_A_CYCLE * _STEPS


class Reciprocal(wiring.Component):
    """``o = 1 / x`` in binary32, rounded to nearest even, subnormal numbers included (N11), NaN canonical (N0).

    Restoring division, four bits of the quotient a cycle: 28 behind the first, which is 1, and whether a remainder is left, so that
    one rounding is exact.

    Latency: 9 cycles from ``start``, of which the last one gives ``o``, not registered. Throughput: one in 8 cycles.

    Members
    -------
    start : In(1)
    x : In(32)
        Not registered.
    o : Out(32)
    """

    module_name = "onc_reciprocal"
    latency, interval = 9, 8

    def __init__(self):
        super().__init__({"start": In(1), "x": In(32), "o": Out(32)})

    @property
    def facts(self):
        """Latency and interval for the manifest."""
        return {"latency_cycles": self.latency, "interval_cycles": self.interval}

    def elaborate(self, platform):
        m = Module()
        operand = OperandFormat(["fp32"])
        m.submodules.recode = recode = Recode(["fp32"], operand)
        x = recode.o
        m.d.comb += [recode.bits.eq(self.x), recode.format.eq(FORMAT_CODES["fp32"])]

        # 1 / (m 2^e) is (2 / m) 2^(-e - 1), with 2 / m from 1 to 2; where m is 1 it is 2^-e.
        width = operand.fraction_bits + 1
        divisor, rest, quotient = Signal(width), Signal(width), Signal(_QUOTIENT_BITS)
        held = Signal(operand.layout)
        is_power = x.fraction == 0
        with m.If(self.start):
            m.d.sync += [held.eq(x), divisor.eq(Cat(x.fraction, Const(1, 1))), quotient.eq(0),
                         rest.eq(Mux(is_power, 0, (1 << width) - Cat(x.fraction, Const(1, 1))))]
        with m.Else():
            step, bits = rest, []
            for index in range(_BITS_A_CYCLE):
                twice, fits, left = Signal(width + 1, name=f"twice_{index}"), Signal(name=f"fits_{index}"), Signal(
                    width, name=f"left_{index}")
                m.d.comb += [twice.eq(step << 1), fits.eq(twice >= divisor), left.eq(Mux(fits, twice - divisor, twice))]
                step = left
                bits.insert(0, fits)
            m.d.sync += [rest.eq(step), quotient.eq(Cat(*bits, quotient))]

        fraction_bits = 2 * operand.fraction_bits
        m.submodules.align = align = AlignAdd(fraction_bits, fraction_bits)
        m.submodules.round = rounding = NormalizeRound(align.window)
        term, exact = align.x, Signal.like(align.o, reset_less=True)
        padding = fraction_bits - _QUOTIENT_BITS - 1
        is_infinity = operand.is_infinity(held)
        m.d.comb += [
            term.significand.eq(Mux(is_infinity, 0, Cat(Const(0, padding), rest != 0, quotient, Const(1, 1)))),
            term.exponent.eq(Mux(is_infinity, 0, 127 + operand.bias - held.exponent - (held.fraction != 0))),
            term.sign.eq(held.sign), term.infinity.eq(operand.is_zero(held)), term.nan.eq(operand.is_nan(held)),
            # A zero of the same sign lifts what is below binary32's normal range to the exponent of subnormal numbers.
            align.y.exponent.eq(1), align.y.sign.eq(held.sign), rounding.i.eq(exact), self.o.eq(pack(rounding.o)),
        ]
        m.d.sync += exact.eq(align.o)
        return m
