"""hdl/arith/reciprocal.py: correctly rounded (N11), against numpy's division, which IEEE 754 wants correctly rounded."""

import functools

import numpy as np
import pytest

from hdl.arith.reciprocal import Reciprocal
from hdl.emit import emit
from sim.model import Model
from tests.corners import random_bits, special_bits

INTERVAL, LATENCY = 8, 9


@functools.cache
def model():
    return Model.build(emit(Reciprocal()))


def reciprocals(bits, interval=INTERVAL):
    """One after the other, as often as the unit takes them; the operand is there in its first cycle only."""
    cycles = interval * len(bits) + LATENCY + 1
    start, x = np.zeros(cycles, np.uint8), np.random.default_rng(1).integers(0, 1 << 32, cycles, np.uint32)
    places = interval * np.arange(len(bits))
    start[places], x[places] = 1, bits
    return model().vectors({"start": start, "x": x}, ["o"])["o"][places + LATENCY]


@np.errstate(all="ignore")
def expected(bits):
    result = (np.float32(1) / bits.view(np.float32)).view(np.uint32)
    return np.where(result & 0x7FFF_FFFF > 0x7F80_0000, np.uint32(0x7FC0_0000), result)


def test_landmarks():
    bits = special_bits("fp32")
    assert np.array_equal(reciprocals(bits), expected(bits))


@pytest.mark.parametrize("count", [50_000, pytest.param(2_000_000, marks=pytest.mark.long)])
def test_random_operands(rng, count):
    """Over all of binary32, and around the operands whose reciprocal is subnormal."""
    for _ in range(0, count, 50_000):
        bits = random_bits(rng, "fp32", 50_000)
        near = rng.random(len(bits)) < 0.3
        bits = np.where(near, (bits & 0x80FF_FFFF) | (rng.integers(0xFC, 0xFF, len(bits), np.uint32) << 23), bits).astype(np.uint32)
        assert np.array_equal(reciprocals(bits), expected(bits))


@pytest.mark.parametrize("shift", [16, pytest.param(12, marks=pytest.mark.long)])
def test_every_operand_of_a_narrow_format(shift):
    """bf16's are binary32's with 16 low bits of zero; more bits in the long run."""
    bits = np.arange(1 << 32 - shift, dtype=np.uint32) << np.uint32(shift)
    assert np.array_equal(reciprocals(bits), expected(bits))


def test_every_operand_of_fp16():
    bits = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32).view(np.uint32)
    assert np.array_equal(reciprocals(bits), expected(bits))


def test_the_result_comes_after_nine_cycles_and_not_before(rng):
    bits = rng.integers(0x3F80_0000, 0x4000_0000, 20, np.uint32)
    cycles = 20 * len(bits)
    start, x = np.zeros(cycles, np.uint8), np.zeros(cycles, np.uint32)
    start[::20], x[::20] = 1, bits
    o = model().vectors({"start": start, "x": x}, ["o"])["o"].reshape(-1, 20)
    assert np.array_equal(o[:, LATENCY], expected(bits)) and (o[:, LATENCY - 1] != expected(bits)).any()


def test_operands_closer_than_the_interval_spoil_each_other(rng):
    bits = rng.integers(0x3F80_0001, 0x4000_0000, 100, np.uint32)
    assert not np.array_equal(reciprocals(bits, INTERVAL - 1), expected(bits))
