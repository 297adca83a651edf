"""One operator of the vector engine, chosen at run time."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from spec.formats import FLOAT_FORMATS
from spec.vector import OPERATORS

from ..arith.add import Add
from ..arith.multiply import Multiply

__all__ = ["OPERATOR_BITS", "VectorALU", "order_key"]

OPERATOR_BITS = (len(OPERATORS) - 1).bit_length()
_FP32 = FLOAT_FORMATS["fp32"]
_ONE = 0x3F80_0000
_SIGN = 1 << 31


def order_key(bits):
    """Orders binary32 as unsigned numbers; -0 is below +0, a NaN beyond the infinity of its sign."""
    return Cat(bits[:31] ^ bits[31].replicate(31), ~bits[31])


class VectorALU(wiring.Component):
    """``o = a op b``, any of ``spec.vector.OPERATORS`` (N6, N9), NaN canonical (N0).

    Latency: 1 cycle. Throughput: one a cycle. The inputs and ``o`` are not registered.

    Members
    -------
    operator : In(5)
        Its place in ``spec.vector.OPERATORS``; a number beyond them gives arbitrary bits.
    raw : In(1)
        The operands are bits, not binary32: ``bypass`` leaves a NaN's payload alone.
    a, b : In(32)
    o : Out(32)
    """

    def __init__(self):
        super().__init__({"operator": In(OPERATOR_BITS), "raw": In(1), "a": In(32), "b": In(32), "o": Out(32)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.add = add = Add()
        m.submodules.multiply = multiply = Multiply(latency=1)
        a, b, code = self.a, self.b, {name: number for number, name in enumerate(OPERATORS)}
        m.d.comb += [
            add.a.eq(a), add.b.eq(b ^ Mux(self.operator == code["subtract"], _SIGN, 0)), multiply.a.eq(a), multiply.b.eq(b)]

        magnitudes = Signal()
        m.d.comb += magnitudes.eq((self.operator == code["abs_max"]) | (self.operator == code["abs_min"]))
        x, y = (Signal(32, name=name) for name in ("x", "y"))
        for value, bits in ((x, a), (y, b)):
            m.d.comb += value.eq(bits & Mux(magnitudes, ~Const(_SIGN, 32), ~Const(0, 32)))
        nan, true = {}, {}
        for name, bits in (("a", a), ("b", b)):
            nan[name], true[name] = Signal(name=f"{name}_nan"), Signal(name=f"{name}_true")
            m.d.comb += [nan[name].eq(bits[:31] > _FP32.infinity), true[name].eq(bits[:31] != 0)]
        any_nan, less, equal, below = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            any_nan.eq(nan["a"] | nan["b"]),
            # In this order -0 is below +0, which minimum and maximum want and comparisons do not.
            below.eq(order_key(x) < order_key(y)),
            equal.eq(~any_nan & ((a == b) | ~(true["a"] | true["b"]))), less.eq(~any_nan & below & ~equal),
        ]
        outcomes = {
            "equal": equal, "not_equal": ~equal, "less": less, "less_equal": less | equal,
            "greater": ~any_nan & ~less & ~equal, "greater_equal": ~any_nan & ~less,
            "logical_and": true["a"] & true["b"], "logical_or": true["a"] | true["b"], "logical_xor": true["a"] ^ true["b"]}
        smaller, larger = Mux(below, x, y), Mux(below, y, x)
        values = {
            "bypass": Mux(nan["a"] & ~self.raw, _FP32.nan, a),
            **{name: Mux(any_nan, _FP32.nan, value) for name, value in (
                ("maximum", larger), ("minimum", smaller), ("abs_max", larger), ("abs_min", smaller))},
            **{name: Mux(outcome, _ONE, 0) for name, outcome in outcomes.items()},
            "bitwise_and": a & b, "bitwise_or": a | b, "bitwise_xor": a ^ b, "invert": ~a,
            "left_shift": Mux(b[5:] != 0, 0, (a << b[:5])[:32]), "right_shift": Mux(b[5:] != 0, 0, a >> b[:5])}
        other, adds, multiplies = Signal(32), Signal(), Signal()
        with m.Switch(self.operator):
            for name, value in values.items():
                with m.Case(code[name]):
                    m.d.sync += other.eq(value)
        m.d.sync += [adds.eq((self.operator == code["add"]) | (self.operator == code["subtract"])),
                     multiplies.eq(self.operator == code["multiply"])]
        m.d.comb += self.o.eq(Mux(adds, add.o, Mux(multiplies, multiply.o, other)))
        return m
