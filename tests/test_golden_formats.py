"""golden/formats.py against numpy, ml_dtypes and plain integers (rules N0 and N7)."""

import ml_dtypes
import numpy as np
import pytest

from golden.formats import canonical_bits, check_bits, convert, decode, encode, storage_dtype
from spec.errors import SpecError
from spec.formats import FLOAT_FORMATS, FORMATS, INT_FORMATS
from tests import rational
from tests.corners import random_bits, special_bits

NARROW = {
    "bf16": ml_dtypes.bfloat16, "fp16": np.float16, "fp8_e5m2": ml_dtypes.float8_e5m2, "fp8_e4m3": ml_dtypes.float8_e4m3,
    "fp8_e3m4": ml_dtypes.float8_e3m4, "fp8_e4m3fn": ml_dtypes.float8_e4m3fn,
}
FP8 = [name for name in NARROW if name.startswith("fp8")]


def same(result, expected):
    """Whether two arrays hold the same bits, dtype included."""
    return result.dtype == expected.dtype and np.array_equal(result, expected)


def bits32(values):
    return values.view(np.uint32)


def referee_decode(bits, name):
    """Values by numpy and ml_dtypes; NaN as numpy makes it."""
    fmt = FORMATS[name]
    if name in NARROW:
        return bits.view(NARROW[name]).astype(np.float32)
    if name == "tf32":
        return bits32_rounded_to_tf32(bits).view(np.float32)
    if name == "fp32":
        return bits.view(np.float32)
    return bits.view(f"int{fmt.width}" if fmt.signed else bits.dtype).astype(np.float32)


def bits32_rounded_to_tf32(bits):
    wide = bits.astype(np.int64)
    nan = (wide & 0x7FFFFFFF) > 0x7F800000
    return np.where(nan, 0x7FC00000, (wide + 0xFFF + (wide >> 13 & 1)) & ~0x1FFF).astype(np.uint32)


@np.errstate(all="ignore")
def referee_encode(values, name, saturate=False):
    """Patterns by numpy and ml_dtypes, with rule N7's NaN and saturation put in."""
    fmt = FORMATS[name]
    if name in INT_FORMATS:
        limited = np.clip(np.rint(np.where(np.isnan(values), 0, values).astype(np.float64)), fmt.min, fmt.max)
        return limited.astype("int64").astype(f"uint{fmt.width}")
    if name in NARROW:
        result = values.astype(NARROW[name])
        bits, nan = result.view(f"uint{fmt.width}"), np.isnan(result.astype(np.float32))
    elif name == "tf32":
        bits, nan = bits32_rounded_to_tf32(bits32(values)), np.isnan(values)
    else:
        bits, nan = bits32(values), np.isnan(values)
    sign_bit = 1 << (fmt.width - 1)
    bits = np.where(nan, fmt.nan, bits.astype(np.int64))
    if saturate:
        end = fmt.infinity if fmt.has_infinity else fmt.nan
        overflow = ((bits & (sign_bit - 1)) == end) & ~np.isnan(values)
        bits = np.where(overflow, np.where(np.signbit(values), sign_bit, 0) | fmt.max_finite, bits)
    return bits.astype(f"uint{fmt.width}")


def encode_inputs(rng, name):
    """Float32 values around every decision that encoding to ``name`` makes, and random patterns."""
    random = random_bits(rng, "fp32", 100_000).view(np.float32)
    if name not in NARROW:
        # Half-way points of the integers, and the ends of their ranges, which float32 may miss by its own rounding.
        halves = np.arange(-600, 600, dtype=np.float32) / np.float32(2)
        ends = np.array([FORMATS[n].max + d for n in INT_FORMATS for d in (-1, -0.5, 0, 0.5, 1)], np.float32)
        return np.concatenate([random, halves, ends, -ends, np.nextafter(ends, np.float32(0))])
    fmt = FORMATS[name]
    patterns = np.arange(fmt.max_finite + 1).astype(f"uint{fmt.width}")
    values = referee_decode(patterns, name).astype(np.float64)
    beyond = values[-1] + (values[-1] - values[-2])
    midpoints = ((values + np.append(values[1:], beyond)) / 2).astype(np.float32)
    around = np.concatenate([values.astype(np.float32), midpoints, np.nextafter(midpoints, np.float32(0)),
                             np.nextafter(midpoints, np.float32(np.inf))])
    return np.concatenate([around, -around, random])


@pytest.mark.parametrize("name", NARROW)
def test_decode_of_every_narrow_pattern(name):
    fmt = FORMATS[name]
    patterns = np.arange(1 << fmt.width).astype(storage_dtype(name))
    expected = referee_decode(patterns, name)
    expected = np.where(np.isnan(expected), np.uint32(0x7FC00000), bits32(expected))
    assert same(bits32(decode(patterns, name)), expected)


@pytest.mark.parametrize("name", ["fp32", "tf32"])
def test_decode_of_32_bit_patterns(rng, name):
    bits = np.concatenate([special_bits(name), random_bits(rng, name, 20_000)])
    exact = np.array([rational.rounded(rational.number(b, FLOAT_FORMATS[name])) for b in bits], np.uint32)
    assert same(bits32(decode(bits, name)), exact)


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint16"])
def test_decode_of_every_narrow_integer(name):
    fmt = FORMATS[name]
    patterns = np.arange(1 << fmt.width)
    expected = np.where(patterns > fmt.max, patterns - (1 << fmt.width), patterns).astype(np.float32)
    assert same(decode(patterns.astype(storage_dtype(name)), name), expected)


@pytest.mark.parametrize("name", ["int32", "uint32"])
def test_decode_of_32_bit_integers_rounds_once(rng, name):
    near_ties = (1 << rng.integers(24, 32, 5000)) + rng.integers(-300, 300, 5000)
    bits = np.concatenate([special_bits(name), random_bits(rng, name, 5000), near_ties.astype(np.uint32)])
    values = [int(b) - (int(b) > FORMATS[name].max) * 2 ** 32 for b in bits]
    expected = np.array([rational.rounded((int(v < 0), abs(v), 0)) for v in values], np.uint32)
    assert same(bits32(decode(bits, name)), expected)


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_encode(rng, name, saturate):
    values = encode_inputs(rng, name)
    result = encode(values, name, saturate)
    wrong = np.flatnonzero(result != referee_encode(values, name, saturate))
    assert result.dtype == storage_dtype(name)
    assert wrong.size == 0, [(values[i], hex(result[i])) for i in wrong[:5]]


@pytest.mark.parametrize("name", [*NARROW, "tf32"])
def test_encode_against_exact_integers(rng, name):
    bits = random_bits(rng, "fp32", 5000)
    expected = [rational.rounded(rational.number(b, FLOAT_FORMATS["fp32"]), FLOAT_FORMATS[name]) for b in bits]
    assert same(encode(bits.view(np.float32), name), np.array(expected, storage_dtype(name)))


def test_the_referee_sees_a_wrong_rounding(rng):
    values = encode_inputs(rng, "bf16")
    truncated = (bits32(values) >> 16).astype(np.uint16)
    assert not same(truncated, referee_encode(values, "bf16"))


@pytest.mark.parametrize("name, value, saturate, expected", [
    ("fp8_e4m3", 248.0, False, 0x78), ("fp8_e4m3", 247.9, False, 0x77), ("fp8_e4m3", -np.inf, True, 0xF7),
    ("fp8_e4m3fn", 464.0, False, 0x7E), ("fp8_e4m3fn", 464.1, False, 0x7F), ("fp8_e4m3fn", -1e9, False, 0x7F),
    ("fp8_e4m3fn", -1e9, True, 0xFE), ("fp8_e4m3fn", np.nan, True, 0x7F), ("fp16", 65520.0, True, 0x7BFF),
    ("fp32", np.inf, True, 0x7F7FFFFF), ("fp32", -np.nan, True, 0x7FC00000), ("tf32", 3.4028235e38, False, 0x7F800000),
    ("tf32", 3.4028235e38, True, 0x7F7FE000), ("int8", 127.5, False, 127), ("int8", -1e30, False, 0x80),
    ("int8", 2.5, False, 2), ("uint8", -1.0, False, 0), ("int32", 2.0 ** 31, False, 0x7FFFFFFF),
    ("uint32", np.inf, False, 0xFFFFFFFF), ("int32", np.nan, False, 0), ("bf16", -1e-45, False, 0x8000),
])
def test_encode_at_the_ends(name, value, saturate, expected):
    assert encode(np.float32(value), name, saturate) == expected


@pytest.mark.parametrize("source", FORMATS)
@pytest.mark.parametrize("target", FORMATS)
def test_convert_every_pair(rng, source, target):
    bits = np.concatenate([special_bits(source), random_bits(rng, source, 3000)])
    if FORMATS[source].width == 8:
        bits = np.arange(256).astype(np.uint8)
    for saturate in (False, True):
        expected = bits if source == target else referee_encode(referee_decode(bits, source), target, saturate)
        assert same(convert(bits, source, target, saturate), expected)


def test_convert_between_equal_formats_moves_a_copy():
    bits = np.array([0x7F800001, 0xFFC01234, 0x3F800FFF], np.uint32)
    moved = convert(bits, "tf32", "tf32")
    assert same(moved, bits) and moved is not bits
    assert same(convert(bits, "tf32", "fp32"), np.array([0x7FC00000, 0x7FC00000, 0x3F800000], np.uint32))


def test_int32_beyond_24_bits_goes_through_binary32():
    assert same(convert(np.array([2 ** 24 + 1, 2 ** 31 - 1], np.uint32), "int32", "uint32"),
                np.array([2 ** 24, 2 ** 31], np.uint32))


def test_shapes_pass_through():
    assert decode(np.zeros((2, 0, 3), np.uint8), "fp8_e4m3").shape == (2, 0, 3)
    assert encode(np.zeros((), np.float32), "bf16").shape == ()


def test_canonical_bits_replaces_every_nan_and_nothing_else(rng):
    bits = np.concatenate([special_bits("fp32"), random_bits(rng, "fp32", 1000)])
    nan = np.isnan(bits.view(np.float32))
    assert nan.any() and same(canonical_bits(bits.view(np.float32)), np.where(nan, np.uint32(0x7FC00000), bits))


def test_bits_of_another_dtype_are_rejected():
    with pytest.raises(SpecError, match="dtype of bits: 'float32' is not allowed; allowed: uint16, which holds bf16"):
        decode(np.zeros(3, np.float32), "bf16")
    with pytest.raises(SpecError, match="dtype of moving: 'int8'"):
        check_bits(np.zeros(3, np.int8), "int8", "moving")
    with pytest.raises(SpecError, match="uint32, which holds tf32"):
        convert(np.zeros(3, np.uint16), "tf32", "tf32")


def test_values_that_are_not_float32_are_rejected():
    with pytest.raises(SpecError, match="dtype of values: 'float64' is not allowed; allowed: float32"):
        encode(np.zeros(3), "bf16")


def test_an_unknown_format_is_rejected():
    with pytest.raises(SpecError, match="format: 'fp64'"):
        decode(np.zeros(3, np.uint32), "fp64")
    with pytest.raises(SpecError, match="format: 'fp4'"):
        convert(np.zeros(3, np.uint32), "fp32", "fp4")
