"""hdl/vector/lane.py against golden/vector.py: every operator on every class of formats, an element a cycle, through the conversions on
both sides."""

import functools

import numpy as np
import pytest

from golden import vector
from golden.formats import convert, decode
from hdl.emit import emit
from hdl.vector.lane import DIVISION_DELAY, LANE_LATENCY, VectorLane, loads_layout
from hdl.vector.layouts import join_layout, setting_layout, token_layout
from sim.model import Model
from spec.formats import FORMAT_CODES, FORMATS, INT_FORMATS
from spec.vector import ARITHMETIC, BITWISE, OPERATORS
from tests.corners import random_bits

CLASSES = [("fp32", "tf32", "bf16"), ("bf16", "fp16", "fp32"), ("fp8_e4m3", "fp8_e5m2", "fp16"), ("fp8_e4m3fn", "fp8_e3m4", "int8"),
           ("int8", "uint16", "tf32"), ("int32", "uint32", "int32"), ("uint8", "int16", "fp8_e5m2"), ("int16", "bf16", "fp8_e4m3"),
           ("uint16", "fp8_e5m2", "uint8"), ("fp16", "int32", "uint16"), ("tf32", "int8", "uint32"), ("fp32", "uint8", "fp8_e3m4"),
           ("uint32", "fp32", "fp8_e4m3fn"), ("fp8_e3m4", "fp8_e4m3", "int16")]
"""Formats of data, operand and result; each format stands once in each place."""
ELEMENTS = 20_000


@functools.cache
def model():
    return Model.build(emit(VectorLane()))


def pack(layout, **fields):
    """A structure as an integer."""
    return layout.const(fields).as_bits()


def rows(value, width, count):
    """The same value in every cycle."""
    data = np.frombuffer(value.to_bytes((width + 7) // 8, "little"), np.uint8)
    return np.tile(data, (count, 1))


def run(data, operand, target, interval=1, delay=0, **setting):
    """Results of elements that enter one after the other, data through the partial-sum buffer's word, the operand through the state
    buffer's."""
    lane = model()
    lane.reset()
    cycles = len(data) * interval + LANE_LATENCY + delay + 1
    for number in range(2):
        scalar = setting.pop(f"scalar{number}", 0)
        lane.poke("loads", pack(loads_layout, scalars=1 << number, value=int(scalar)))
        lane.poke("enable", 1)
        lane.step()
    lane.poke("setting", pack(setting_layout, **setting))
    lane.poke("loads", pack(loads_layout, word0=1, word1=1, direct1=1, psum=1))
    lane.poke("target", FORMAT_CODES[target])
    lane.poke("join", pack(join_layout))
    words = {"psum": np.zeros(cycles, np.uint32), "sbuf": np.zeros(cycles, np.uint64)}
    places = interval * np.arange(len(data))
    words["psum"][places], words["sbuf"][places] = data, operand
    token = rows(pack(token_layout), token_layout.size, cycles)
    token[places] = rows(pack(token_layout, valid=1), token_layout.size, 1)
    out = lane.vectors({**words, "token": token}, ["o", "special"])
    where = places + LANE_LATENCY + delay
    return out["o"][where], out["special"][where]


def sizes(*formats):
    return {f"{what}{number}": value for number, name in enumerate(formats)
            for what, value in (("format", FORMAT_CODES[name]), ("size", (FORMATS[name].width // 8).bit_length() - 1))}


def values(bits, name):
    return vector.canonical(decode(convert(bits, name, "fp32"), "fp32"))


def encoded(results, name):
    return convert(results.view(np.uint32), "fp32", name)


def same(got, expected, name):
    return np.array_equal(got & (1 << FORMATS[name].width) - 1, expected.astype(np.uint32))


@pytest.mark.parametrize("count", [ELEMENTS, pytest.param(1_000_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("formats", CLASSES, ids="-".join)
def test_every_operator(rng, formats, count):
    first, second, target = formats
    for operator in ARITHMETIC:
        a, b = random_bits(rng, first, count), random_bits(rng, second, count)
        got, special = run(a, b, target, op0=OPERATORS.index(operator), operand_in_0=1, **sizes(first, second))
        expected = encoded(vector.apply(operator, values(a, first), values(b, second)), target)
        assert same(got, expected, target), operator
        if target not in INT_FORMATS:
            assert np.array_equal(special, ~np.isfinite(decode(expected, target)))


@pytest.mark.parametrize("width", [8, 16, 32])
def test_every_operator_of_bits(rng, width):
    name = f"uint{width}"
    for operator in BITWISE:
        a, b = random_bits(rng, name, ELEMENTS), random_bits(rng, name, ELEMENTS)
        if operator.endswith("shift"):
            b = np.where(rng.random(ELEMENTS) < 0.8, b % 40, b).astype(b.dtype)
        got, _ = run(a, b, "fp32", op0=OPERATORS.index(operator), operand_in_0=1, raw=1, **sizes(name, name))
        mask = np.uint32((1 << width) - 1)
        assert np.array_equal(got & mask, vector.apply(operator, a.astype(np.uint32), b.astype(np.uint32)) & mask), operator


@pytest.mark.parametrize("operator", ARITHMETIC)
def test_the_second_operator_and_reversed_operands(rng, operator):
    a, b = random_bits(rng, "bf16", ELEMENTS), random_bits(rng, "fp16", ELEMENTS)
    scalars = random_bits(rng, "fp32", 2, specials=0)
    for reverse0, reverse1 in ((0, 0), (1, 0), (0, 1), (1, 1)):
        got, _ = run(a, b, "fp32", op0=OPERATORS.index("subtract"), op1=OPERATORS.index(operator), operand_in_1=1, reverse0=reverse0,
                     reverse1=reverse1, scalar0=scalars[0], scalar1=scalars[1], **sizes("bf16", "fp16"))
        inner = vector.apply("subtract", values(a, "bf16"), values(scalars[:1], "fp32"), reverse0)
        assert same(got, encoded(vector.apply(operator, inner, values(b, "fp16"), reverse1), "fp32"), "fp32")


def test_scans_take_two_cycles_an_element(rng):
    a, b = random_bits(rng, "bf16", 2000, specials=0.001), random_bits(rng, "bf16", 2000, specials=0)
    operators = ("multiply", "maximum")
    got, _ = run(a, b, "fp32", interval=2, scans=1, operand_in_1=1, op0=OPERATORS.index(operators[0]),
                 op1=OPERATORS.index(operators[1]), **sizes("bf16", "bf16"))
    expected = vector.scan(operators, (0, 0), values(a, "bf16")[None], values(b, "bf16")[None], np.zeros(1, np.float32))[0]
    assert same(got, encoded(expected, "fp32"), "fp32")


@pytest.mark.parametrize("source", ["bf16", "fp16"])
def test_the_reciprocal_of_every_narrow_number(source):
    bits = np.arange(1 << 16, dtype=np.uint16)
    got, _ = run(bits, bits, "fp32", interval=8, delay=DIVISION_DELAY, divides=1, **sizes(source, source))
    assert same(got, encoded(vector.reciprocal(values(bits, source)), "fp32"), "fp32")


def test_a_lane_that_is_not_enabled_stands_still(rng):
    a = random_bits(rng, "fp32", 100)
    got, _ = run(a, a, "fp32", **sizes("fp32", "fp32"))
    lane = model()
    lane.poke("enable", 0)
    before = lane.peek("o")
    lane.vectors({"psum": a}, [])
    assert lane.peek("o") == before and len(set(got.tolist())) > 10


def test_a_wrong_golden_is_noticed(rng):
    a, b = random_bits(rng, "fp32", 1000), random_bits(rng, "fp32", 1000)
    got, _ = run(a, b, "fp32", op0=OPERATORS.index("add"), operand_in_0=1, **sizes("fp32", "fp32"))
    assert not same(got, encoded(vector.apply("subtract", values(a, "fp32"), values(b, "fp32")), "fp32"), "fp32")
