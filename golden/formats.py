"""Bit patterns to values and back, and every conversion between formats (rules N0 and N7).

An array of bit patterns has the unsigned dtype of the format's storage width (:func:`storage_dtype`); values are float32,
which holds every value of every floating-point format exactly. All functions work element by element on any shape.
"""

from functools import lru_cache

import numpy as np

from spec.errors import SpecError
from spec.formats import FloatFormat, find_format

__all__ = ["storage_dtype", "check_bits", "decode", "encode", "convert", "canonical_bits"]

_SIGN = np.uint32(0x80000000)
_INFINITY = np.uint32(0x7F800000)
_NAN = np.uint32(0x7FC00000)
_FRACTION_BITS = 23
_BIAS = 127


def storage_dtype(name):
    """The unsigned numpy dtype that holds one element of the format called ``name``."""
    return np.dtype(f"uint{find_format(name).width}")


def check_bits(bits, name, argument="bits"):
    """``bits`` as an array; raises :class:`SpecError` unless it has the dtype of the format called ``name``."""
    bits = np.asarray(bits)
    if bits.dtype != storage_dtype(name):
        raise SpecError(f"dtype of {argument}", str(bits.dtype), f"{storage_dtype(name)}, which holds {name}")
    return bits


def canonical_bits(values):
    """The bit patterns (uint32) of float32 ``values``, every NaN the positive quiet one (rule N0)."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    return np.where((bits & ~_SIGN) > _INFINITY, _NAN, bits)


def decode(bits, name):
    """The float32 values that ``bits`` stand for.

    Floating-point formats decode exactly, but tf32 is rounded to its 10 fraction bits (rule N1) and NaN is canonical. Integers
    round to nearest even, so they are exact up to 2^24.

    Raises
    ------
    SpecError
        For an unknown format or another dtype than the format's.
    """
    bits = check_bits(bits, name)
    if bits.dtype.itemsize <= 2:
        return _decode_table(name)[bits]
    fmt = find_format(name)
    if name == "tf32":
        bits = encode(bits.view(np.float32), "tf32")
    return _decode_float(bits, fmt) if isinstance(fmt, FloatFormat) else _decode_int(bits, fmt)


@lru_cache(maxsize=None)
def _decode_table(name):
    """The values of all patterns of a format of 8 or 16 bits."""
    fmt = find_format(name)
    patterns = np.arange(1 << fmt.width, dtype=storage_dtype(name))
    return _decode_float(patterns, fmt) if isinstance(fmt, FloatFormat) else _decode_int(patterns, fmt)


def _decode_int(bits, fmt):
    return (bits.view(f"int{fmt.width}") if fmt.signed else bits).astype(np.float32)


@np.errstate(invalid="ignore")
def _decode_float(bits, fmt):
    sign_bit = fmt.width - 1
    bits = bits.astype(np.uint32)
    magnitude = bits & np.uint32((1 << sign_bit) - 1)
    sign = (bits >> np.uint32(sign_bit)) << np.uint32(31)
    # The fields at their places in binary32 make a number that is off by the difference of the biases only, subnormal or not.
    aligned = magnitude << np.uint32(_FRACTION_BITS - fmt.fraction_bits - fmt.padding)
    values = (aligned.view(np.float32) * np.float32(2.0 ** (_BIAS - fmt.bias))).view(np.uint32)
    if fmt.has_infinity:
        values = np.where(magnitude >= fmt.infinity, _INFINITY, values)
    is_nan = magnitude > fmt.infinity if fmt.has_infinity else magnitude == fmt.nan
    return np.where(is_nan, _NAN, values | sign).view(np.float32)


def encode(values, name, saturate=False):
    """The bit patterns of float32 ``values`` in the format called ``name``, rounded by rule N7.

    Parameters
    ----------
    values : float32 array
    name : str
        Any format. Integers always saturate and take NaN to 0.
    saturate : bool
        Overflow and infinities give the largest finite value instead of infinity, or NaN where the format has none.

    Raises
    ------
    SpecError
        For an unknown format, or for ``values`` that are not float32 (they would be rounded twice).
    """
    values, fmt = np.asarray(values), find_format(name)
    if values.dtype != np.float32:
        raise SpecError("dtype of values", str(values.dtype), "float32")
    return _encode_float(values, fmt, saturate) if isinstance(fmt, FloatFormat) else _encode_int(values, fmt)


def _encode_float(values, fmt, saturate):
    bits = values.view(np.uint32)
    magnitude = bits & ~_SIGN
    sign = (bits >> np.uint32(31)) << np.uint32(fmt.width - 1)
    rounded = _round_magnitude(magnitude, fmt) if fmt.fraction_bits < _FRACTION_BITS else magnitude
    overflow = (rounded > fmt.max_finite) | (magnitude == _INFINITY)
    if saturate:
        rounded = np.where(overflow, np.uint32(fmt.max_finite), rounded)
    elif fmt.has_infinity:
        rounded = np.where(overflow, np.uint32(fmt.infinity), rounded)
    is_nan = magnitude > _INFINITY
    if not fmt.has_infinity and not saturate:
        is_nan = is_nan | overflow
    return np.where(is_nan, np.uint32(fmt.nan), rounded | sign).astype(f"uint{fmt.width}")


def _round_magnitude(magnitude, fmt):
    """Binary32 magnitudes to the nearest even multiple of ``fmt``'s step, as if its exponent had no upper end."""
    exponent_field = magnitude >> np.uint32(_FRACTION_BITS)
    hidden_bit = (exponent_field > 0).astype(np.uint32) << np.uint32(_FRACTION_BITS)
    significand = (magnitude & np.uint32(0x7FFFFF)) | hidden_bit
    above_min = np.maximum(exponent_field, 1).astype(np.int32) - np.int32(_BIAS + fmt.min_exponent)
    # Below the smallest normal number the step stays, so more bits go; 25 take any significand to zero.
    dropped = np.clip(-above_min, 0, 2 + fmt.fraction_bits) + (_FRACTION_BITS - fmt.fraction_bits)
    dropped = dropped.astype(np.uint32)
    half = np.uint32(1) << (dropped - np.uint32(1))
    odd = (significand >> dropped) & np.uint32(1)
    kept = (significand + half - np.uint32(1) + odd) >> dropped
    # ``kept`` brings the hidden bit, and a carry out of rounding, into the exponent field by itself.
    steps = np.maximum(above_min, 0).astype(np.uint32) << np.uint32(fmt.fraction_bits)
    return (kept + steps) << np.uint32(fmt.padding)


def _encode_int(values, fmt):
    rounded = np.rint(np.where(np.isnan(values), np.float32(0), values))
    # float64 holds the ends of every integer range, float32 does not.
    return np.clip(rounded.astype(np.float64), fmt.min, fmt.max).astype(np.int64).astype(f"uint{fmt.width}")


def convert(bits, source, target, saturate=False):
    """``bits`` of format ``source`` as bits of format ``target``, through binary32 (rule N7).

    Equal formats move the bits untouched, payloads and tf32's lowest bits included. ``saturate`` is as in :func:`encode`.

    Raises
    ------
    SpecError
        For an unknown format or another dtype than the source format's.
    """
    bits = check_bits(bits, source)
    find_format(target)
    return bits.copy() if source == target else encode(decode(bits, source), target, saturate)
