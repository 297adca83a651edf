"""Referee for floating-point arithmetic: exact integers and one rounding, one element at a time, apart from the golden model.

A finite number is ``(sign, significand, exponent)``, the value ``(-1)^sign * significand * 2^exponent`` with a Python integer for
the significand, so zero keeps its sign; the others are ``(sign, "inf")`` and ``NAN``.
"""

from fractions import Fraction

import numpy as np

from spec.formats import FLOAT_FORMATS

__all__ = ["NAN", "number", "product", "total", "rounded", "as_fraction", "fma", "pair_step", "add", "multiply",
           "matmul"]

NAN = (0, "nan")
FP32 = FLOAT_FORMATS["fp32"]


def number(bits, fmt):
    """What the pattern ``bits`` of the format ``fmt`` stands for; tf32 rounded to its fraction."""
    bits = int(bits)
    sign, magnitude = bits >> (fmt.width - 1), bits & ((1 << (fmt.width - 1)) - 1)
    if magnitude > fmt.infinity if fmt.has_infinity else magnitude == fmt.nan:
        return NAN
    if fmt.has_infinity and magnitude == fmt.infinity:
        return sign, "inf"
    if fmt.padding:
        exact = _finite(sign, magnitude, fmt, fmt.fraction_bits + fmt.padding)
        magnitude = rounded(exact, fmt) & ((1 << (fmt.width - 1)) - 1)
        if magnitude == fmt.infinity:
            return sign, "inf"
    return _finite(sign, magnitude, fmt, fmt.fraction_bits + fmt.padding)


def _finite(sign, magnitude, fmt, fraction_bits):
    field, fraction = magnitude >> fraction_bits, magnitude & ((1 << fraction_bits) - 1)
    if field == 0:
        return sign, fraction, fmt.min_exponent - fraction_bits
    return sign, fraction + (1 << fraction_bits), field - fmt.bias - fraction_bits


def as_fraction(x):
    """A finite number as a ``Fraction``."""
    return (-1) ** x[0] * x[1] * Fraction(2) ** x[2]


def product(x, y):
    """The exact product."""
    sign = x[0] ^ y[0]
    if NAN in (x, y):
        return NAN
    if "inf" in (x[1], y[1]):
        return NAN if 0 in (x[1], y[1]) else (sign, "inf")
    return sign, x[1] * y[1], x[2] + y[2]


def total(x, y):
    """The exact sum; a zero sum of unlike signs is +0, as rounding to nearest even has it."""
    if NAN in (x, y):
        return NAN
    if "inf" in (x[1], y[1]):
        if x[1] == y[1] and x[0] != y[0]:
            return NAN
        return x if x[1] == "inf" else y
    exponent = min(x[2], y[2])
    left, right = x[1] << (x[2] - exponent), y[1] << (y[2] - exponent)
    if x[0] == y[0]:
        return x[0], left + right, exponent
    if left == right:
        return 0, 0, exponent
    return (x[0], left - right, exponent) if left > right else (y[0], right - left, exponent)


def rounded(x, fmt=FP32):
    """The pattern of ``fmt`` nearest to ``x``, ties to even, overflow to infinity (NaN where there is none)."""
    if x == NAN:
        return fmt.nan
    sign = x[0] << (fmt.width - 1)
    overflow = sign | fmt.infinity if fmt.has_infinity else fmt.nan
    if x[1] == "inf":
        return overflow
    _, significand, exponent = x
    if significand == 0:
        return sign
    leading = max(significand.bit_length() - 1 + exponent, fmt.min_exponent)
    shift = leading - fmt.fraction_bits - exponent
    if shift <= 0:
        significand <<= -shift
    else:
        rest, half = significand & ((1 << shift) - 1), 1 << (shift - 1)
        significand >>= shift
        significand += rest > half or (rest == half and significand & 1)
    # Counting patterns from +0: each binade holds 2^fraction_bits of them, and a carry moves into the next by itself.
    magnitude = (significand + ((leading - fmt.min_exponent) << fmt.fraction_bits)) << fmt.padding
    return overflow if magnitude > fmt.max_finite else sign | magnitude


def add(x, y):
    """Binary32 sum of two numbers, as a pattern."""
    return rounded(total(x, y))


def multiply(x, y):
    """Binary32 product of two numbers, as a pattern."""
    return rounded(product(x, y))


def fma(x, y, z):
    """Binary32 ``x * y + z`` with one rounding (rules N1 and N4), as a pattern."""
    return rounded(total(product(x, y), z))


def pair_step(x0, y0, x1, y1, z):
    """Binary32 ``z + (x0 * y0 + x1 * y1)`` rounded after each addition (rule N5), as a pattern."""
    products = rounded(total(product(x0, y0), product(x1, y1)))
    return rounded(total(z, number(products, FP32)))


def matmul(stationary, moving, form, rows=10 ** 9):
    """``stationary[K, M]^T . moving[K, N]`` on an array of ``rows`` rows (rules N1 to N5, N13): uint32 patterns ``[M, N]``.

    ``form`` is a ``spec.tensor.Matmul``. One result at a time, so for small sizes only.
    """
    step = 2 * rows if form.paired else rows
    result = np.zeros((stationary.shape[1], moving.shape[1]), np.uint32)
    for m, n in np.ndindex(*result.shape):
        sums = [_tile_sum(stationary[k:k + step, m], moving[k:k + step, n], form) for k in range(0, len(moving), step)]
        joined = sums[0]
        for tile in sums[1:]:
            joined = (joined + tile) % 2 ** 32 if form.is_integer else add(number(joined, FP32), number(tile, FP32))
        result[m, n] = joined
    return result


def _tile_sum(stationary, moving, form):
    """The sum of one tile for one column of ``stationary`` and one of ``moving``, as a pattern."""
    if form.is_integer:
        return sum(int(w) * int(x) for w, x in zip(stationary.view(np.int8), moving.view(np.int8))) % 2 ** 32
    weights = [number(w, FLOAT_FORMATS[form.stationary]) for w in stationary]
    values = [number(x, FLOAT_FORMATS[form.moving]) for x in moving]
    rows = -(-len(weights) // 2) if form.paired else len(weights)
    running = 0
    for p in range(rows):
        if p + rows < len(weights):
            running = pair_step(weights[p], values[p], weights[p + rows], values[p + rows], number(running, FP32))
        else:
            running = fma(weights[p], values[p], number(running, FP32))
    return running
