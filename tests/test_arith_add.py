"""hdl/arith/add.py against golden, every bit (rules N0, N3, N6)."""

import numpy as np
import pytest

from golden.arith import add, multiply
from tests.arith_bench import assert_same, chunks, small_blocks
from tests.corners import fma_cases, random_bits, special_bits


@pytest.fixture(scope="module")
def block():
    return small_blocks()["add"]


def related_addends(rng, count):
    """A rounded product and the addend that was made for it: cancellation, ties, carries, subnormal sums, overflow."""
    a, b, c = fma_cases(rng, "fp32", "fp32", count)
    return multiply(a, b), c


@pytest.mark.parametrize("count", [200_000, pytest.param(20_000_000, marks=pytest.mark.long)])
def test_add(block, rng, count):
    for size in chunks(count):
        a, b = related_addends(rng, size)
        swapped = rng.random(size) < 0.5
        a, b = np.where(swapped, b, a), np.where(swapped, a, b)
        assert_same(block(a=a, b=b), add(a, b), a=a, b=b)


def test_neighbours_and_opposites(block, rng):
    a = random_bits(rng, "fp32", 100_000)
    b = a ^ (rng.integers(0, 2, a.size, np.uint32) << np.uint32(31)) ^ (rng.integers(0, 8, a.size, np.uint32))
    assert_same(block(a=a, b=b), add(a, b), a=a, b=b)


def test_landmarks(block):
    a, b = (grid.ravel() for grid in np.meshgrid(special_bits("fp32"), special_bits("fp32")))
    assert_same(block(a=a, b=b), add(a, b), a=a, b=b)


def test_latency(block, rng):
    a, b = related_addends(rng, 1000)
    assert block.component.latency == 1
    assert [np.array_equal(block(latency=latency, a=a, b=b), add(a, b)) for latency in range(3)] == [False, True, False]


def test_the_comparison_fails_for_a_wrong_golden(block, rng):
    a, b = related_addends(rng, 5000)
    flushed = np.where(add(a, b) & np.uint32(0x7F80_0000), add(a, b), add(a, b) & np.uint32(0x8000_0000))
    with pytest.raises(AssertionError, match="of 5000 results are wrong: a=0x"):
        assert_same(block(a=a, b=b), flushed, a=a, b=b)
