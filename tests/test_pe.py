"""hdl/tensor/pe.py against golden, every bit, in every kind of core (rules N0, N1, N4, N5, N13)."""

import numpy as np
import pytest

from golden.arith import fma, int_pair_step, pair_step
from spec.formats import FLOAT_FORMATS, FORMATS
from spec.tensor import Matmul
from tests.arith_bench import assert_same, chunks
from tests.corners import fma_cases, random_bits, special_bits
from tests.eight_bit import first_and_second, running_sums
from tests.pe_bench import element, slot
from tests.pe_cases import CORES, cases

WIDE = [Matmul(*pair) for pair in (("bf16", "bf16"), ("fp16", "fp16"), ("tf32", "tf32"), ("fp32", "fp32"), ("bf16", "fp8_e4m3"),
                                   ("fp16", "bf16"), ("fp32", "tf32"), ("tf32", "fp32"))]


def is_eight_bit(matmul):
    return all(name in FLOAT_FORMATS and FORMATS[name].width == 8 for name in (matmul.stationary, matmul.moving))


def with_noise_above(rng, bits, name):
    """An element, and in the rest of the row's slot whatever there is."""
    width = FORMATS[name].width
    return bits | (rng.integers(0, 1 << (32 - width), bits.shape) << width).astype(np.uint32)


def check(rng, core, matmul, weight, moving, sums):
    operands = with_noise_above(rng, moving, matmul.moving), with_noise_above(rng, weight, matmul.stationary)
    assert_same(element(core).multiply(matmul, *operands, sums),
                fma(weight, moving, sums, matmul.stationary, matmul.moving), weight=weight, moving=moving, sum=sums)


def check_pairs(core, matmul, weights, movings, sums):
    if matmul.is_integer:
        expected = int_pair_step(weights[0], movings[0], weights[1], movings[1], sums)
    else:
        expected = pair_step(weights[0], movings[0], weights[1], movings[1], sums, matmul.stationary, matmul.moving)
    assert_same(element(core).multiply(matmul, slot(*movings), slot(*weights), sums), expected,
                w0=weights[0], w1=weights[1], m0=movings[0], m1=movings[1], sum=sums)


@pytest.mark.parametrize("count", [200_000, pytest.param(20_000_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("matmul", WIDE, ids=lambda matmul: f"{matmul.stationary}-{matmul.moving}")
def test_wide_formats(rng, matmul, count):
    for size in chunks(count):
        check(rng, "nano", matmul, *fma_cases(rng, matmul.stationary, matmul.moving, size))


@cases(["nano"], False, is_eight_bit)
def test_every_pair_of_8_bit_operands(rng, core, matmul):
    weight, moving = first_and_second()
    for sums in running_sums(rng, fma(weight, moving, np.uint32(0), matmul.stationary, matmul.moving)):
        check(rng, core, matmul, weight, moving, sums)


@cases(["nano"], True, is_eight_bit)
def test_every_pair_of_8_bit_operands_in_pairs(rng, core, matmul):
    weight, moving = first_and_second()
    other_weight = random_bits(rng, matmul.stationary, weight.size, specials=0.5)
    other_moving = random_bits(rng, matmul.moving, moving.size, specials=0.5)
    products = pair_step(weight, moving, other_weight, other_moving, np.uint32(1 << 31), matmul.stationary, matmul.moving)
    for sums in running_sums(rng, products):
        check_pairs(core, matmul, (weight, other_weight), (moving, other_moving), sums)
    check_pairs(core, matmul, (other_weight, weight), (other_moving, moving), random_bits(rng, "fp32", weight.size))


@pytest.mark.parametrize("core", ["nano", "inf1", "int8"])
def test_every_pair_of_integers(rng, core):
    matmul = Matmul("int8", "int8", True)
    weight, moving = first_and_second()
    other = rng.choice(special_bits("int8"), (2, weight.size))
    sums = random_bits(rng, "int32", weight.size)
    check_pairs(core, matmul, (weight, other[0]), (moving, other[1]), sums)
    check_pairs(core, matmul, (other[0], weight), (other[1], moving), sums)


@cases(CORES, False)
def test_every_product_of_every_core(rng, core, matmul):
    check(rng, core, matmul, *fma_cases(rng, matmul.stationary, matmul.moving, 2500))


@cases(CORES, True)
def test_every_paired_product_of_every_core(rng, core, matmul):
    weights, movings = (random_bits(rng, name, (2, 5000)) for name in (matmul.stationary, matmul.moving))
    check_pairs(core, matmul, weights, movings, random_bits(rng, "int32" if matmul.is_integer else "fp32", 5000))


@pytest.mark.parametrize("count", [100_000, pytest.param(20_000_000, marks=pytest.mark.long)])
@cases(["nano"], True)
def test_related_pairs_and_running_sums(rng, core, matmul, count):
    for size in chunks(count):
        if matmul.is_integer:
            operands = random_bits(rng, "int8", (4, size))
            sums = random_bits(rng, "int32", size)
        else:
            first, second = (fma_cases(rng, matmul.stationary, matmul.moving, size) for _ in range(2))
            cancels = rng.random(size) < 0.2
            operands = (first[0], np.where(cancels, first[0] ^ np.uint8(0x80), second[0]),
                        first[1], np.where(cancels, first[1], second[1]))
            sums = np.where(rng.random(size) < 0.5, first[2], second[2])
        check_pairs(core, matmul, operands[:2], operands[2:], sums)


def test_the_comparison_fails_for_a_wrong_golden(rng):
    weight, moving, sums = fma_cases(rng, "bf16", "bf16", 5000)
    result = element("nano").multiply(Matmul("bf16", "bf16"), moving, weight, sums)
    with pytest.raises(AssertionError, match="of 5000 results are wrong: weight=0x"):
        assert_same(result, fma(np.roll(weight, 1), moving, sums, "bf16", "bf16"), weight=weight)
