# amaranth: UnusedElaboratable=no
"""hdl/arith/convert.py against golden, every bit (rules N0 and N7)."""

import numpy as np
import pytest

from golden.formats import convert, storage_dtype
from hdl.arith.convert import Convert
from spec.formats import FORMAT_CODES, FORMATS
from tests.arith_bench import SideBySide, assert_same, chunks
from tests.corners import bits_near, random_bits, special_bits

CASTS = {
    "every": (FORMATS, FORMATS),
    # Operands of the short exponent, and no format in common.
    "narrow": (("fp16", "fp8_e4m3"), ("fp32", "fp8_e3m4", "int16", "uint32")),
    # Integers of bf16's significand.
    "bytes": (("int8", "uint8", "fp8_e5m2"), ("fp16", "bf16", "int8", "uint16")),
    "one": (("fp32",), ("bf16",)),
    # No infinity among the targets.
    "ocp": (("bf16", "tf32"), ("fp8_e4m3fn", "tf32")),
}
NARROW = [name for name, fmt in FORMATS.items() if fmt.width <= 16]
WIDE = [name for name, fmt in FORMATS.items() if fmt.width == 32]


@pytest.fixture(scope="module")
def casts():
    return SideBySide("test_convert", {name: Convert(*formats) for name, formats in CASTS.items()}).blocks()


def cast(block, bits, source, target, saturate):
    return block(bits=bits, source=FORMAT_CODES[source], target=FORMAT_CODES[target], saturate=saturate)


def check(block, bits, source, target, saturate):
    assert_same(cast(block, bits, source, target, saturate), convert(bits, source, target, bool(saturate)), bits=bits)


def every_pattern(name):
    return np.arange(1 << FORMATS[name].width).astype(storage_dtype(name))


def wide_patterns(rng, name, count):
    """32-bit patterns: corners, the ranges of the narrow formats and integers, and ties at every place of the significand."""
    bits = random_bits(rng, name, count)
    if name in ("fp32", "tf32"):
        middle = bits_near(rng, "fp32", rng.integers(-30, 36, count))
        bits = np.where(rng.random(count) < 0.5, bits, middle)
    place = rng.integers(1, 25, count)
    low = rng.choice([0, -1, 1], count) + (1 << (place - 1))
    tied = (bits & ~((1 << place) - 1)) | (low & ((1 << place) - 1))
    bits = np.where(rng.random(count) < 0.5, tied, bits).astype(np.uint32)
    marks = special_bits(name)
    bits[:marks.size] = marks[:count]
    return bits


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("source", NARROW)
def test_every_pattern_of_a_narrow_format_to_every_format(casts, source, saturate):
    for target in FORMATS:
        check(casts["every"], every_pattern(source), source, target, saturate)


@pytest.mark.parametrize("count", [20_000, pytest.param(1_000_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("source", WIDE)
def test_wide_formats_to_every_format(casts, rng, source, count):
    for size in chunks(count):
        bits = wide_patterns(rng, source, size)
        for target in FORMATS:
            for saturate in (0, 1):
                check(casts["every"], bits, source, target, saturate)


@pytest.mark.parametrize("name", [name for name in CASTS if name != "every"])
def test_formats_left_out_change_nothing(casts, rng, name):
    sources, targets = CASTS[name]
    for source in sources:
        bits = every_pattern(source) if source in NARROW else wide_patterns(rng, source, 50_000)
        for target in targets:
            for saturate in (0, 1):
                check(casts[name], bits, source, target, saturate)


def test_formats_change_from_cycle_to_cycle(casts, rng):
    """With noise above a narrow element."""
    count = 20_000
    bits = rng.integers(0, 1 << 32, count, np.uint32)
    source, target = (rng.choice(list(FORMATS), count) for _ in range(2))
    saturate = rng.integers(0, 2, count)
    expected = np.zeros(count, np.uint32)
    for row in range(count):
        element = bits[row].astype(storage_dtype(source[row]))
        expected[row] = convert(element, source[row], target[row], bool(saturate[row]))
    codes = [np.array([FORMAT_CODES[name] for name in names]) for names in (source, target)]
    result = casts["every"](bits=bits, source=codes[0], target=codes[1], saturate=saturate)
    assert_same(result, expected, bits=bits, source=codes[0], target=codes[1], saturate=saturate)


@pytest.mark.parametrize("name", ["every", "one"])
def test_latency(casts, rng, name):
    bits = wide_patterns(rng, "fp32", 1000)
    expected = convert(bits, "fp32", "bf16")
    inputs = dict(bits=bits, source=FORMAT_CODES["fp32"], target=FORMAT_CODES["bf16"], saturate=0)
    assert Convert.latency == 1
    matches = [(casts[name](latency=latency, **inputs) == expected).all() for latency in range(3)]
    assert matches == [False, True, False]


def test_copies_keep_payloads_and_other_casts_do_not(casts):
    payload = np.array([0xFFB2_3456], np.uint32)
    assert cast(casts["every"], payload, "fp32", "fp32", 1) == payload
    assert cast(casts["every"], payload, "tf32", "tf32", 1) == payload
    assert cast(casts["every"], payload, "fp32", "tf32", 1) == 0x7FC0_0000


def test_long_integers_are_rounded_twice(casts):
    """2^24 + 2^16 + 1 is a tie in binary32 and, rounded down, one in bf16; rounded once it would go up."""
    assert cast(casts["every"], np.array([0x0101_0001], np.uint32), "int32", "bf16", 0) == 0x4B80


def test_the_comparison_fails_for_a_golden_that_truncates(casts, rng):
    bits = wide_patterns(rng, "fp32", 5000)
    with pytest.raises(AssertionError, match="of 5000 results are wrong: bits=0x"):
        assert_same(cast(casts["every"], bits, "fp32", "bf16", 0), bits >> 16, bits=bits)


def test_equal_sets_of_formats_have_one_name():
    assert Convert(["bf16", "fp32"], ["int8"]).module_name == Convert(("fp32", "bf16", "fp32"), {"int8": 1}).module_name
    names = {Convert(*formats).module_name for formats in CASTS.values()}
    assert len(names) == len(CASTS) and all(name.startswith("onc_convert_") for name in names)


@pytest.mark.parametrize(("sources", "targets", "error", "message"), [
    ((), ("bf16",), ValueError, "Sources must name at least one of fp32, tf32,"),
    (("bf16",), (), ValueError, "Targets must name at least one of fp32, tf32,"),
    (("bf16", "int4"), ("bf16",), ValueError, "Sources must be among fp32, .* int32 or uint32, not 'int4'"),
    (("bf16",), ("fp8",), ValueError, "Targets must be among fp32, .* not 'fp8'"),
    ("bf16", ("bf16",), TypeError, "Sources must be a collection of format names, not 'bf16'"),
    (("bf16",), 3, TypeError, "Targets must be a collection of format names, not 3"),
    ((2,), ("bf16",), TypeError, "Sources must hold format names, not 2"),
])
def test_wrong_formats_are_rejected(sources, targets, error, message):
    with pytest.raises(error, match=message):
        Convert(sources, targets)
