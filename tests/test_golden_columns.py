"""golden/columns.py: the fast paths against the slow one, and that a product out of order is found out (rules N1, N2, N4, N5)."""

import time

import numpy as np
import pytest

from golden import columns
from golden.formats import canonical_bits, decode, encode, storage_dtype
from golden.tensor import matmul, matmul_tiled
from spec.presets import PRESETS
from spec.tensor import Matmul
from tests import rational
from tests.corners import bits_near, random_bits
from tests.matmul_cases import matmul_operands

BF16, FP32_BOTH = Matmul("bf16", "bf16"), Matmul("fp32", "fp32")


def form_name(form):
    return f"{form.stationary}-{form.moving}"


def as_bits(values, name):
    return encode(np.array(values, np.float32), name)


FAST_DATA = {
    "ordinary": lambda rng, name, shape: bits_near(rng, name, rng.integers(-6, 7, shape)),
    "corners": lambda rng, name, shape: random_bits(rng, name, shape, specials=0),
    "specials": lambda rng, name, shape: random_bits(rng, name, shape, specials=0.002),
    "tiny": lambda rng, name, shape: bits_near(rng, name, rng.integers(-77, -66, shape)),
    "subnormal": lambda rng, name, shape: bits_near(rng, name, rng.integers(-66, -60, shape)),
    "huge": lambda rng, name, shape: bits_near(rng, name, rng.integers(60, 66, shape)),
    "zeros": lambda rng, name, shape: random_bits(rng, name, shape, specials=0) * (rng.random(shape) < 0.05),
}


def use_product(monkeypatch, number):
    """Let the fast paths have only this candidate, and that only where it keeps the order; or none."""
    product = columns.CANDIDATES[number] if number is not None else None
    monkeypatch.setattr(columns, "_ordered_product",
                        lambda rows, wide: product if product and columns.keeps_order(product, rows, wide) else None)


PRODUCTS = [None, *range(len(columns.CANDIDATES))]


@pytest.mark.parametrize("data", FAST_DATA)
@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("form", [BF16, Matmul("fp16", "fp8_e3m4"), Matmul("tf32", "bf16"), FP32_BOTH, Matmul("tf32", "fp32")],
                         ids=form_name)
def test_fast_paths_equal_the_slow_one(rng, monkeypatch, form, product, data):
    use_product(monkeypatch, product)
    stationary = FAST_DATA[data](rng, form.stationary, (19, 70)).astype(storage_dtype(form.stationary))
    moving = FAST_DATA[data](rng, form.moving, (19, 530)).astype(storage_dtype(form.moving))
    with np.errstate(all="ignore"):
        slow = columns.sums_by_steps(decode(stationary, form.stationary), decode(moving, form.moving), form.passes > 1)
    assert np.array_equal(matmul(stationary, moving, form), canonical_bits(slow))


EDGES = {
    # (1.5 * 2^64) * (1.5 * 2^63) overflows as a product, but not with the running sum.
    "product beyond the range": (BF16, [1.5 * 2.0 ** 64] * 2, [-1.25 * 2.0 ** 63, 1.5 * 2.0 ** 63], 0x7E400000),
    # n * 2^-149 and n * 2^-150 for odd n: the second product is a tie by itself, and another one with the running sum.
    "product between two subnormals": (Matmul("tf32", "tf32"), [1025 * 2.0 ** -74] * 2, [1025 * 2.0 ** -75, 1025 * 2.0 ** -76],
                                       (1025 ** 2 * 3 + 1) // 2),
    # n * 2^-149 and (4n + 1) * 2^-151, in significands that leave no bit unused: what is left rounds to -0.
    "sum that rounds to -0": (Matmul("tf32", "tf32"), [534 * 2.0 ** -75, 1025 * 2.0 ** -76],
                              [584 * 2.0 ** -74, -1217 * 2.0 ** -75], 0x80000000),
    "subnormal operand": (FP32_BOTH, [2.0 ** -149] * 2, [2.0 ** 15, -(2.0 ** 15 + 2.0 ** -8)], 0x80000000),
}


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("edge", EDGES)
def test_fast_paths_at_the_edges_of_the_range(monkeypatch, product, edge):
    use_product(monkeypatch, product)
    form, weights, values, expected = EDGES[edge]
    stationary, moving = (np.repeat(as_bits(x, form.stationary)[:, None], 64, axis=1) for x in (weights, values))
    assert np.all(matmul(stationary, moving, form) == expected)
    assert rational.matmul(stationary[:, :1], moving[:, :1], form) == expected


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("k", [18, 19])
def test_fast_pairs_equal_exact_steps(rng, monkeypatch, product, k):
    use_product(monkeypatch, product)
    form = Matmul("fp8_e5m2", "fp8_e4m3", paired=True)
    stationary, moving = matmul_operands(rng, form, k, 70, 530, specials=0.01)
    result, some = matmul(stationary, moving, form), (slice(60, 68), slice(500, 520))
    assert np.array_equal(result[some], rational.matmul(stationary[:, some[0]], moving[:, some[1]], form))


def in_reverse(stationary, moving):
    return columns.sums_by_steps(stationary[::-1], moving[::-1], wide=True)


def in_two_halves(stationary, moving):
    return sum(columns.sums_by_steps(*half, wide=True) for half in zip(np.split(stationary, 2), np.split(moving, 2)))


def in_float64(stationary, moving):
    return (stationary.T.astype(np.float64) @ moving).astype(np.float32)


def flushing_subnormals(stationary, moving):
    sums = columns.sums_by_steps(stationary, moving, wide=True)
    return np.where(np.abs(sums) < 2.0 ** -126, np.float32(0), sums)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("product", [in_reverse, in_two_halves, in_float64, flushing_subnormals])
def test_another_order_is_found_out(product, wide):
    assert not columns.keeps_order(columns.Product(product, 48, 64), 8, wide)


def test_separate_rounding_of_wide_products_is_found_out():
    def by_adding(stationary, moving):
        sums = np.zeros((stationary.shape[1], moving.shape[1]), np.float32)
        for weights, values in zip(stationary, moving):
            sums += weights[:, None] * values
        return sums

    product = columns.Product(by_adding, 48, 64)
    assert columns.keeps_order(product, 8, wide=False)
    assert not columns.keeps_order(product, 8, wide=True)


def test_results_of_guard_columns_do_not_count():
    def wrong_at_the_ends(stationary, moving):
        sums = columns.sums_by_steps(stationary, moving, wide=True)
        sums[:, :8] = sums[:, -8:] = 0
        return sums

    assert columns.keeps_order(columns.Product(wrong_at_the_ends, 48, 64, guard=8), 8, wide=True)
    assert not columns.keeps_order(columns.Product(wrong_at_the_ends, 48, 64, guard=7), 8, wide=True)


def test_a_product_out_of_order_is_not_used(monkeypatch):
    monkeypatch.setattr(columns, "CANDIDATES", (columns.Product(in_reverse, 48, 64), columns.Product(in_float64, 48, 64)))
    columns._ordered_product.cache_clear()
    assert columns._ordered_product(8, True) is None
    columns._ordered_product.cache_clear()


def test_a_large_product_takes_at_most_20_times_numpys(rng):
    """bf16, 1024 x 1024 x 1024 on trn2, against float32 ``@``; typically 3 to 4 times on one thread."""
    if columns._ordered_product(128, False) is None:
        pytest.skip("no matrix product of this numpy keeps the array's order")
    values = [rng.standard_normal((1024, 1024)).astype(np.float32) for _ in range(2)]
    bits = [encode(x, "bf16") for x in values]

    def seconds(function):
        start = time.perf_counter()
        function()
        return time.perf_counter() - start

    # In turns, and the best of each, so that whatever else the machine does falls on both.
    rounds = [(seconds(lambda: matmul_tiled(PRESETS["trn2"].chip.core, *bits, BF16)), seconds(lambda: values[0].T @ values[1]))
              for _ in range(5)]
    golden, numpys = map(min, zip(*rounds))
    assert golden <= 20 * numpys
