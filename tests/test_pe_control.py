"""hdl/tensor/pe.py: what is not arithmetic: timing, weights, rows passed by, transposes, reset (rules N2, N14)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from golden.arith import fma, int_pair_step, pair_step
from golden.formats import canonical_bits
from spec.formats import FORMAT_CODES, FORMATS
from spec.tensor import Matmul
from tests.arith_bench import assert_same
from tests.corners import fma_cases, random_bits, special_bits
from tests.pe_bench import SINGLE_PASS, element, slot
from tests.pe_cases import CORES, cases

LATENCIES = {"nano": 4, "mini": 4, "small": 4, "inf1": 3, "trn1": 4, "bf16": 3, "fp8": 4, "int8": 3, "deep": 5, "deep_bf16": 4}
TRANSPOSING = [core for core, config in CORES.items() if config.transpose]


def finite_sums(rng, count):
    """Running sums, of which NaN has only its canonical pattern (rule N0)."""
    bits = np.concatenate([special_bits("fp32"), random_bits(rng, "fp32", count)])
    return canonical_bits(bits.view(np.float32))


@pytest.mark.parametrize("core", CORES)
def test_latencies(core):
    """One moving operand, or one running sum, and the cycle in which something comes of it."""
    unit = element(core)
    stated = unit.pe.facts["latency_cycles"]
    assert stated == {"moving_i to moving_o": 1, "sum_i to sum_o": CORES[core].adder_stages,
                      "moving_i to sum_o": LATENCIES[core]}
    name = next(name for name in ("bf16", "fp8_e5m2", "int8") if name in CORES[core].formats)
    one = {"bf16": 0x3F80, "fp8_e5m2": 0x3C, "int8": 1}[name]
    integer = int(name == "int8")
    held = dict(integer=integer, raw_weight=integer, raw_sum=integer, step=SINGLE_PASS,
                moving_format=FORMAT_CODES[name], weight_format=FORMAT_CODES[name])
    output, first = "raw_o" if integer else "o", np.arange(16) == 0
    unit.block.cycles(["o"], weight=one, load=1, swap=[1] * 8, moving=0, **held)

    def answers(**pulse):
        result = unit.block.cycles([output], **{**held, "load": 0, "swap": 0, "moving": 0, "sum": 0, **pulse})
        return list(np.flatnonzero(result[output]))

    assert answers(moving=one * first) == [stated["moving_i to sum_o"]]
    assert answers(sum=5 * first) == [stated["sum_i to sum_o"]]


@cases(CORES, False)
def test_a_row_without_an_element_passes_every_sum(rng, core, matmul):
    """+0 moves, the weight is -0."""
    sums = finite_sums(rng, 300)
    minus_zero = 1 << (FORMATS[matmul.stationary].width - 1)
    assert_same(element(core).multiply(matmul, 0, minus_zero, sums), sums, sum=sums)


@cases(CORES, True)
def test_a_row_without_a_pair_passes_every_sum(rng, core, matmul):
    minus_zeros, sums = 0x8080, finite_sums(rng, 300)
    if matmul.is_integer:
        minus_zeros, sums = 0, random_bits(rng, "uint32", 300)
    assert_same(element(core).multiply(matmul, 0, minus_zeros, sums), sums, sum=sums)


@pytest.mark.parametrize("core", TRANSPOSING)
def test_transpose_moves_every_pattern(rng, core):
    """The selected row gives its weight's bits, zero-extended, every other row passes the bits that it gets (N14)."""
    unit = element(core)
    width = unit.pe.shapes.raw_bits
    patterns = [special_bits(name).astype(np.uint32) for name in CORES[core].formats]
    weight = np.concatenate([*patterns, rng.integers(0, 1 << width, 20_000, np.uint32)])
    if width == 16:
        weight = np.concatenate([weight, np.arange(1 << 16, dtype=np.uint32)])
    sums = np.concatenate([special_bits("fp32"), rng.integers(0, 1 << 32, weight.size, np.uint32)])[:weight.size]
    moving = rng.integers(0, 1 << 32, weight.size, np.uint32)
    for selected in (0, 1, rng.integers(0, 2, weight.size)):
        got = unit.rows({"moving": moving, "moving_format": rng.integers(0, 14, weight.size), "transpose": 1,
                         "selected": selected}, {"weight": weight, "raw_weight": 1}, {"sum": sums, "raw_sum": 1})["raw_o"]
        assert_same(got, np.where(selected, weight, sums), weight=weight, sum=sums, moving=moving)


def test_kinds_follow_each_other_without_a_gap(rng):
    """Single, paired, integer and transposing rows, one a cycle in random order."""
    count = 20_000
    kind, selected = rng.integers(0, 4, count), rng.integers(0, 2, count)
    w0, w1, m0, m1 = random_bits(rng, "fp8_e4m3", (4, count))
    sums = random_bits(rng, "fp32", count)
    raw, code = kind >= 2, FORMAT_CODES["fp8_e4m3"]
    read = element("nano").rows(
        {"moving": slot(m0, m1), "moving_format": code, "paired": kind == 1, "integer": kind == 2, "transpose": kind == 3,
         "selected": selected},
        {"weight": slot(w0, w1), "weight_format": code, "raw_weight": raw}, {"sum": sums, "raw_sum": raw})
    expected = np.choose(kind, [
        fma(w0, m0, sums, "fp8_e4m3", "fp8_e4m3"), pair_step(w0, m0, w1, m1, sums, "fp8_e4m3", "fp8_e4m3"),
        int_pair_step(w0, m0, w1, m1, sums), np.where(selected, slot(w0, w1), sums)])
    assert_same(np.where(raw, read["raw_o"], read["o"]), expected, kind=kind, w0=w0, w1=w1, m0=m0, m1=m1, sum=sums)


CYCLES = st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 0xFFFF), st.integers(0, 0xFFFF)),
                  min_size=1, max_size=40)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(CYCLES)
def test_weights_are_double_buffered(cycles):
    """A load never disturbs the weight in use; a swap takes the last load of the cycles before, for its own operand too."""
    load, swap, weights, movings = (np.array(column) for column in zip(*cycles))
    load[0] = swap[0] = False
    unit, code = element("bf16"), FORMAT_CODES["bf16"]
    held = dict(weight_format=code, moving_format=code)
    unit.block.cycles(["o"], load=[1, 0], swap=[0, 1], weight=[0x3F80, 0], **held)  # one is in use
    waiting = in_use = 0x3F80
    used = []
    for loads, swaps, weight in zip(load, swap, weights):
        in_use = waiting if swaps else in_use
        used.append(in_use)
        waiting = weight if loads else waiting
    got = unit.block(latency=3, load=load, swap=swap, weight=weights, moving=movings, sum=0, **held)
    used, movings = np.array(used, np.uint16), movings.astype(np.uint16)
    assert_same(got, fma(used, movings, np.uint32(0), "bf16", "bf16"), weight=used, moving=movings)


@pytest.mark.parametrize(("core", "matmul"), [("nano", Matmul("fp32", "fp32")), ("bf16", Matmul("bf16", "bf16"))])
def test_reset_in_mid_run(rng, core, matmul):
    """Whatever was under way, the first rows after reset are right."""
    unit = element(core)
    for cycles in range(1, 10):
        weight, moving, sums = fma_cases(rng, matmul.stationary, matmul.moving, 20)
        unit.block.cycles(["o"], weight=weight[:cycles], moving=moving[:cycles], sum=sums[:cycles], load=1, swap=1,
                          step=np.arange(cycles) % 8)
        unit.block.model.reset(1)
        assert_same(unit.multiply(matmul, moving, weight, sums), fma(weight, moving, sums, matmul.stationary, matmul.moving))


def test_reset_takes_back_a_swap():
    """A swap on its way to the right would put a half loaded weight into use there."""
    block = element("nano").block
    read = block.model.vectors({"rst": np.array([0, 0, 1, 1, 0, 0]), "nano__swap": np.array([1, 1, 1, 1, 0, 0])},
                               ["nano__swap_o"])
    assert list(read["nano__swap_o"]) == [0, 1, 1, 0, 0, 0]
