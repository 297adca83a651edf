"""golden/arith.py against exact integers with one rounding (rules N0, N1, N4, N5, N6, N13)."""

from fractions import Fraction
from itertools import product as pairs

import numpy as np
import pytest

from golden.arith import add, fma, int_pair_step, multiply, pair_step
from golden.formats import convert
from spec.errors import SpecError
from spec.formats import FLOAT_FORMATS
from tests import rational
from tests.corners import fma_cases, random_bits, special_bits
from tests.rational import FP32, number

FMA_FORMATS = [("bf16", "bf16"), ("fp16", "fp16"), ("tf32", "tf32"), ("bf16", "tf32"), ("fp16", "bf16"), ("fp8_e5m2", "bf16"),
               ("fp8_e4m3", "fp16"), ("fp8_e3m4", "tf32"), ("fp8_e4m3fn", "fp8_e5m2"), ("fp8_e4m3", "fp8_e4m3"),
               ("fp32", "fp32"), ("fp32", "tf32"), ("tf32", "fp32")]
FLOAT_PAIRS = [("fp8_e5m2", "fp8_e5m2"), ("fp8_e4m3", "fp8_e4m3"), ("fp8_e4m3fn", "fp8_e4m3fn"), ("fp8_e5m2", "fp8_e4m3"),
               ("fp8_e4m3fn", "fp8_e5m2")]


def numbers(bits, name="fp32"):
    return [number(b, FLOAT_FORMATS[name]) for b in bits]


def exact_fma(a, b, c, a_format, b_format):
    return np.array([rational.fma(*xyz) for xyz in zip(numbers(a, a_format), numbers(b, b_format), numbers(c))], np.uint32)


def check(result, expected, *operands):
    """Fail with the first operands whose results differ."""
    wrong = np.flatnonzero(result != expected)
    shown = [(*(hex(x[i]) for x in operands), "gave", hex(result[i]), "not", hex(expected[i])) for i in wrong[:5]]
    assert result.dtype == expected.dtype and wrong.size == 0, f"{wrong.size} wrong: {shown}"


@np.errstate(all="ignore")
def naive_fma(a, b, c):
    """A plain float64 sum: right for narrow operands, rounded twice where one is fp32."""
    a, b, c = (x.view(np.float32).astype(np.float64) for x in (a, b, c))
    result = (a * b + c).astype(np.float32)
    return np.where(np.isnan(result), np.uint32(0x7FC00000), result.view(np.uint32))


@pytest.mark.parametrize("a_format, b_format", FMA_FORMATS)
def test_fma(rng, a_format, b_format):
    a, b, c = fma_cases(rng, a_format, b_format, 12_000)
    check(fma(a, b, c, a_format, b_format), exact_fma(a, b, c, a_format, b_format), a, b, c)


def test_fma_of_landmarks():
    for a_format, b_format in (("bf16", "fp8_e4m3fn"), ("fp32", "tf32")):
        grid = np.meshgrid(special_bits(a_format), special_bits(b_format), special_bits("fp32")[::3])
        a, b, c = (x.ravel() for x in grid)
        check(fma(a, b, c, a_format, b_format), exact_fma(a, b, c, a_format, b_format), a, b, c)


@pytest.mark.parametrize("a_format, b_format", [("fp32", "fp32"), ("fp32", "tf32"), ("tf32", "fp32")])
def test_the_fp32_cases_tell_one_rounding_from_two(rng, a_format, b_format):
    a, b, c = fma_cases(rng, a_format, b_format, 12_000)
    exact = exact_fma(a, b, c, a_format, b_format)
    a, b = (convert(x, name, "fp32") for x, name in ((a, a_format), (b, b_format)))
    assert (naive_fma(a, b, c) != exact).sum() > 50
    with pytest.raises(AssertionError, match="wrong"):
        check(naive_fma(a, b, c), exact, a, b, c)


@pytest.mark.parametrize("a_format, b_format", [("bf16", "bf16"), ("fp32", "fp32")])
def test_the_cases_reach_the_corners(rng, a_format, b_format):
    """Ties, carries, subnormal results, overflow, zeros of both signs, infinities and NaN all occur, several times over."""
    a, b, c = fma_cases(rng, a_format, b_format, 8000)
    counts = dict.fromkeys(("tie", "carry", "subnormal", "overflow", "+0", "-0", "infinity", "nan", "tiny"), 0)
    for x, y, z in zip(numbers(a, a_format), numbers(b, b_format), numbers(c)):
        exact = rational.total(rational.product(x, y), z)
        if len(exact) == 2:
            counts["nan" if exact == rational.NAN else "infinity"] += 1
            continue
        result = rational.rounded(exact)
        magnitude, value = result & 0x7FFFFFFF, abs(rational.as_fraction(exact))
        if exact[1] == 0:
            counts["-0" if exact[0] else "+0"] += 1
        elif magnitude == 0:
            counts["tiny"] += 1
        elif magnitude == 0x7F800000:
            counts["overflow"] += 1
        else:
            got = rational.as_fraction(number(magnitude, FP32))
            below, above = (rational.as_fraction(number(max(magnitude + d, 0), FP32)) if magnitude + d < 0x7F800000 else None
                            for d in (-1, 1))
            counts["subnormal"] += magnitude < 0x800000
            counts["tie"] += value != got and (value * 2 == got + below or above is not None and value * 2 == got + above)
            counts["carry"] += value < got and magnitude & 0x7FFFFF == 0
    assert min(counts.values()) >= 10, counts


def test_the_referee_rounds_to_the_nearest(rng):
    bits = random_bits(rng, "fp32", 400, specials=0)
    for left, right in zip(bits[::2], bits[1::2]):
        exact = rational.product(number(left, FP32), number(right, FP32))
        result = rational.rounded(exact)
        if (result & 0x7FFFFFFF) == 0x7F800000:
            assert abs(rational.as_fraction(exact)) >= Fraction(2) ** 128 - Fraction(2) ** 103
            continue
        error = abs(rational.as_fraction(number(result, FP32)) - rational.as_fraction(exact))
        for neighbour in (result - 1, result + 1):
            other = number(neighbour & 0xFFFFFFFF, FP32)
            if len(other) == 3:
                distance = abs(rational.as_fraction(other) - rational.as_fraction(exact))
                assert error < distance or (error == distance and result % 2 == 0)


@pytest.mark.parametrize("operation, exact", [(add, rational.add), (multiply, rational.multiply)])
def test_add_and_multiply(rng, operation, exact):
    a = random_bits(rng, "fp32", 20_000)
    one_bit_off = a ^ (1 << rng.integers(0, 32, a.shape)).astype(np.uint32)
    b = np.where(rng.random(a.shape) < 0.3, one_bit_off, random_bits(rng, "fp32", a.shape))
    check(operation(a, b), np.array([exact(*xy) for xy in zip(numbers(a), numbers(b))], np.uint32), a, b)


@pytest.mark.parametrize("a_format, b_format", FLOAT_PAIRS)
def test_pair_step(rng, a_format, b_format):
    a0, b0, c = fma_cases(rng, a_format, b_format, 6000)
    a1, b1, _ = fma_cases(rng, a_format, b_format, 6000)
    cancel = rng.random(6000) < 0.2
    a1, b1 = np.where(cancel, a0 ^ np.uint8(0x80), a1), np.where(cancel, b0, b1)
    second = rng.random(6000) < 0.8
    exact = [rational.pair_step(*five) if both else rational.fma(five[0], five[1], five[4])
             for both, *five in zip(second, numbers(a0, a_format), numbers(b0, b_format), numbers(a1, a_format),
                                    numbers(b1, b_format), numbers(c))]
    check(pair_step(a0, b0, a1, b1, c, a_format, b_format, second), np.array(exact, np.uint32), a0, b0, a1, b1, c)


def test_pair_step_rounds_after_each_addition():
    # 57344 * 57344 + 2^-16 * 57344 loses the small product before the running sum cancels the large one.
    large, tiny, running = 0x7B, 0x01, fma(np.uint8(0x7B), np.uint8(0xFB), np.uint32(0), "fp8_e5m2", "fp8_e5m2")
    args = [np.array([x], np.uint8) for x in (large, large, tiny, large)]
    assert pair_step(*args, np.array([running]), "fp8_e5m2", "fp8_e5m2")[0] == 0


def test_without_a_second_element_nothing_of_it_is_used():
    one, nan = np.array([0x3C], np.uint8), np.array([0x7F], np.uint8)
    result = pair_step(one, one, nan, nan, np.zeros(1, np.uint32), "fp8_e5m2", "fp8_e5m2", second=False)
    assert result[0] == 0x3F800000


def test_int_pair_step(rng):
    a0, b0, a1, b1 = (random_bits(rng, "int8", 20_000) for _ in range(4))
    c, second = random_bits(rng, "int32", 20_000), rng.random(20_000) < 0.8
    signed = [[int(x) for x in operand.view(np.int8)] for operand in (a0, b0, a1, b1)]
    exact = [(int(c[i]) + w * x + (y * z if second[i] else 0)) % 2 ** 32 for i, (w, x, y, z) in enumerate(zip(*signed))]
    check(int_pair_step(a0, b0, a1, b1, c, second), np.array(exact, np.uint32), a0, b0, a1, b1, c)


def test_int_pair_step_wraps():
    low, top = np.uint8(0x80), np.uint32(0x7FFFFFFF)
    assert int_pair_step(low, low, low, low, top) == 0x7FFFFFFF + 2 * 2 ** 14


def test_nan_results_are_canonical():
    infinity, zero, minus_infinity = (np.array([x], np.uint32) for x in (0x7F800000, 0x80000000, 0xFF800000))
    for result in (multiply(infinity, zero), add(infinity, minus_infinity), fma(infinity, zero, zero),
                   add(np.array([0xFF800001], np.uint32), zero)):
        assert result[0] == 0x7FC00000


def test_signs_of_zero():
    plus, minus = np.uint32(0), np.uint32(0x80000000)
    for x, y, z in pairs((plus, minus), repeat=3):
        assert fma(x, y, z) == (minus if x != y and z == minus else plus)
    one = np.uint32(0x3F800000)
    assert add(one, one | minus) == plus


def test_shapes_broadcast(rng):
    a, b, c = random_bits(rng, "fp32", (3, 1)), random_bits(rng, "fp32", 4), random_bits(rng, "fp32", (2, 1, 1))
    result = fma(a, b, c)
    assert result.shape == (2, 3, 4) and result[1, 2, 3] == fma(a[2, 0], b[3], c[1, 0, 0])


def test_wrong_operands_are_rejected():
    word, byte = np.zeros(2, np.uint32), np.zeros(2, np.uint8)
    with pytest.raises(SpecError, match="a_format: 'int8'"):
        fma(byte, word, word, "int8", "fp32")
    with pytest.raises(SpecError, match="b_format: 'bf16' is not allowed; allowed: fp8_e5m2, fp8_e4m3 or fp8_e4m3fn"):
        pair_step(byte, byte, byte, byte, word, "fp8_e5m2", "bf16")
    with pytest.raises(SpecError, match="dtype of bits: 'uint8' is not allowed; allowed: uint32, which holds fp32"):
        add(byte, word)
    with pytest.raises(SpecError, match="uint8, which holds int8"):
        int_pair_step(byte, byte, word, byte, word)
