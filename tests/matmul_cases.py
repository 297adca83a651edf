"""Operands of matrix products, weighted to what tells a wrong sum from a right one."""

import numpy as np

from spec.formats import find_format
from tests.corners import bits_near, random_bits

__all__ = ["matmul_operands"]


def matmul_operands(rng, form, k, m, n, specials=0.03):
    """Bit patterns of ``stationary[k, m]`` and ``moving[k, n]``.

    Corner cases of a whole format seldom meet: one product outweighs all others, and no order of summation shows. So each column
    is of one of three kinds, and some results come from two of the same kind:

    - corner cases over the whole format
    - values within seven binades of 1, whose sums round at every step
    - such values whose second half repeats the first, negated in ``stationary`` and a unit off here and there, so that the sum
      cancels to little or nothing

    Parameters
    ----------
    rng : numpy.random.Generator
    form : spec.tensor.Matmul
    k, m, n : int
    specials : float
        The share of :func:`tests.corners.special_bits` in columns of the first kind; with 0 every element is finite.
    """
    return (_operand(rng, form.stationary, k, m, specials, negate=True),
            _operand(rng, form.moving, k, n, specials, negate=False))


def _operand(rng, name, k, columns, specials, negate):
    corners = random_bits(rng, name, (k, columns), specials)
    if name == "int8":
        return corners
    near = bits_near(rng, name, rng.integers(-7, 8, (k, columns)))
    fmt, half = find_format(name), k // 2
    cancelling = near.copy()
    cancelling[half:2 * half] = near[:half]
    if negate:
        sign, unit = 1 << (fmt.width - 1), 1 << fmt.padding
        cancelling[half:2 * half] ^= np.where(rng.random((half, columns)) < 0.1, sign | unit, sign).astype(near.dtype)
    return np.choose(rng.integers(0, 3, columns), [corners, near, cancelling])
