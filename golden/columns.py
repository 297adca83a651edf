"""Sums down the columns of the array, in the array's order, as fast as numpy allows (rules N1, N2, N4, N5).

Operands are decoded float32 arrays, ``stationary[K, M]`` and ``moving[K, N]``; results are float32 ``[M, N]`` whose NaNs may have
any pattern. Callers silence numpy's floating-point warnings.

The meaning is in :func:`sums_by_steps`: one fused multiply-add after the other. Where all products are exact in binary32, a plain
multiply and add gives the same, and so does a matrix product of numpy's, as long as it adds in ascending order with one running
sum for each result and either fuses or has exact products. BLAS kernels mostly do that, but none promises it. So they are used in
blocks of one fixed shape only, and each process tries them on data that shows any other order before it relies on them.
"""

from functools import lru_cache
from typing import Callable, NamedTuple

import numpy as np

from .arith import fma_values, wide_fma_values

__all__ = ["column_sums", "pair_column_sums", "sums_by_steps", "Product", "CANDIDATES", "keeps_order"]

_STEP_BLOCK = (16, 512)
_STEP_ELEMENTS = 16 * 512
"""Results that are stepped together: few enough for their float64 intermediates to stay in the cache."""

_WORTH_A_BLOCK = 4096
"""Results below which padding to a whole block costs more than it saves."""


def column_sums(stationary, moving, wide):
    """Each column's sum, starting from +0, rows ascending, one rounding a row (rules N1, N2, N4).

    ``wide`` says that an operand has 24 significand bits (fp32); otherwise both have at most 11.
    """
    (a_low, a_high), (b_low, b_high) = (_exponents(x, 24 if wide else 11) for x in (stationary, moving))
    may_underflow = a_low.min() + b_low.min() < -149
    exact = not wide and not may_underflow and a_high + b_high <= 128
    product = _find_product(stationary, moving, len(stationary), wide=not exact)
    if product is None:
        if exact:
            return _grouped_sums(_PLAIN, stationary[:, None], moving[:, None])
        return sums_by_steps(stationary, moving, wide)
    sums = _grouped_sums(product, stationary[None], moving[None])
    if may_underflow:
        _restore_zeros(sums, a_low[:, None] + b_low < -149, stationary, moving)
    return sums


def sums_by_steps(stationary, moving, wide):
    """What :func:`column_sums` means: a fused multiply-add for every row, element by element."""
    step = wide_fma_values if wide else fma_values
    sums = np.zeros((stationary.shape[1], moving.shape[1]), np.float32)
    for m in range(0, sums.shape[0], _STEP_BLOCK[0]):
        for n in range(0, sums.shape[1], _STEP_BLOCK[1]):
            block = np.s_[m:m + _STEP_BLOCK[0], n:n + _STEP_BLOCK[1]]
            for weights, values in zip(stationary[:, block[0], None], moving[:, None, block[1]]):
                sums[block] = step(weights, values, sums[block])
    return sums


def pair_column_sums(stationary, moving):
    """Each column's sum where row p holds the elements p and p + ceil(K / 2) (rule N5), in formats which that rule names.

    Where an odd K leaves the last row without a second element, zeros stand in for it: their +0 changes no sum that started from
    +0 and, with these formats, never underflows.
    """
    stationary, moving = _pair_rows(stationary), _pair_rows(moving)
    product = _find_product(stationary[0], moving[0], 2, wide=False)
    return _grouped_sums(product or _PLAIN, stationary, moving)


def _pair_rows(operand):
    """``[K, X]`` as ``[ceil(K / 2), 2, X]``, a missing last element as zeros."""
    rows = (len(operand) + 1) // 2
    pairs = np.zeros((rows, 2, operand.shape[1]), np.float32)
    pairs[:, 0], pairs[:len(operand) - rows, 1] = operand[:rows], operand[rows:]
    return pairs


def _grouped_sums(product, stationary, moving):
    """Running sums of ``product(stationary[g], moving[g])`` over the groups g of rows, ``[groups, rows, M or N]``."""
    sums = np.zeros((stationary.shape[2], moving.shape[2]), np.float32)
    for n in range(0, sums.shape[1], product.width):
        values = moving[:, :, n:n + product.width]
        if product.is_padded:
            values = _pad(values, product.guard, product.width + 2 * product.guard)
        for m in range(0, sums.shape[0], product.height):
            weights = stationary[:, :, m:m + product.height]
            if product.is_padded:
                weights = _pad(weights, 0, product.height)
            running = sums[m:m + product.height, n:n + product.width]
            inner = np.s_[:running.shape[0], product.guard:product.guard + running.shape[1]]
            for group in range(len(weights)):
                running += product.multiply(weights[group], values[group])[inner]
    return sums


def _pad(operand, first, width):
    """A contiguous copy, ``width`` columns wide, that starts at column ``first`` among zeros."""
    padded = np.zeros((*operand.shape[:2], width), np.float32)
    padded[:, :, first:first + operand.shape[2]] = operand
    return padded


def _exponents(values, significand_bits):
    """``low, high``: a column's finite elements are multiples of 2^low[column], and all are below 2^high."""
    magnitudes = values.view(np.uint32) & np.uint32(0x7FFFFFFF)
    smallest = (magnitudes - np.uint32(1)).min(axis=0).astype(np.int64) + 1  # zeros wrap to the top
    largest = int(np.where(magnitudes < 0x7F800000, magnitudes, 0).max())
    low = np.where(smallest >> 23, (smallest >> 23) - 127 - (significand_bits - 1), -149)
    return low, max(largest >> 23, 1) - 126


def _restore_zeros(sums, may_underflow, stationary, moving):
    """Compute zeros again, step by step, whose products may underflow: they may be -0, which a matrix product's end makes +0.

    Where all products are multiples of 2^-149, no sum rounds to -0.
    """
    zeros = np.nonzero((sums == 0) & may_underflow)
    for start in range(0, len(zeros[0]), _STEP_ELEMENTS):
        m, n = (index[start:start + _STEP_ELEMENTS] for index in zeros)
        running = np.zeros(len(m), np.float32)
        for weights, values in zip(stationary, moving):
            running = wide_fma_values(weights[m], values[n], running)
        sums[m, n] = running


class Product(NamedTuple):
    """A way to multiply blocks: ``multiply(stationary[rows, M], moving[rows, N])`` gives their sums ``[M, N]``.

    ``height`` and ``width`` limit M and N; if ``is_padded``, every block is filled up to them with zeros. ``guard`` columns of
    zeros on either side of ``moving`` belong to the block as well, and their results are dropped.
    """

    multiply: Callable
    height: int
    width: int
    guard: int = 0
    is_padded: bool = True


def _multiply_and_add(stationary, moving):
    """The sum of one or two exact products, rounded once."""
    products = stationary[:, :, None] * moving[:, None]
    return products[0] if len(products) == 1 else products[0] + products[1]


def _blas(stationary, moving):
    return stationary.T @ moving


def _einsum(stationary, moving):
    return np.einsum("km,kn->mn", stationary, moving)


_PLAIN = Product(_multiply_and_add, 64, 512, is_padded=False)

CANDIDATES = (
    Product(_blas, 64, 512),
    # OpenBLAS's kernels for AVX-512 keep the order everywhere; those for AVX2 have another one in the first and last 8 columns
    # of each piece of up to 320, and in rows beyond a multiple of 12.
    Product(_blas, 48, 256, guard=8),
    Product(_einsum, 64, 1024),
)
"""Matrix products that are tried, the fastest first."""


def _find_product(stationary, moving, rows, wide):
    """A matrix product that sums ``rows`` rows in order and is worth it for these operands; None if there is none."""
    if stationary.shape[1] * moving.shape[1] < _WORTH_A_BLOCK:
        return None
    return _ordered_product(rows, wide)


@lru_cache(maxsize=None)
def _ordered_product(rows, wide):
    """The first of ``CANDIDATES`` that sums ``rows`` rows as :func:`sums_by_steps` does; None if there is none."""
    return next((product for product in CANDIDATES if keeps_order(product, rows, wide)), None)


def keeps_order(product, rows, wide):
    """Whether ``product`` equals :func:`sums_by_steps` to the bit on blocks of ``rows`` rows.

    Two trials: full significands of mixed exponents, where nearly every result shows another order or a separate rounding of
    products; and subnormal operands whose sums are subnormal, which show flushing to zero.
    """
    rng = np.random.default_rng(0)

    def operand(columns, exponent, spread, significand_bits):
        shape = rows, columns
        significands = rng.integers(1 << (significand_bits - 1), 1 << significand_bits, shape) * rng.choice([-1, 1], shape)
        exponents = exponent + 1 - significand_bits + rng.integers(-spread, spread + 1, shape)
        return np.ldexp(significands.astype(np.float64), exponents).astype(np.float32)

    inner = slice(product.guard, product.guard + product.width)
    for exponents, spread, significand_bits in (((0, 0), 6, 24 if wide else 11), ((-130, -2), 1, 5)):
        stationary = operand(product.height, exponents[0], spread, significand_bits)
        moving = operand(product.width + 2 * product.guard, exponents[1], spread, significand_bits)
        expected = sums_by_steps(stationary, moving[:, inner], wide)
        if not np.array_equal(product.multiply(stationary, moving)[:, inner].view(np.uint32), expected.view(np.uint32)):
            return False
    return True
