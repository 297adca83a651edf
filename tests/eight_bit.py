"""Every pair of 8-bit operands, and the running sums that meet their product."""

import numpy as np

from tests.corners import bits_near

__all__ = ["first_and_second", "running_sums"]

FIXED = (0x0000_0000, 0x8000_0000, 0x3F80_0001, 0x8000_0001, 0x7F7F_FFFF)
"""Zeros of both signs, one and a unit, the smallest number, the largest."""


def first_and_second():
    """All 65,536 pairs of 8-bit patterns, as two arrays."""
    every = np.arange(1 << 16)
    return (every & 255).astype(np.uint8), (every >> 8).astype(np.uint8)


def running_sums(rng, products):
    """Addends for an array of binary32 ``products``, one array at a time.

    A few fixed ones, the product itself negated and up to two units off, one whose last place is about half of the product,
    and one within 30 binades.
    """
    for bits in FIXED:
        yield np.full(products.shape, bits, np.uint32)
    off = rng.integers(-2, 3, products.shape)
    yield np.clip((products & np.uint32(0x7FFF_FFFF)).astype(np.int64) + off, 0, None).astype(np.uint32) \
        | (~products & np.uint32(0x8000_0000))
    exponents = (products >> np.uint32(23) & np.uint32(255)).astype(np.int64) - 127
    yield bits_near(rng, "fp32", exponents + rng.integers(23, 26, products.shape))
    yield bits_near(rng, "fp32", exponents + rng.integers(-30, 31, products.shape))
