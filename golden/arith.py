"""The arithmetic of one processing element, element by element: bit patterns in, bit patterns out.

Operands and results are uint32 arrays of binary32 patterns unless a function takes a format for an operand; shapes broadcast.
Every result rounds to nearest even, keeps subnormals, overflows to infinity, and has canonical NaN (rule N0). Functions named
``*_values`` do the same on decoded float32 arrays, for loops; their NaNs may have any pattern. All raise :class:`SpecError` for
an unknown format or for bits of another dtype than the format's.
"""

import numpy as np

from spec.errors import SpecError, choices
from spec.formats import FLOAT_FORMATS, PAIR_FORMATS

from .formats import canonical_bits, check_bits, decode

__all__ = ["add", "multiply", "fma", "fma_values", "wide_fma_values", "pair_step", "int_pair_step"]

_FLOAT_PAIR_FORMATS = tuple(name for name in PAIR_FORMATS if name in FLOAT_FORMATS)


def _check_format(argument, name, allowed):
    if name not in allowed:
        raise SpecError(argument, name, choices(allowed))


@np.errstate(all="ignore")
def add(a, b):
    """``a + b`` in binary32 (rules N3 and N6)."""
    return canonical_bits(decode(a, "fp32") + decode(b, "fp32"))


@np.errstate(all="ignore")
def multiply(a, b):
    """``a * b`` in binary32 (rule N6)."""
    return canonical_bits(decode(a, "fp32") * decode(b, "fp32"))


@np.errstate(all="ignore")
def fma(a, b, c, a_format="fp32", b_format="fp32"):
    """``a * b + c`` with one rounding (rules N1 and N4).

    Parameters
    ----------
    a, b : array
        Bit patterns of ``a_format`` and ``b_format``, two floating-point formats; tf32 is rounded to tf32 first.
    c : uint32 array
        Binary32.
    """
    _check_format("a_format", a_format, FLOAT_FORMATS)
    _check_format("b_format", b_format, FLOAT_FORMATS)
    step = wide_fma_values if "fp32" in (a_format, b_format) else fma_values
    return canonical_bits(step(decode(a, a_format), decode(b, b_format), decode(c, "fp32")))


def fma_values(a, b, c):
    """Rule N1 on float32 arrays, for ``a`` and ``b`` of up to 11 significand bits.

    Their product has at most 22 bits, so float64 holds it, and where float64 rounds the sum, the smaller addend is far below half
    a unit in the last place of binary32: rounding a second time does no harm.
    """
    return (a.astype(np.float64) * b + c).astype(np.float32)


def wide_fma_values(a, b, c):
    """Rules N1 and N4 on float32 arrays of full precision.

    float64 holds the 48-bit product and its exponent, but not always the sum. TwoSum gives the sum's error; where there is one,
    the sum is truncated and its lowest bit set (round to odd), so that rounding to binary32 goes where the exact sum would go.
    """
    product = np.multiply(a, b, dtype=np.float64)
    total = np.asarray(product + c)
    c_part = total - product
    error = (product - (total - c_part)) + (c - c_part)
    bits = total.view(np.int64)
    inexact = (error < 0) | (error > 0)  # and not where the sum is infinite or NaN, which make the error NaN
    bits -= inexact & ((error > 0) != (total > 0))
    bits |= inexact
    return total.astype(np.float32)


@np.errstate(all="ignore")
def pair_step(a0, b0, a1, b1, c, a_format, b_format, second=True):
    """``c + (a0 * b0 + a1 * b1)``, rounded after each of the two additions (rule N5).

    Parameters
    ----------
    a0, a1, b0, b1 : uint8 array
        Bit patterns of ``a_format`` (a0, a1) and ``b_format`` (b0, b1), formats of rule N5, whose products binary32 holds
        exactly.
    c : uint32 array
        The running sum, binary32.
    second : bool array
        Where False, the row holds no second element: a1 and b1 are ignored and the step is rule N1's.
    """
    _check_format("a_format", a_format, _FLOAT_PAIR_FORMATS)
    _check_format("b_format", b_format, _FLOAT_PAIR_FORMATS)
    first_product = decode(a0, a_format) * decode(b0, b_format)
    second_product = decode(a1, a_format) * decode(b1, b_format)
    products = np.where(second, first_product + second_product, first_product)
    return canonical_bits(decode(c, "fp32") + products)


@np.errstate(over="ignore")
def int_pair_step(a0, b0, a1, b1, c, second=True):
    """``c + a0 * b0 + a1 * b1`` in 32-bit two's complement that wraps (rule N13).

    Parameters
    ----------
    a0, a1, b0, b1 : uint8 array
        int8 bit patterns.
    c : uint32 array
        The running sum, int32 bit patterns.
    second : bool array
        Where False, the row holds no second element: a1 and b1 are ignored.
    """
    a0, b0, a1, b1 = (check_bits(x, "int8").view(np.int8).astype(np.int32) for x in (a0, b0, a1, b1))
    products = a0 * b0 + np.where(second, a1 * b1, np.int32(0))
    return check_bits(c, "int32") + products.view(np.uint32)
