"""golden/tensor.py against a slow loop of exact steps (rules N1 to N5, N13, N14)."""

from itertools import product as pairs

import numpy as np
import pytest

from golden.formats import decode, encode
from golden.tensor import accumulate, matmul, matmul_tiled, transpose
from spec.errors import SpecError
from spec.formats import TENSOR_FORMATS
from spec.presets import PRESETS
from spec.tensor import Matmul, check_matmul
from tests import rational
from tests.corners import random_bits
from tests.matmul_cases import matmul_operands
from tests.rational import FP32, number

NANO = PRESETS["nano"].chip.core
BF16, FP32_BOTH = Matmul("bf16", "bf16"), Matmul("fp32", "fp32")


def is_legal(form):
    try:
        check_matmul(NANO, form)
    except SpecError:
        return False
    return True


FORMS = [form for form in (Matmul(*args) for args in pairs(TENSOR_FORMATS, TENSOR_FORMATS, (False, True))) if is_legal(form)]


def form_name(form):
    return f"{form.stationary}-{form.moving}{'-paired' * form.paired}"


def as_bits(values, name):
    return encode(np.array(values, np.float32), name)


@pytest.mark.parametrize("form", FORMS, ids=form_name)
def test_matmul_of_every_form(rng, form):
    for k in (1, 2, 7):
        stationary, moving = matmul_operands(rng, form, k, 5, 6)
        assert np.array_equal(matmul(stationary, moving, form), rational.matmul(stationary, moving, form))


@pytest.mark.parametrize("form", FORMS, ids=form_name)
@pytest.mark.parametrize("k", [4, 8, 9, 13, 21])
def test_matmul_tiled_of_every_form(rng, form, k):
    stationary, moving = matmul_operands(rng, form, k, 2, 4, specials=0.01)
    expected = rational.matmul(stationary, moving, form, NANO.rows)
    assert np.array_equal(matmul_tiled(NANO, stationary, moving, form), expected)


@pytest.mark.parametrize("form", [BF16, Matmul("fp8_e5m2", "fp8_e4m3", paired=True), FP32_BOTH], ids=form_name)
def test_the_slow_loop_sees_wrong_results(rng, form):
    stationary, moving = matmul_operands(rng, form, 21, 8, 8, specials=0)
    exact = rational.matmul(stationary, moving, form)
    assert not np.array_equal(matmul(stationary, moving, form) ^ np.uint32(1), exact)
    assert (matmul(stationary[::-1], moving[::-1], form) != exact).sum() > 3  # another order
    assert (rational.matmul(stationary, moving, form, NANO.rows) != exact).sum() > 3  # other tiles


def test_rows_are_added_in_ascending_order():
    ones = as_bits([[1]] * 4, "bf16")
    values = as_bits([[2 ** 24, 1, -(2 ** 24), 1]], "bf16").T
    assert decode(matmul(ones, values, BF16), "fp32") == 1  # ((2^24 + 1) - 2^24) + 1, the first 1 lost
    assert decode(matmul(ones, values[[0, 2, 1, 3]], BF16), "fp32") == 2


def test_tiles_are_joined_after_their_own_sums():
    # Tiles of four: (2^24 + 0) + (1 + 1) is 2^24 + 2, but row after row both ones would be lost.
    values = as_bits([[2 ** 24, 0, 0, 0, 1, 1]], "bf16").T
    ones = np.full_like(values, as_bits(1, "bf16"))
    assert decode(matmul_tiled(NANO, ones, values, BF16), "fp32") == 2 ** 24 + 2
    assert decode(matmul(ones, values, BF16), "fp32") == 2 ** 24


def test_pairs_are_half_a_tile_apart():
    # Five elements, P = 3: rows (0, 3), (1, 4), (2). 2^24 meets -2^24 at once only as elements 0 and 3.
    form = Matmul("fp8_e5m2", "fp8_e5m2", paired=True)
    weights = as_bits([[4096, 1, 1, 4096, 1]], "fp8_e5m2").T
    values = as_bits([[4096, 1, 1, -4096, 1]], "fp8_e5m2").T
    assert decode(matmul(weights, values, form), "fp32") == 3
    assert decode(matmul(weights[[0, 3, 1, 2, 4]], values[[0, 3, 1, 2, 4]], form), "fp32") != 3


def test_a_column_starts_from_plus_zero():
    minus_zero, one = as_bits([[-0.0]], "bf16"), as_bits([[1]], "bf16")
    assert matmul(minus_zero, one, BF16) == 0
    # Only a product that underflows leaves -0.
    tiny = as_bits([[2.0 ** -100]], "bf16")
    assert matmul(tiny, tiny ^ np.uint16(0x8000), BF16) == 0x80000000


def test_nan_results_are_canonical():
    infinity, minus = as_bits([[np.inf], [np.inf]], "bf16"), as_bits([[1], [-1]], "bf16")
    assert matmul(infinity, minus, BF16) == 0x7FC00000
    assert matmul_tiled(NANO, infinity, as_bits([[0], [1]], "bf16"), BF16) == 0x7FC00000


def test_int8_sums_wrap():
    form, full = Matmul("int8", "int8", paired=True), np.full((2 ** 18, 1), 0x80, np.uint8)
    assert matmul_tiled(PRESETS["inf1"].chip.core, full, full, form) == 0
    sums = matmul(full[:2 ** 17], full[:2 ** 17], form)
    assert sums == 0x80000000 and accumulate(sums, sums, is_integer=True) == 0


@pytest.mark.parametrize("form", [BF16, FP32_BOTH], ids=form_name)
def test_a_large_product_by_tiles_equals_accumulated_passes(rng, form):
    core = PRESETS["trn2"].chip.core
    stationary, moving = matmul_operands(rng, form, 300, 70, 90, specials=0)
    expected = matmul(stationary[:128], moving[:128], form)
    for tile in (slice(128, 256), slice(256, 300)):
        expected = accumulate(expected, matmul(stationary[tile], moving[tile], form))
    assert np.array_equal(matmul_tiled(core, stationary, moving, form), expected)


@pytest.mark.parametrize("name", TENSOR_FORMATS)
def test_transpose_moves_every_pattern(rng, name):
    bits = random_bits(rng, name, (5, 7), specials=0.5)
    result = transpose(bits)
    assert result.dtype == np.uint32 and result.flags.c_contiguous
    assert [[int(x) for x in row] for row in result] == [[int(bits[k, m]) for k in range(5)] for m in range(7)]


def test_transpose_keeps_nan_payloads():
    assert transpose(np.array([[0x7F800001], [0xFFC12345]], np.uint32)).tolist() == [[0x7F800001, 0xFFC12345]]
    assert transpose(np.array([[0xFF, 0x80]], np.uint8)).tolist() == [[0xFF], [0x80]]


def test_accumulate(rng):
    old, sums = random_bits(rng, "fp32", 3000), random_bits(rng, "fp32", 3000)
    exact = [rational.add(number(x, FP32), number(y, FP32)) for x, y in zip(old, sums)]
    assert np.array_equal(accumulate(old, sums), np.array(exact, np.uint32))
    assert np.array_equal(accumulate(old, sums, is_integer=True), (old.astype(np.int64) + sums).astype(np.uint32))


def test_formats_that_do_not_go_together_are_rejected():
    word, half, byte = np.zeros((2, 2), np.uint32), np.zeros((2, 2), np.uint16), np.zeros((2, 2), np.uint8)
    for args, form in (((word, half), Matmul("fp32", "bf16")), ((byte, half), Matmul("int8", "bf16", True)),
                       ((byte, byte), Matmul("fp8_e4m3", "fp8_e4m3fn")), ((byte, byte), Matmul("fp8_e3m4", "fp8_e3m4", True)),
                       ((byte, byte), Matmul("int8", "int8")), ((byte, byte), Matmul("uint8", "int8"))):
        with pytest.raises(SpecError, match="is not allowed"):
            matmul(*args, form)


def test_a_format_that_the_core_lacks_is_rejected():
    with pytest.raises(SpecError, match="stationary: 'int8'"):
        matmul_tiled(PRESETS["trn2"].chip.core, *[np.zeros((2, 2), np.uint8)] * 2, Matmul("int8", "int8", True))


@pytest.mark.parametrize("stationary, moving, message", [
    (np.zeros((3, 2), np.uint16), np.zeros((4, 2), np.uint16), r"shape of moving: \(4, 2\) .* 3 rows"),
    (np.zeros((3, 2), np.uint16), np.zeros(3, np.uint16), "shape of moving: .* two dimensions"),
    (np.zeros((0, 2), np.uint16), np.zeros((0, 2), np.uint16), "shape of stationary: .* neither of them zero"),
    (np.zeros((3, 2), np.uint32), np.zeros((3, 2), np.uint16), "dtype of stationary: 'uint32' .* uint16, which holds bf16"),
    (np.zeros((3, 2), np.uint16), np.zeros((3, 2), np.float32), "dtype of moving: 'float32'"),
])
def test_operands_that_do_not_fit_are_rejected(stationary, moving, message):
    for call in (matmul, lambda *args: matmul_tiled(NANO, *args)):
        with pytest.raises(SpecError, match=message):
            call(stationary, moving, BF16)


def test_wrong_bits_to_transpose_and_accumulate_are_rejected():
    with pytest.raises(SpecError, match="dtype of stationary: 'float32' is not allowed; allowed: uint8, uint16 or uint32"):
        transpose(np.zeros((2, 2), np.float32))
    with pytest.raises(SpecError, match="shape of stationary"):
        transpose(np.zeros(2, np.uint8))
    with pytest.raises(SpecError, match="dtype of old: 'int32'"):
        accumulate(np.zeros(2, np.int32), np.zeros(2, np.uint32), is_integer=True)
