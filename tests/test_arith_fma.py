# amaranth: UnusedElaboratable=no
"""hdl/arith/fused_multiply_add.py against golden, every bit (rules N0, N1, N4)."""

import numpy as np
import pytest

from golden.arith import fma
from hdl.arith.fused_multiply_add import FusedMultiplyAdd
from spec.formats import FLOAT_FORMATS
from tests.arith_bench import SideBySide, assert_same, chunks
from tests.corners import fma_cases, special_bits
from tests.eight_bit import first_and_second, running_sums

WIDE = (("bf16", "bf16"), ("fp16", "fp16"), ("tf32", "tf32"), ("bf16", "fp8_e4m3"), ("fp16", "bf16"))
FP32 = (("fp32", "fp32"), ("fp32", "tf32"), ("tf32", "fp32"))
EIGHT_BIT = (("fp8_e5m2", "fp8_e5m2"), ("fp8_e4m3", "fp8_e4m3"), ("fp8_e3m4", "fp8_e3m4"), ("fp8_e4m3fn", "fp8_e4m3fn"),
             ("fp8_e3m4", "fp8_e5m2"))
COUNTS = [200_000, pytest.param(20_000_000, marks=pytest.mark.long)]


def blocks(module_name, pairs):
    return SideBySide(module_name, {"_".join(pair): FusedMultiplyAdd(*pair) for pair in pairs}).blocks()


@pytest.fixture(scope="module")
def wide():
    return blocks("test_fma_wide", WIDE)


@pytest.fixture(scope="module")
def fp32():
    return blocks("test_fma_fp32", FP32)


@pytest.fixture(scope="module")
def eight_bit():
    return blocks("test_fma_eight_bit", EIGHT_BIT)


def run(block, a, b, c, gaps=3):
    """Results for rows of operands; in the fp32 form ``gaps`` cycles pass between two rows."""
    if block.component.interval == 1:
        return block(a=a, b=b, c=c)
    first = np.cumsum(np.broadcast_to(gaps, len(a)) + 1)
    cycles = first[-1] + 2
    rng = np.random.default_rng(len(a))
    noise = {name: rng.integers(0, 1 << 32, cycles, np.uint32) for name in ("a", "b", "c")}
    start = np.zeros(cycles, bool)
    start[first] = True
    for name, operand in (("a", a), ("b", b), ("c", c)):
        noise[name][first] = operand
    return block(start=start, **noise)[first]


def check(block, pair, a, b, c, **options):
    assert_same(run(block, a, b, c, **options), fma(a, b, c, *pair), a=a, b=b, c=c)


def landmarks(pair):
    grid = np.meshgrid(*(special_bits(name)[::2 if FLOAT_FORMATS[name].padding else 1] for name in pair),
                       special_bits("fp32"))
    return tuple(operand.ravel() for operand in grid)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("pair", WIDE, ids="-".join)
def test_wide_formats(wide, rng, pair, count):
    for size in chunks(count):
        check(wide["_".join(pair)], pair, *fma_cases(rng, *pair, size))


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("pair", FP32, ids="-".join)
def test_fp32_at_a_quarter_of_the_rate(fp32, rng, pair, count):
    """Operands follow each other every four cycles; between them the inputs are noise."""
    for size in chunks(count):
        check(fp32["_".join(pair)], pair, *fma_cases(rng, *pair, size))


def test_fp32_operands_at_any_distance(fp32, rng):
    gaps = rng.integers(3, 12, 20_000)
    check(fp32["fp32_fp32"], ("fp32", "fp32"), *fma_cases(rng, "fp32", "fp32", gaps.size), gaps=gaps)


@pytest.mark.parametrize("pair", EIGHT_BIT, ids="-".join)
def test_every_pair_of_8_bit_operands(eight_bit, rng, pair):
    a, b = first_and_second()
    for c in running_sums(rng, fma(a, b, np.uint32(0), *pair)):
        check(eight_bit["_".join(pair)], pair, a, b, c)


@pytest.mark.parametrize("pair", EIGHT_BIT, ids="-".join)
def test_8_bit_operands_with_related_addends(eight_bit, rng, pair):
    check(eight_bit["_".join(pair)], pair, *fma_cases(rng, *pair, 50_000))


@pytest.mark.parametrize("pair", (*WIDE, *FP32, *EIGHT_BIT), ids="-".join)
def test_landmarks_of_all_operands(request, pair):
    fixture = next(name for name, pairs in (("wide", WIDE), ("fp32", FP32), ("eight_bit", EIGHT_BIT)) if pair in pairs)
    check(request.getfixturevalue(fixture)["_".join(pair)], pair, *landmarks(pair))


def test_latency(wide, rng):
    block = wide["bf16_bf16"]
    a, b, c = fma_cases(rng, "bf16", "bf16", 1000)
    assert (block.component.latency, block.component.interval) == (3, 1)
    matches = [np.array_equal(block(latency=latency, a=a, b=b, c=c), fma(a, b, c, "bf16", "bf16")) for latency in (2, 3, 4)]
    assert matches == [False, True, False]


def test_latency_of_fp32(fp32):
    block = fp32["fp32_fp32"]
    assert (block.component.latency, block.component.interval) == (7, 4)
    one, two = np.uint32(0x3F80_0000), np.uint32(0x4000_0000)
    three = block(latency=0, start=np.arange(20) == 0, a=one, b=two, c=one) == 0x4040_0000
    assert np.flatnonzero(three)[0] == 7


def test_reset_in_mid_run(fp32, rng):
    """A product that reset interrupts leaves nothing behind."""
    block = fp32["fp32_fp32"]
    for cycles in range(1, 7):
        a, b, c = fma_cases(rng, "fp32", "fp32", 50)
        block(start=np.arange(cycles) == 0, a=a[:cycles], b=b[:cycles], c=c[:cycles])
        block.reset()
        check(block, ("fp32", "fp32"), a, b, c)


def test_the_comparison_fails_for_a_golden_that_rounds_twice(fp32, rng):
    a, b, c = fma_cases(rng, "fp32", "fp32", 20_000)
    with np.errstate(all="ignore"):
        values = [operand.view(np.float32).astype(np.float64) for operand in (a, b, c)]
        twice = (values[0] * values[1] + values[2]).astype(np.float32)
    twice = np.where(np.isnan(twice), np.uint32(0x7FC0_0000), twice.view(np.uint32))
    with pytest.raises(AssertionError, match="of 20000 results are wrong: a=0x"):
        assert_same(run(fp32["fp32_fp32"], a, b, c), twice, a=a, b=b, c=c)


def test_module_names_tell_the_formats():
    assert FusedMultiplyAdd("bf16", "fp16").module_name == "onc_fma_bf16_fp16"


@pytest.mark.parametrize(("a_format", "b_format", "error", "message"), [
    ("bf16", "fp64", ValueError, "Second format must be among fp32, tf32, .* or fp8_e4m3fn, not 'fp64'"),
    ("int8", "bf16", ValueError, "First format must be among fp32, .* not 'int8'"),
    ("fp32", "bf16", ValueError, "Formats with fp32 must be fp32 or tf32, not 'fp32' and 'bf16'"),
    ("fp8_e4m3fn", "fp8_e4m3", ValueError, "Formats must not be fp8_e4m3 and fp8_e4m3fn together"),
    (8, "bf16", TypeError, "First format must hold format names, not 8"),
])
def test_wrong_formats_are_rejected(a_format, b_format, error, message):
    with pytest.raises(error, match=message):
        FusedMultiplyAdd(a_format, b_format)
