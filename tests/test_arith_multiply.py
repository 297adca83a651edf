"""hdl/arith/multiply.py against golden, every bit (rules N0, N6)."""

import numpy as np
import pytest

from golden.arith import multiply
from tests.arith_bench import assert_same, chunks, small_blocks
from tests.corners import bits_near, fma_cases, random_bits, special_bits


@pytest.fixture(scope="module", params=["multiply", "multiply_1"])
def block(request):
    return small_blocks()[request.param]


def factors(rng, count):
    """Factors over the whole range, around both of its ends, and unrelated corner cases."""
    a, b, _ = fma_cases(rng, "fp32", "fp32", count)
    exponents = rng.integers(-149, 128, count)
    ends = np.where(rng.random(count) < 0.6, rng.integers(-152, -123, count), rng.integers(125, 130, count))
    near_a, near_b = bits_near(rng, "fp32", exponents), bits_near(rng, "fp32", ends - exponents)
    kind = rng.integers(0, 3, count)
    return (np.choose(kind, [a, near_a, random_bits(rng, "fp32", count)]),
            np.choose(kind, [b, near_b, random_bits(rng, "fp32", count)]))


@pytest.mark.parametrize("count", [200_000, pytest.param(20_000_000, marks=pytest.mark.long)])
def test_multiply(block, rng, count):
    for size in chunks(count):
        a, b = factors(rng, size)
        assert_same(block(a=a, b=b), multiply(a, b), a=a, b=b)


def test_landmarks(block):
    a, b = (grid.ravel() for grid in np.meshgrid(special_bits("fp32"), special_bits("fp32")))
    assert_same(block(a=a, b=b), multiply(a, b), a=a, b=b)


def test_the_factors_reach_subnormal_results_and_both_ends(rng):
    magnitude = multiply(*factors(rng, 20_000)) & np.uint32(0x7FFF_FFFF)
    for low, high in ((0, 1), (1, 0x80_0000), (0x7F00_0000, 0x7F80_0000), (0x7F80_0000, 0x7F80_0001)):
        assert ((magnitude >= low) & (magnitude < high)).sum() > 300


def test_ties_of_subnormal_results_go_to_even(block):
    """An odd or even number of smallest steps and a half."""
    steps = np.arange(1, 200, dtype=np.uint32)
    half = np.uint32(0x3F00_0000)
    assert_same(block(a=steps, b=half), (steps + (steps >> np.uint32(1) & np.uint32(1))) >> np.uint32(1), a=steps)


def test_latency(block, rng):
    a, b = factors(rng, 1000)
    latencies = range(5)
    matches = [np.array_equal(block(latency=latency, a=a, b=b), multiply(a, b)) for latency in latencies]
    assert matches == [latency == block.component.latency for latency in latencies]
    assert block.component.latency in (1, 3)


def test_the_comparison_fails_for_a_wrong_golden(block, rng):
    a, b = factors(rng, 5000)
    flushed = np.where(multiply(a, b) & np.uint32(0x7F80_0000), multiply(a, b), 0)
    with pytest.raises(AssertionError, match="of 5000 results are wrong: a=0x"):
        assert_same(block(a=a, b=b), flushed, a=a, b=b)
