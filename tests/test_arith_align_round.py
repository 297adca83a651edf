"""hdl/arith/align_add.py and normalize_round.py on their own: what the one promises and the other makes of it (rule N1)."""

import numpy as np
import pytest

from tests import rational
from tests.arith_bench import assert_same, small_blocks

WINDOW, ONE = 28, 1 << 25
"""Bits of the window, and the place of 1.0 in it."""


def fields(words, *widths):
    """The fields of packed structures, lowest first."""
    for width in widths:
        yield words & np.uint64((1 << width) - 1)
        words = words >> np.uint64(width)


def term(significand, exponent, sign, infinity=0, nan=0):
    """A packed ``product_layout(2)``."""
    return significand | (exponent & 1023) << 4 | sign << 14 | infinity << 15 | nan << 16


def test_every_sum_of_short_terms_at_every_distance():
    """The window holds the sum, a difference less one unit, or either cut down with the sticky bit saying so."""
    significands = [0, *range(4, 16)]
    grid = np.meshgrid(significands, significands, [0, 1], [0, 1], np.arange(-70, 71))
    x, y, x_sign, y_sign, distance = (values.ravel() for values in grid)
    x_exponent, y_exponent = 100 + np.maximum(distance, 0), 100 + np.maximum(-distance, 0)
    result = small_blocks()["align"](latency=0, x=term(x, x_exponent, x_sign), y=term(y, y_exponent, y_sign))
    total, negative, sticky, exponent, sign, subtracted, infinity, nan = fields(result, WINDOW, 1, 1, 9, 1, 1, 1, 1)
    assert not infinity.any() and not nan.any()
    assert_same(subtracted, x_sign ^ y_sign)
    assert_same(exponent, np.maximum(x_exponent, y_exponent))
    lowest = np.minimum(x_exponent, y_exponent)
    held = total.astype(np.int64) - (negative.astype(np.int64) << WINDOW)
    # All in units of the lower term's lowest bit, in Python's integers, which do not end. A unit of the window is
    # 2 ** (exponent - 25) of them, the terms' own lowest bits are two places below their exponents.
    held += (subtracted & ~sticky & 1).astype(np.int64)
    columns = (x, x_exponent - lowest, x_sign, y, y_exponent - lowest, y_sign, exponent - lowest, sign, held, sticky)
    for row in zip(*(column.tolist() for column in columns)):
        x_bits, x_shift, x_minus, y_bits, y_shift, y_minus, unit_shift, minus, window, cut = row
        exact = (-x_bits if x_minus else x_bits) << x_shift + 23
        exact += (-y_bits if y_minus else y_bits) << y_shift + 23
        whole, rest = divmod(-exact if minus else exact, 1 << int(unit_shift))
        assert window == whole and cut == (rest != 0), row
        assert not cut or not x_bits or not y_bits or abs(window) >= ONE >> 1, f"too few bits are left to round: {row}"


def test_infinities_and_nan_of_a_sum():
    kinds = {"number": (0, 0), "infinity": (1, 0), "nan": (0, 1)}
    for x_kind, x_special in kinds.items():
        for y_kind, y_special in kinds.items():
            for x_sign, y_sign in ((0, 0), (0, 1), (1, 0), (1, 1)):
                x, y = term(4, 100, x_sign, *x_special), term(4, 100, y_sign, *y_special)
                *_, sign, subtracted, infinity, nan = fields(
                    small_blocks()["align"](latency=0, x=x, y=y), WINDOW, 1, 1, 9, 1, 1, 1, 1)
                both = x_kind == y_kind == "infinity"
                is_nan = "nan" in (x_kind, y_kind) or both and x_sign != y_sign
                assert nan[0] == is_nan and infinity[0] == ("infinity" in (x_kind, y_kind))
                if infinity[0] and not is_nan:
                    assert sign[0] == (x_sign if x_kind == "infinity" else y_sign)


def unrounded(rng, count):
    """Sums in every binade of the window at every exponent: exact ones, ties, and ones with bits cut off."""
    place = rng.integers(0, WINDOW, count)
    held = (1 << place) | rng.integers(0, 1 << WINDOW, count) & ((1 << place) - 1)
    ones, low = (2 << place) - 1, rng.integers(-2, 3, count)
    held = np.choose(rng.integers(0, 4, count), [held, np.maximum((1 << place) + low, 0), ones, held & ~7 | 4])
    exponent = np.where(rng.random(count) < 0.5, rng.integers(0, 30, count), rng.integers(0, 400, count))
    sticky = (rng.random(count) < 0.5) & ((held > ONE) | (exponent <= 1))
    return held, exponent, sticky, rng.integers(0, 2, (3, count))


def test_rounding(rng):
    held, exponent, sticky, (sign, negative, subtracted) = unrounded(rng, 30_000)
    subtracted |= negative
    total = np.where(negative, (1 << WINDOW) - 1 - held, held)
    words = total | negative << WINDOW | sticky << 29 | exponent << 30 | sign << 39 | subtracted << 40
    result = small_blocks()["round"](latency=0, i=words)
    fraction, field, result_sign, hidden, infinity, nan = fields(result, 23, 8, 1, 1, 1, 1)
    expected = []
    for row in range(held.size):
        value = int(total[row]) - (int(negative[row]) << WINDOW)
        value = 2 * (value + int(subtracted[row] and not sticky[row])) + int(sticky[row])  # what was cut off is a half
        is_negative = int(sign[row]) ^ (value < 0) if value else int(sign[row]) & ~int(subtracted[row])
        expected.append(rational.rounded((is_negative, abs(value), int(exponent[row]) - 127 - 26)))
    number = fraction | np.where(hidden, field, 0) << np.uint64(23)
    bits = np.where(infinity, 0x7F80_0000, number) | result_sign << np.uint64(31)
    assert_same(bits, np.array(expected), total=total, negative=negative, sticky=sticky, exponent=exponent, sign=sign)
    assert not nan.any() and (field > 0)[(number > 0) & (infinity == 0)].all() and (field < 2)[number == 0].all()


@pytest.mark.parametrize(("infinity", "nan", "negative"), [(1, 0, 1), (0, 1, None), (1, 1, None)])
def test_rounding_of_infinities_and_nan(infinity, nan, negative):
    words = np.array([5 | 100 << 30 | 1 << 39 | infinity << 41 | nan << 42])
    *_, sign, _, is_infinity, is_nan = fields(small_blocks()["round"](latency=0, i=words), 23, 8, 1, 1, 1, 1)
    assert is_nan[0] == nan and is_infinity[0] == infinity
    if negative is not None:
        assert sign[0] == negative
