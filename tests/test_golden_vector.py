"""golden/vector.py against loops over numpy scalars, Python's integers and exact rationals, written from docs/vector-engine.md."""

import math

import numpy as np
import pytest

from golden import vector
from spec.formats import FLOAT_FORMATS
from spec.vector import ARITHMETIC, BITWISE, OPERATORS, REDUCTIONS
from tests import rational
from tests.corners import random_bits, special_bits

NAN, FP32 = 0x7FC0_0000, FLOAT_FORMATS["fp32"]


def test_find_against_a_search_in_lists(rng):
    pool = np.array([0, 1 << 31, 0x7FC0_0000, 0x7FC0_1234, 0x7F80_0000, 1, 0x3F80_0000], np.uint32).view(np.float32)
    elements, values = rng.choice(pool, (50, 12)), rng.choice(pool, (50, 8))
    def names(row):
        return ["nan" if value != value else value.tobytes() for value in row]
    for partition, places in enumerate(vector.find(elements, values).tolist()):
        left = names(elements[partition])
        for value, place in zip(names(values[partition]), places):
            expected = left.index(value) if value in left else -1
            assert place == expected
            if expected >= 0:
                left[expected] = None


def values(bits):
    return vector.canonical(np.asarray(bits, np.uint32).view(np.float32))


def pairs(rng, count):
    """All pairs of special values, and random ones."""
    a, b = (grid.ravel() for grid in np.meshgrid(special_bits("fp32"), special_bits("fp32")))
    return (values(np.concatenate([a, random_bits(rng, "fp32", count)])),
            values(np.concatenate([b, random_bits(rng, "fp32", count)])))


def extreme(a, b, larger):
    """Of two numbers, as Python orders them; of two zeros by sign."""
    if math.isnan(a) or math.isnan(b):
        return math.nan
    first, second = ((number, math.copysign(1, number)) for number in (a, b))
    return (max if larger else min)(first, second)[0]


REFEREES = {
    "bypass": lambda a, b: a,
    "maximum": lambda a, b: extreme(a, b, True), "minimum": lambda a, b: extreme(a, b, False),
    "abs_max": lambda a, b: extreme(abs(a), abs(b), True), "abs_min": lambda a, b: extreme(abs(a), abs(b), False),
    "equal": lambda a, b: float(a == b), "not_equal": lambda a, b: float(a != b), "greater": lambda a, b: float(a > b),
    "greater_equal": lambda a, b: float(a >= b), "less": lambda a, b: float(a < b), "less_equal": lambda a, b: float(a <= b),
    "logical_and": lambda a, b: float(bool(a) and bool(b)), "logical_or": lambda a, b: float(bool(a) or bool(b)),
    "logical_xor": lambda a, b: float(bool(a) != bool(b))}


@pytest.mark.parametrize("operator", REFEREES)
def test_operators_of_values_against_python(rng, operator):
    a, b = pairs(rng, 3000)
    expected = values(np.array([REFEREES[operator](float(x), float(y)) for x, y in zip(a, b)], np.float32).view(np.uint32))
    assert np.array_equal(vector.apply(operator, a, b).view(np.uint32), expected.view(np.uint32))
    swapped = vector.apply(operator, b, a, reverse=True)
    assert np.array_equal(swapped.view(np.uint32), expected.view(np.uint32))


def negated(x):
    return x if x == rational.NAN else (1 - x[0], *x[1:])


@pytest.mark.parametrize(("operator", "exact"), [
    ("add", rational.add), ("subtract", lambda x, y: rational.add(x, negated(y))), ("multiply", rational.multiply)])
def test_arithmetic_against_exact_rationals(rng, operator, exact):
    a, b = pairs(rng, 3000)
    results = vector.apply(operator, a, b).view(np.uint32)
    for x, y, result in zip(a.view(np.uint32), b.view(np.uint32), results):
        assert result == exact(rational.number(x, FP32), rational.number(y, FP32))


def test_arithmetic_of_special_values():
    inf = np.float32(np.inf)
    for operator, a, b, expected in (("add", inf, -inf, NAN), ("subtract", inf, inf, NAN), ("multiply", inf, 0, NAN),
                                     ("add", -0.0, -0.0, 0x8000_0000), ("subtract", 1, 1, 0), ("multiply", -1, 0, 0x8000_0000),
                                     ("add", inf, 1, 0x7F80_0000)):
        assert vector.apply(operator, np.float32(a), np.float32(b)).view(np.uint32) == expected


@pytest.mark.parametrize("operator", ("bypass", *BITWISE))
def test_operators_of_bits_against_python(rng, operator):
    a = rng.integers(0, 1 << 32, 3000, np.uint32)
    b = np.where(rng.random(3000) < 0.5, rng.integers(0, 40, 3000), rng.integers(0, 1 << 32, 3000)).astype(np.uint32)
    referee = {"bypass": lambda x, y: x, "bitwise_and": lambda x, y: x & y, "bitwise_or": lambda x, y: x | y,
               "bitwise_xor": lambda x, y: x ^ y, "invert": lambda x, y: x ^ 0xFFFF_FFFF,
               "left_shift": lambda x, y: x << min(y, 32) & 0xFFFF_FFFF, "right_shift": lambda x, y: x >> min(y, 32)}[operator]
    assert vector.apply(operator, a, b).tolist() == [referee(int(x), int(y)) for x, y in zip(a, b)]


def test_an_operator_of_bits_does_not_take_values():
    with pytest.raises(ValueError, match="bitwise_and does not work on values"):
        vector.apply("bitwise_and", np.float32(1), np.float32(2))
    assert set(REFEREES) | {"add", "subtract", "multiply"} == set(ARITHMETIC) and len(OPERATORS) == len(ARITHMETIC) + len(BITWISE)


def reduce_loop(operator, elements):
    """N8, word by word."""
    running = {}
    for index, element in enumerate(elements):
        place = index % 8
        if place in running:
            running[place] = vector.apply(operator, running[place], element)
        elif operator.startswith("logical"):
            running[place] = np.float32(element != 0)
        else:
            running[place] = element
    r = [running[place] for place in sorted(running)]
    if len(r) == 8:
        def both(a, b):
            return vector.apply(operator, a, b)
        return both(both(both(r[0], r[1]), both(r[2], r[3])), both(both(r[4], r[5]), both(r[6], r[7])))
    while len(r) > 1:
        joined = [vector.apply(operator, r[i], r[i + 1]) for i in range(0, len(r) - 1, 2)]
        r = joined + ([r[-1]] if len(r) % 2 else [])
    return r[0]


@pytest.mark.parametrize("operator", REDUCTIONS)
@pytest.mark.parametrize("length", [1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 100])
def test_reductions_against_a_loop(rng, operator, length):
    bits = random_bits(rng, "fp32", (3, 4, length), specials=0.02)
    elements = bits if operator in BITWISE else values(bits)
    expected = [[reduce_loop(operator, row) for row in part] for part in elements]
    assert np.array_equal(vector.reduce(operator, elements).view(np.uint32), np.array(expected).view(np.uint32))


def test_the_largest_against_a_sorted_list(rng):
    elements = values(random_bits(rng, "fp32", (20, 60), specials=0.4))
    for row, found in zip(elements, vector.largest(elements, 8)):
        ranked = sorted(row, key=lambda x: (math.isnan(x), 0.0 if math.isnan(x) else float(x), math.copysign(1, x)), reverse=True)
        assert np.array_equal(found.view(np.uint32), np.array(ranked[:8]).view(np.uint32))


def test_a_sum_s_order_matters(rng):
    elements = values(random_bits(rng, "fp32", (50, 40), specials=0)) * np.float32(2.0**-20)
    in_turn = elements[:, 0]
    for index in range(1, 40):
        in_turn = vector.apply("add", in_turn, elements[:, index])
    assert not np.array_equal(vector.reduce("add", elements), in_turn)


@pytest.mark.parametrize("operators", [("multiply", "add"), ("subtract", "maximum"), ("bypass", "subtract")])
@pytest.mark.parametrize("reverses", [(0, 0), (1, 0), (0, 1), (1, 1)])
@np.errstate(all="ignore")
def test_scans_against_a_loop(rng, operators, reverses):
    data, operand = (rng.standard_normal((3, 20)).astype(np.float32) for _ in range(2))
    initial = rng.standard_normal(3).astype(np.float32)
    plain = {"multiply": lambda a, b: a * b, "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "maximum": max,
             "bypass": lambda a, b: a}
    for row, results in enumerate(vector.scan(operators, reverses, data, operand, initial)):
        before = initial[row]
        for index, result in enumerate(results):
            sides = (data[row, index], before)
            before = plain[operators[0]](*(sides[::-1] if reverses[0] else sides))
            sides = (before, operand[row, index])
            before = plain[operators[1]](*(sides[::-1] if reverses[1] else sides))
            assert result == before


def test_cumulation_against_numpy(rng):
    elements = rng.standard_normal((4, 50)).astype(np.float32)
    results = vector.cumulate("add", elements, np.zeros(4, np.float32))
    assert np.array_equal(results, np.cumsum(elements, axis=1, dtype=np.float32))
    assert np.array_equal(vector.cumulate("maximum", elements, elements[:, 0]), np.maximum.accumulate(elements, axis=1))


def test_affine_values_against_python():
    steps, counts = (3, -1 << 31, 7, 0), (2, 3, 2, 1)
    got = vector.affine(-5, 1 << 30, steps, counts, 4)
    for partition in range(4):
        expected = [-5 + partition * (1 << 30) + 3 * i + (-1 << 31) * j + 7 * k for k in range(2) for j in range(3) for i in range(2)]
        assert got[partition].tolist() == [(value + (1 << 31)) % (1 << 32) - (1 << 31) for value in expected]


def reciprocal_exactly(bits):
    """200 bits of the quotient, and one that says whether a rest is left."""
    x = rational.number(bits, FP32)
    if x == rational.NAN or x[1] in (0, "inf"):
        return rational.rounded(x if x == rational.NAN else (x[0], 0 if x[1] else "inf", 0))
    quotient, rest = divmod(1 << 200, x[1])
    return rational.rounded((x[0], 2 * quotient + (rest > 0), -201 - x[2]))


def test_reciprocals_against_exact_rationals(rng):
    numbers = pairs(rng, 5000)[0]
    results = vector.reciprocal(numbers).view(np.uint32)
    assert results.tolist() == [reciprocal_exactly(bits) for bits in numbers.view(np.uint32)]
