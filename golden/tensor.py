"""Matrix products and transposes of the tensor engine, to the bit: ``result[M, N] = stationary[K, M]^T . moving[K, N]``.

Operands are bit patterns in the unsigned dtype of their format's storage width. Results are uint32: binary32 patterns, or for
int8 operands int32 patterns, as the partial-sum buffer holds them.
"""

import numpy as np

from spec.config import CoreConfig
from spec.errors import SpecError
from spec.tensor import check_matmul, contraction_tiles

from .arith import add
from .columns import column_sums, pair_column_sums
from .formats import canonical_bits, check_bits, decode

__all__ = ["matmul", "matmul_tiled", "accumulate", "transpose"]

_ANY_CORE = CoreConfig(rows=2, cols=2, tile=2, formats=("all",), fp8_pairs=True)
"""Refuses only what no core computes."""


def matmul(stationary, moving, form):
    """One pass through an array that has a row for every element, or for every two in pairs (rules N1, N2, N4, N5, N13).

    Parameters
    ----------
    stationary : array [K, M]
        Bit patterns of ``form.stationary``.
    moving : array [K, N]
        Bit patterns of ``form.moving``.
    form : spec.tensor.Matmul

    Returns
    -------
    uint32 array [M, N]

    Raises
    ------
    SpecError
        For formats that do not go together, another dtype than a format's, shapes that do not fit, or a size of zero.
    """
    check_matmul(_ANY_CORE, form)
    return _as_bits(_pass_sums(*_decode_operands(stationary, moving, form), form))


def matmul_tiled(core, stationary, moving, form):
    """A product of any size on ``core`` (a ``CoreConfig``): tiles of the contraction ascending, joined by rule N3.

    Parameters, result and errors are those of :func:`matmul`; formats that ``core`` lacks are refused too. How M and N are cut
    makes no difference to any bit, so it is not modelled.
    """
    check_matmul(core, form)
    stationary, moving = _decode_operands(stationary, moving, form)
    first, *others = contraction_tiles(core.rows, len(stationary), form.paired)
    total = _pass_sums(stationary[first], moving[first], form)
    with np.errstate(all="ignore"):
        for tile in others:
            total += _pass_sums(stationary[tile], moving[tile], form)
    return _as_bits(total)


def accumulate(old, sums, is_integer=False):
    """Old partial sums plus a column's sums (rule N3; int32 that wraps, rule N13, with ``is_integer``); uint32 patterns."""
    if is_integer:
        return check_bits(old, "int32", "old") + check_bits(sums, "int32", "sums")
    return add(old, sums)


def transpose(stationary):
    """``result[m, k]`` holds the bits of ``stationary[k, m]``, zero-extended to uint32 (rule N14); every pattern passes.

    Raises
    ------
    SpecError
        Unless ``stationary`` is a matrix of uint8, uint16 or uint32.
    """
    stationary = _check_matrix(stationary, "stationary")
    if stationary.dtype not in (np.uint8, np.uint16, np.uint32):
        raise SpecError("dtype of stationary", str(stationary.dtype), "uint8, uint16 or uint32")
    return stationary.T.astype(np.uint32, order="C")


def _check_matrix(bits, argument):
    bits = np.asarray(bits)
    if bits.ndim != 2 or 0 in bits.shape:
        raise SpecError(f"shape of {argument}", bits.shape, "two dimensions, neither of them zero")
    return bits


def _decode_operands(stationary, moving, form):
    """Both operands as float32 values, which hold int8 exactly too."""
    stationary, moving = _check_matrix(stationary, "stationary"), _check_matrix(moving, "moving")
    if len(stationary) != len(moving):
        raise SpecError("shape of moving", moving.shape, f"{len(stationary)} rows, as many as stationary has")
    return (decode(check_bits(stationary, form.stationary, "stationary"), form.stationary),
            decode(check_bits(moving, form.moving, "moving"), form.moving))


@np.errstate(all="ignore")
def _pass_sums(stationary, moving, form):
    """Column sums of one pass: float32, or uint32 patterns of int32 sums."""
    if form.is_integer:
        # Products of 15 bits: float64 sums them exactly, in any order, so only the sum has to wrap.
        exact = stationary.T.astype(np.float64) @ moving.astype(np.float64)
        return exact.astype(np.int64).astype(np.uint32)
    if form.paired:
        return pair_column_sums(stationary, moving)
    return column_sums(stationary, moving, wide=form.passes > 1)

def _as_bits(sums):
    return sums if sums.dtype == np.uint32 else canonical_bits(sums)
