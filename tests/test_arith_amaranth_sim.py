"""The blocks in Amaranth's own simulator: the same results as in the C++ loop, and as golden."""

import numpy as np
import pytest

from golden.arith import add, fma, int_pair_step, multiply, pair_step
from golden.formats import convert
from hdl.arith.add import Add
from hdl.arith.convert import Convert
from hdl.arith.fused_multiply_add import FusedMultiplyAdd
from hdl.arith.int_pair_multiply_add import IntPairMultiplyAdd
from hdl.arith.multiply import Multiply
from hdl.arith.pair_multiply_add import PairMultiplyAdd
from spec.formats import FORMAT_CODES, FORMATS
from spec.tensor import Matmul
from tests.arith_bench import AmaranthModel, SideBySide, assert_same, small_blocks
from tests.corners import fma_cases, random_bits
from tests.pe_bench import Element, PEBench, element
from tests.pe_cases import CORES

COUNT = 300


def simulated(component):
    """A :class:`~tests.arith_bench.Block` in Amaranth's simulator."""
    top = SideBySide("amaranth", {"block": component})
    return top.blocks(AmaranthModel(top))["block"]


@pytest.mark.parametrize(("name", "component", "golden"), [("add", Add, add), ("multiply", Multiply, multiply)])
def test_add_and_multiply(rng, name, component, golden):
    a, b, _ = fma_cases(rng, "fp32", "fp32", COUNT)
    result = simulated(component())(a=a, b=b)
    assert_same(result, golden(a, b), a=a, b=b)
    assert_same(result, small_blocks()[name](a=a, b=b), a=a, b=b)


@pytest.mark.parametrize("pair", [("bf16", "bf16"), ("fp8_e3m4", "fp16")], ids="-".join)
def test_fused_multiply_add(rng, pair):
    a, b, c = fma_cases(rng, *pair, COUNT)
    assert_same(simulated(FusedMultiplyAdd(*pair))(a=a, b=b, c=c), fma(a, b, c, *pair), a=a, b=b, c=c)


def test_fused_multiply_add_of_fp32(rng):
    operands = fma_cases(rng, "fp32", "tf32", COUNT)
    block = simulated(FusedMultiplyAdd("fp32", "tf32"))
    start = np.arange(4 * COUNT) % 4 == 0
    result = block(start=start, **dict(zip("abc", (np.repeat(operand, 4) for operand in operands))))
    assert_same(result[start], fma(*operands, "fp32", "tf32"), a=operands[0], b=operands[1], c=operands[2])


def test_pairs(rng):
    pair = ("fp8_e4m3", "fp8_e5m2")
    a0, b0, c = fma_cases(rng, *pair, COUNT)
    a1, b1, _ = fma_cases(rng, *pair, COUNT)
    result = simulated(PairMultiplyAdd(*pair))(a0=a0, b0=b0, a1=a1, b1=b1, second=1, c=c)
    assert_same(result, pair_step(a0, b0, a1, b1, c, *pair), a0=a0, b0=b0, a1=a1, b1=b1, c=c)


def test_integer_pairs(rng):
    operands = dict(zip(("a0", "b0", "a1", "b1"), random_bits(rng, "int8", (4, COUNT))), c=random_bits(rng, "int32", COUNT))
    result = simulated(IntPairMultiplyAdd())(second=1, **operands)
    assert_same(result, int_pair_step(*operands.values()), **operands)
    assert_same(result, small_blocks()["int_pair"](second=1, **operands), **operands)


def test_casts(rng):
    """One of each pair of formats."""
    source, target = (list(names) for names in zip(*((s, t) for s in FORMATS for t in FORMATS)))
    bits = rng.integers(0, 1 << 32, len(source), np.uint32)
    expected = [convert(np.array([row]).astype(f"uint{FORMATS[s].width}"), s, t)[0] for row, s, t in zip(bits, source, target)]
    codes = [np.array([FORMAT_CODES[name] for name in names]) for names in (source, target)]
    result = simulated(Convert(FORMATS, FORMATS))(bits=bits, source=codes[0], target=codes[1], saturate=0)
    assert_same(result, np.array(expected, np.uint32), bits=bits, source=codes[0], target=codes[1])


@pytest.mark.parametrize("matmul", [Matmul("bf16", "bf16"), Matmul("fp32", "fp32")], ids=["bf16", "fp32"])
def test_processing_element(rng, matmul):
    weight, moving, sums = fma_cases(rng, matmul.stationary, matmul.moving, COUNT)
    result = Element(simulated(PEBench(CORES["nano"]))).multiply(matmul, moving, weight, sums)
    assert_same(result, fma(weight, moving, sums, matmul.stationary, matmul.moving), weight=weight, moving=moving, sum=sums)
    assert_same(result, element("nano").multiply(matmul, moving, weight, sums), weight=weight, moving=moving, sum=sums)
