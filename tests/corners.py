"""Operands weighted to the corner cases of floating-point arithmetic, for golden and hardware tests alike.

Everything is drawn from the numpy ``Generator`` given, so a seed repeats it. Bit patterns have the storage dtype of their
format. The module knows formats from ``spec`` only; it computes nothing that a test would check.
"""

import numpy as np

from spec.formats import FLOAT_FORMATS, FloatFormat, find_format

__all__ = ["special_bits", "random_bits", "bits_near", "fma_cases"]

FP32 = FLOAT_FORMATS["fp32"]


def special_bits(name):
    """Every format's landmarks, both signs: zeros, ends of the subnormal and normal ranges, ones, infinities, NaN payloads."""
    fmt = find_format(name)
    top = 1 << (fmt.width - 1)
    if not isinstance(fmt, FloatFormat):
        patterns = [0, 1, 2, top >> 1, top - 1, top, top + 1, 2 * top - 2, 2 * top - 1]
        return np.array(patterns, f"uint{fmt.width}")
    unit = 1 << fmt.padding
    first_normal = unit << fmt.fraction_bits
    one = fmt.bias * first_normal
    magnitudes = [0, unit, 2 * unit, first_normal - unit, first_normal, first_normal + unit, one - unit, one, one + unit,
                  fmt.max_finite - unit, fmt.max_finite, fmt.nan, top - 1]
    if fmt.has_infinity:
        # The second and third are signalling NaNs, in tf32 one of them only by a bit that arithmetic would round away.
        magnitudes += [fmt.infinity, fmt.infinity + 1, fmt.infinity + unit, fmt.nan + unit]
    if fmt.padding:
        # Ties and near ties of rounding the padding away, and the one that overflows to infinity.
        half = unit >> 1
        magnitudes += [1, half, half + 1, unit + half, one + half - 1, one + half, one + unit + half, fmt.max_finite + half]
    return np.array([m | sign for m in magnitudes for sign in (0, top)], f"uint{fmt.width}")


def bits_near(rng, name, exponents):
    """Finite values of random sign whose leading bits weigh ``2 ** exponents``, as near as the format allows.

    The fraction is zero, all ones, one unit above zero, or random, equally often; a subnormal's lowest bits are cut off.
    tf32's padding is zero.
    """
    fmt = find_format(name)
    shape, hidden = np.shape(exponents), 1 << fmt.fraction_bits
    fraction = _choose(rng, [np.zeros(shape, np.int64), np.full(shape, hidden - 1), np.ones(shape, np.int64),
                             rng.integers(0, hidden, shape)])
    return _assemble(rng, fmt, exponents, fraction)


def _assemble(rng, fmt, exponents, fraction):
    """Finite patterns of random sign from a leading bit's weight and the bits below it."""
    hidden = 1 << fmt.fraction_bits
    steps = np.clip(exponents, fmt.min_normalised_exponent, fmt.max_exponent) - fmt.min_exponent
    magnitude = np.where(steps >= 0, fraction + (np.maximum(steps, 0) + 1) * hidden,
                         (fraction + hidden) >> np.maximum(-steps, 0)) << fmt.padding
    magnitude = np.minimum(magnitude, fmt.max_finite)
    return (magnitude | rng.integers(0, 2, np.shape(exponents)) << (fmt.width - 1)).astype(f"uint{fmt.width}")


def random_bits(rng, name, shape, specials=0.15):
    """Bit patterns of the format called ``name``, weighted to corners.

    Parameters
    ----------
    rng : numpy.random.Generator
    name : str
        Any format of ``spec.formats``.
    shape : int or tuple
    specials : float
        The share drawn from :func:`special_bits`. With 0 no floating-point element is infinite or NaN: long sums need that.

    Returns
    -------
    array
        The rest are, in equal parts: any pattern, exact powers of two, subnormals, values within three binades of one
        exponent that this call chose, and values around 1.
    """
    fmt = find_format(name)
    dtype, shape = f"uint{fmt.width}", tuple(np.atleast_1d(shape))
    anything = rng.integers(0, 1 << fmt.width, shape)
    if isinstance(fmt, FloatFormat):
        rest = _random_floats(rng, fmt, shape, anything)
    else:
        small = rng.integers(-16, 17, shape) & ((1 << fmt.width) - 1)
        rest = _choose(rng, [anything, small, 1 << rng.integers(0, fmt.width, shape)])
    marks = special_bits(name)
    special = rng.choice(marks, shape)
    return np.where(rng.random(shape) < specials, special, rest.astype(dtype)).astype(dtype)


def _random_floats(rng, fmt, shape, anything):
    top, unit = 1 << (fmt.width - 1), 1 << fmt.padding
    power = _assemble(rng, fmt, _random_exponents(rng, fmt, shape), 0).astype(np.int64)
    subnormal = rng.integers(0, 1 << fmt.fraction_bits, shape) * unit | rng.integers(0, 2, shape) * top
    common = _random_exponents(rng, fmt, ())
    near = bits_near(rng, fmt.name, common + rng.integers(-3, 4, shape)).astype(np.int64)
    ordinary = bits_near(rng, fmt.name, rng.integers(-3, 4, shape)).astype(np.int64)
    finite = np.where((anything & (top - 1)) > fmt.max_finite, anything & (top | (top >> 1) - 1), anything)
    bits = _choose(rng, [finite, power, subnormal, near, ordinary])
    if fmt.padding:
        # Half of the elements carry bits below the fraction, half of those exactly a tie; none passes the largest finite.
        low = _choose(rng, [np.zeros(shape, np.int64), rng.integers(0, unit, shape),
                            np.full(shape, unit >> 1), np.zeros(shape, np.int64)])
        bits = np.where((bits & (top - 1)) < fmt.max_finite, bits & ~(unit - 1) | low, bits)
    return bits


def _choose(rng, arrays):
    """Element by element one of ``arrays``, equally often."""
    return np.choose(rng.integers(0, len(arrays), np.shape(arrays[0])), arrays)


def fma_cases(rng, a_format, b_format, count):
    """Operands of a fused multiply-add ``a * b + c`` whose ``c`` is related to the product.

    Parameters
    ----------
    rng : numpy.random.Generator
    a_format, b_format : str
        Floating-point formats.
    count : int
        How many cases; the kinds take turns, and the order is random.

    Returns
    -------
    a, b, c : arrays of ``count`` bit patterns
        ``c`` is binary32. The kinds, as far as the formats reach them:

        - cancellation: ``c`` is the rounded product, negated, up to three units off
        - ties: the product's lowest bit is half a unit of ``c``, or one binade beside that
        - near ties: the product is a hair more or less than half a unit of ``c``, by its own lowest bits
        - carries: ``c`` is just below a power of two, the product about half a unit of it
        - subnormal results: the product weighs 2^-155 to 2^-118, ``c`` is zero, subnormal or little more
        - shifts: ``c`` leads or follows the product by every distance from 0 to 60
        - powers of two: product and sum of opposite signs, 24 to 33 binades apart either way, subnormal operands included
        - overflow: ``c`` near the largest finite number, the product around half a unit of it, or large itself
        - zeros of both signs in any place
        - unrelated corner cases, infinities and NaN among them
    """
    kinds = [_cancellation, _ties, _near_ties, _carries, _subnormal_results, _shifts, _powers_of_two, _overflow, _zeros,
             _unrelated]
    share = -(-count // len(kinds))
    with np.errstate(all="ignore"):
        cases = [kind(rng, a_format, b_format, share) for kind in kinds]
    order = rng.permutation(share * len(kinds))[:count]
    return tuple(np.concatenate(part)[order] for part in zip(*cases))


def _values(bits, name):
    """Float64 values of finite patterns; used to aim only, so tf32's padding is left unrounded."""
    fmt = find_format(name)
    bits = bits.astype(np.int64)
    magnitude = bits & ((1 << (fmt.width - 1)) - 1)
    step = fmt.fraction_bits + fmt.padding
    field = magnitude >> step
    significand = (magnitude & ((1 << step) - 1)) + (field > 0) * (1 << step)
    exponents = np.maximum(field, 1) - fmt.bias - step
    return np.ldexp(np.where(bits >> (fmt.width - 1), -1.0, 1.0) * significand, exponents)


def _random_exponents(rng, fmt, shape, high=None):
    return rng.integers(fmt.min_normalised_exponent, (fmt.max_exponent if high is None else high) + 1, shape)


def _operands(rng, a_format, b_format, count):
    """Finite a and b over the whole range, and their product in float64."""
    a = bits_near(rng, a_format, _random_exponents(rng, find_format(a_format), count))
    b = bits_near(rng, b_format, _random_exponents(rng, find_format(b_format), count))
    return a, b, _values(a, a_format) * _values(b, b_format)


def _operands_at(rng, a_format, b_format, exponents):
    """Finite a and b, either of which may be the larger, whose product weighs about ``2 ** exponents``."""
    a_fmt, b_fmt = find_format(a_format), find_format(b_format)
    low = np.clip(exponents - b_fmt.max_exponent, a_fmt.min_normalised_exponent, a_fmt.max_exponent)
    high = np.clip(exponents - b_fmt.min_normalised_exponent, a_fmt.min_normalised_exponent, a_fmt.max_exponent)
    a_exponents = rng.integers(low, high + 1)
    a = bits_near(rng, a_format, a_exponents)
    b = bits_near(rng, b_format, exponents - a_exponents)
    return a, b, _values(a, a_format) * _values(b, b_format)


def _reachable(a_format, b_format, low, high):
    """The range of product exponents from ``low`` to ``high``, cut to what the two formats reach."""
    a_fmt, b_fmt = find_format(a_format), find_format(b_format)
    bottom = a_fmt.min_normalised_exponent + b_fmt.min_normalised_exponent
    top = a_fmt.max_exponent + b_fmt.max_exponent + 1
    return int(np.clip(low, bottom, top)), int(np.clip(high, bottom, top))


def _exponent_of(values):
    return np.frexp(values)[1].astype(np.int64) - 1


def _nudged(rng, bits, reach):
    """Binary32 patterns up to ``reach`` units away; no infinity or NaN comes out."""
    sign = bits & np.uint32(0x80000000)
    magnitude = (bits ^ sign).astype(np.int64) + rng.integers(-reach, reach + 1, bits.shape)
    return np.clip(magnitude, 0, FP32.max_finite).astype(np.uint32) | sign


def _fp32(values):
    return values.astype(np.float32).view(np.uint32)


def _cancellation(rng, a_format, b_format, count):
    a, b, product = _operands(rng, a_format, b_format, count)
    return a, b, _nudged(rng, _fp32(-product), 3)


def _ties(rng, a_format, b_format, count):
    a, b, product = _operands(rng, a_format, b_format, count)
    significand, exponent = np.frexp(product)
    digits = np.abs(np.ldexp(significand, 53)).astype(np.int64)
    lowest = np.log2((digits & -digits).astype(np.float64)).astype(np.int64) + exponent - 53
    return a, b, bits_near(rng, "fp32", lowest + 1 + FP32.fraction_bits + rng.integers(-1, 2, count))


def _near_ties(rng, a_format, b_format, count):
    a_fmt, b_fmt = find_format(a_format), find_format(b_format)
    short, long = sorted((a_fmt.fraction_bits, b_fmt.fraction_bits))
    power = 1 << (short + long + 1)
    significands = (1 << short) + np.arange(1, min(1 << short, 4096))
    partners = np.rint(power / significands).astype(np.int64)
    hair = np.abs(significands * partners - power)
    best = rng.choice(np.argsort(hair + (hair == 0) * power)[:32], count)  # the hair is there, and shortest
    chosen = [significands[best], partners[best]]
    a_chosen, b_chosen = chosen if a_fmt.fraction_bits == short else reversed(chosen)
    a, b = (_assemble(rng, fmt, rng.integers(fmt.min_exponent, fmt.max_exponent, count), significand - (1 << fmt.fraction_bits))
            for fmt, significand in ((a_fmt, a_chosen), (b_fmt, b_chosen)))
    product = _values(a, a_format) * _values(b, b_format)
    return a, b, bits_near(rng, "fp32", _exponent_of(product) + rng.integers(24, 26, count))


def _carries(rng, a_format, b_format, count):
    a, b, product = _operands(rng, a_format, b_format, count)
    exponents = np.clip(_exponent_of(product) + rng.integers(22, 27, count), FP32.min_exponent, FP32.max_exponent)
    ones = ((exponents + FP32.bias) << FP32.fraction_bits) + (1 << FP32.fraction_bits) - 1
    same_sign = np.where(rng.random(count) < 0.8, product < 0, product > 0)
    return a, b, _nudged(rng, ones.astype(np.uint32) | same_sign.astype(np.uint32) << np.uint32(31), 1)


def _subnormal_results(rng, a_format, b_format, count):
    low, high = _reachable(a_format, b_format, -155, -118)
    a, b, product = _operands_at(rng, a_format, b_format, rng.integers(low, high + 1, count))
    small = bits_near(rng, "fp32", rng.integers(-152, -120, count))
    cancelling = _nudged(rng, _fp32(-product), 2)
    zero = rng.integers(0, 2, count).astype(np.uint32) << np.uint32(31)
    return a, b, _choose(rng, [small, small, cancelling, zero])


def _shifts(rng, a_format, b_format, count):
    a, b, product = _operands(rng, a_format, b_format, count)
    distance = np.resize(np.arange(-60, 61), count)
    return a, b, bits_near(rng, "fp32", _exponent_of(product) + distance)


def _powers_of_two(rng, a_format, b_format, count):
    def power(name):
        fmt = find_format(name)
        low_end = rng.random(count) < 0.5
        exponents = np.where(low_end, _random_exponents(rng, fmt, count, high=fmt.min_exponent),
                             _random_exponents(rng, fmt, count))
        return _assemble(rng, fmt, exponents, 0)

    a, b = power(a_format), power(b_format)
    product = _values(a, a_format) * _values(b, b_format)
    distance = rng.integers(24, 34, count) * rng.choice([-1, 1], count)
    c = bits_near(rng, "fp32", _exponent_of(product) + distance) & np.uint32(0x7FFFFFFF)
    return a, b, c | (product > 0).astype(np.uint32) << np.uint32(31)


def _overflow(rng, a_format, b_format, count):
    low, high = _reachable(a_format, b_format, 101, 105)
    around_half_unit = rng.integers(low, high + 1, count)
    low, high = _reachable(a_format, b_format, 126, 129)
    large = rng.integers(low, high + 1, count)
    a, b, product = _operands_at(rng, a_format, b_format, _choose(rng, [around_half_unit, large]))
    top = _nudged(rng, np.full(count, FP32.max_finite, np.uint32), 2)
    top = top | _choose(rng, [product < 0, product < 0, product > 0]).astype(np.uint32) << np.uint32(31)
    return a, b, _choose(rng, [top, top, random_bits(rng, "fp32", count)])


def _zeros(rng, a_format, b_format, count):
    a, b, _ = _operands(rng, a_format, b_format, count)
    c = bits_near(rng, "fp32", _random_exponents(rng, FP32, count))
    operands = []
    for bits, name, share in ((a, a_format, 0.6), (b, b_format, 0.6), (c, "fp32", 0.8)):
        sign = bits & bits.dtype.type(1 << (find_format(name).width - 1))
        operands.append(np.where(rng.random(count) < share, sign, bits))
    return tuple(operands)


def _unrelated(rng, a_format, b_format, count):
    return random_bits(rng, a_format, count), random_bits(rng, b_format, count), random_bits(rng, "fp32", count)
