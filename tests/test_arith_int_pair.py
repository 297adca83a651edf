"""hdl/arith/int_pair_multiply_add.py against golden, every bit (rule N13)."""

import numpy as np
import pytest

from golden.arith import int_pair_step
from tests.arith_bench import assert_same, chunks, small_blocks
from tests.corners import random_bits, special_bits

EVERY = np.arange(1 << 16)
FIRST, SECOND = (EVERY & 255).astype(np.uint8), (EVERY >> 8).astype(np.uint8)
SUMS = np.array([0, 1, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 0x7FFF_8000], np.uint32)


@pytest.fixture(scope="module")
def block():
    return small_blocks()["int_pair"]


def check(block, a0, b0, a1, b1, c, second=True):
    expected = int_pair_step(a0, b0, a1, b1, c, second)
    operands = dict(a0=a0, b0=b0, a1=a1, b1=b1, second=second, c=c)
    assert_same(block(**operands), expected, **operands)


@pytest.mark.parametrize("c", SUMS)
def test_every_first_pair(block, rng, c):
    a1, b1 = rng.choice(special_bits("int8"), (2, EVERY.size))
    check(block, FIRST, SECOND, a1, b1, c)
    check(block, FIRST, SECOND, a1, b1, c, second=False)


def test_every_second_pair(block, rng):
    a0, b0 = rng.choice(special_bits("int8"), (2, EVERY.size))
    check(block, a0, b0, FIRST, SECOND, random_bits(rng, "int32", EVERY.size))


def test_landmarks_of_all_operands(block):
    marks = special_bits("int8")
    a0, b0, a1, b1, c = (grid.ravel() for grid in np.meshgrid(marks, marks, marks, marks, SUMS))
    check(block, a0, b0, a1, b1, c)


@pytest.mark.parametrize("count", [200_000, pytest.param(20_000_000, marks=pytest.mark.long)])
def test_random_operands(block, rng, count):
    for size in chunks(count):
        operands = [random_bits(rng, "int8", size) for _ in range(4)]
        check(block, *operands, random_bits(rng, "int32", size), rng.random(size) < 0.8)


def test_latency(block, rng):
    operands = dict(zip(("a0", "b0", "a1", "b1"), rng.integers(0, 256, (4, 1000), np.uint8)))
    c = rng.integers(0, 1 << 32, 1000, np.uint32)
    expected = int_pair_step(*operands.values(), c)
    assert block.component.latency == 1
    assert [np.array_equal(block(latency=latency, **operands, second=1, c=c), expected) for latency in range(3)] == \
        [False, True, False]


def test_the_comparison_fails_for_a_golden_that_saturates(block):
    top = np.full(10, 0x7FFF_FFFF, np.uint32)
    one = np.ones(10, np.uint8)
    with pytest.raises(AssertionError, match="10 of 10 results are wrong: a0=0x1"):
        assert_same(block(a0=one, b0=one, a1=one, b1=one, second=1, c=top), top, a0=one)
