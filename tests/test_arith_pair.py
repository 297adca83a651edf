# amaranth: UnusedElaboratable=no
"""hdl/arith/pair_multiply_add.py against golden, every bit (rules N0, N5)."""

import numpy as np
import pytest

from golden.arith import fma, pair_step
from hdl.arith.pair_multiply_add import PairMultiplyAdd
from tests.arith_bench import SideBySide, assert_same, chunks
from tests.corners import fma_cases, random_bits, special_bits
from tests.eight_bit import first_and_second, running_sums

PAIRS = (("fp8_e5m2", "fp8_e5m2"), ("fp8_e4m3", "fp8_e4m3"), ("fp8_e4m3fn", "fp8_e4m3fn"), ("fp8_e5m2", "fp8_e4m3"),
         ("fp8_e4m3fn", "fp8_e5m2"))


@pytest.fixture(scope="module")
def blocks():
    return SideBySide("test_pair", {"_".join(pair): PairMultiplyAdd(*pair) for pair in PAIRS}).blocks()


def check(blocks, pair, a0, b0, a1, b1, c, second=True):
    operands = dict(a0=a0, b0=b0, a1=a1, b1=b1, second=second, c=c)
    assert_same(blocks["_".join(pair)](**operands), pair_step(a0, b0, a1, b1, c, *pair, second), **operands)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_every_first_pair(blocks, rng, pair):
    """With second pairs drawn from the corners, and running sums related to the sum of the products."""
    a0, b0 = first_and_second()
    a1, b1 = (random_bits(rng, name, a0.size, specials=0.5) for name in pair)
    for c in running_sums(rng, pair_step(a0, b0, a1, b1, np.uint32(0x8000_0000), *pair)):
        check(blocks, pair, a0, b0, a1, b1, c)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_every_second_pair(blocks, rng, pair):
    a1, b1 = first_and_second()
    a0, b0 = (rng.choice(special_bits(name), a1.size) for name in pair)
    check(blocks, pair, a0, b0, a1, b1, random_bits(rng, "fp32", a1.size))


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_every_first_pair_without_a_second(blocks, rng, pair):
    """What stands in its place is ignored, and the step is rule N1's."""
    a0, b0 = first_and_second()
    a1, b1 = (random_bits(rng, name, a0.size) for name in pair)
    for c in (np.uint32(0), np.uint32(0x8000_0000), random_bits(rng, "fp32", a0.size)):
        result = blocks["_".join(pair)](a0=a0, b0=b0, a1=a1, b1=b1, second=0, c=c)
        assert_same(result, fma(a0, b0, c, *pair), a0=a0, b0=b0, a1=a1, b1=b1, c=c)


@pytest.mark.parametrize("count", [100_000, pytest.param(20_000_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_related_pairs_and_running_sums(blocks, rng, pair, count):
    for size in chunks(count):
        a0, b0, c = fma_cases(rng, *pair, size)
        a1, b1, d = fma_cases(rng, *pair, size)
        # Products that cancel each other, wholly or but for the last bits.
        cancels = rng.random(size) < 0.2
        a1, b1 = np.where(cancels, a0 ^ np.uint8(0x80) ^ (rng.random(size) < 0.3), a1), np.where(cancels, b0, b1)
        check(blocks, pair, a0, b0, a1, b1, np.where(rng.random(size) < 0.5, c, d), rng.random(size) < 0.8)


def test_each_of_the_two_additions_rounds(blocks):
    """2^-16 is lost beside 57344 * 57344 before the running sum cancels that."""
    large, tiny = np.full(1, 0x7B, np.uint8), np.ones(1, np.uint8)
    running = fma(large, large ^ np.uint8(0x80), np.uint32(0), "fp8_e5m2", "fp8_e5m2")
    assert blocks["fp8_e5m2_fp8_e5m2"](a0=large, b0=large, a1=tiny, b1=large, second=1, c=running) == 0


def test_latency(blocks, rng):
    a0, b0, c = fma_cases(rng, "fp8_e5m2", "fp8_e5m2", 1000)
    operands = dict(a0=a0, b0=b0, a1=a0[::-1], b1=b0[::-1], c=c)
    expected = pair_step(*operands.values(), "fp8_e5m2", "fp8_e5m2")
    block = blocks["fp8_e5m2_fp8_e5m2"]
    assert block.component.latency == 4
    assert [np.array_equal(block(latency=latency, second=1, **operands), expected) for latency in (3, 4, 5)] == \
        [False, True, False]


def test_the_comparison_fails_for_a_golden_of_another_order(blocks, rng):
    a0, b0, c = fma_cases(rng, "fp8_e5m2", "fp8_e5m2", 50_000)
    a1, b1, _ = fma_cases(rng, "fp8_e5m2", "fp8_e5m2", 50_000)
    other_order = fma(a0, b0, fma(a1, b1, c, "fp8_e5m2", "fp8_e5m2"), "fp8_e5m2", "fp8_e5m2")
    result = blocks["fp8_e5m2_fp8_e5m2"](a0=a0, b0=b0, a1=a1, b1=b1, second=1, c=c)
    with pytest.raises(AssertionError, match="of 50000 results are wrong: a0=0x"):
        assert_same(result, other_order, a0=a0)


@pytest.mark.parametrize(("a_format", "b_format", "error", "message"), [
    ("fp8_e3m4", "fp8_e5m2", ValueError, "First format must be among fp8_e5m2, fp8_e4m3 or fp8_e4m3fn, not 'fp8_e3m4'"),
    ("fp8_e5m2", "int8", ValueError, "Second format must be among fp8_e5m2, fp8_e4m3 or fp8_e4m3fn, not 'int8'"),
    ("fp8_e4m3", "fp8_e4m3fn", ValueError, "Formats must not be fp8_e4m3 and fp8_e4m3fn together"),
    ("fp8_e5m2", None, TypeError, "Second format must hold format names, not None"),
])
def test_wrong_formats_are_rejected(a_format, b_format, error, message):
    with pytest.raises(error, match=message):
        PairMultiplyAdd(a_format, b_format)
