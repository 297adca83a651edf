"""area/gates.py: an element's netlist computes what RTL and golden compute, every bit, and a broken one does not."""

import functools
import re

import pytest

from area.gates import gate_level
from area.library import default_library
from golden.arith import fma, int_pair_step, pair_step
from hdl.arith.add import Add
from hdl.emit import emit
from sim.model import Model
from spec.presets import configure
from spec.tensor import Matmul
from tests.arith_bench import SideBySide, assert_same
from tests.corners import fma_cases, random_bits
from tests.pe_bench import Element, PEBench, slot
from tests.placed import Placed

COUNT = 100_000


KINDS = ("gates", "rtl", "broken")


def side_by_side(settings):
    """One element three times, between plain bit patterns, under module names of its own each time."""
    core = configure("nano", settings).chip.core
    benches = {}
    for kind in KINDS:
        benches[kind] = bench = PEBench(core)
        bench.pe.module_name = kind
        bench.pe = Placed(bench.pe)
    return SideBySide("test_gates", benches)


def broken(netlist):
    """A netlist with one gate of many turned round: not-or for not-and."""
    places = [match.start() for match in re.finditer(r"\bNAND2_X1\b", netlist)]
    place = places[len(places) // 2]
    return netlist[:place] + "NOR2" + netlist[place + len("NAND2"):]


@functools.cache
def elements(settings):
    """An :class:`Element` for each of :data:`KINDS`, all in one model, after reset."""
    top = side_by_side(settings)
    emission = gate_level(emit(top), default_library(), names=["gates", "broken"])
    emission.files["broken.v"] = broken(emission.files["broken.v"])
    blocks = top.blocks(Model.build(emission))
    blocks["rtl"].reset()
    return {kind: Element(block) for kind, block in blocks.items()}


def check(matmul, settings, operands, expected):
    """Netlist and RTL against golden and each other; ``operands``: moving, weight and sum as an element takes them."""
    names = dict(zip(("moving", "weight", "sum"), operands))
    gates, rtl = (elements(settings)[kind].multiply(matmul, *operands) for kind in ("gates", "rtl"))
    assert_same(gates, expected, **names)
    assert_same(gates, rtl, **names)


def test_a_netlist_multiplies_as_rtl_and_golden_do(rng):
    weight, moving, sums = fma_cases(rng, "bf16", "bf16", COUNT)
    check(Matmul("bf16", "bf16"), "formats=bf16", (moving, weight, sums), fma(weight, moving, sums, "bf16", "bf16"))


@pytest.mark.long
@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("name", ["fp32", "tf32", "bf16", "fp16", "fp8_e5m2", "fp8_e4m3", "fp8_e3m4"])
def test_every_format_of_a_netlist_of_all(rng, name, stages):
    weight, moving, sums = fma_cases(rng, name, name, COUNT)
    check(Matmul(name, name), f"adder_stages={stages}", (moving, weight, sums), fma(weight, moving, sums, name, name))


@pytest.mark.long
@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("name", ["fp8_e5m2", "fp8_e4m3", "fp8_e3m4", "int8"])
def test_pairs_of_a_netlist_of_all(rng, name, stages):
    weights, movings = random_bits(rng, name, (2, COUNT)), random_bits(rng, name, (2, COUNT))
    sums = random_bits(rng, "int32" if name == "int8" else "fp32", COUNT)
    formats = () if name == "int8" else (name, name)
    check(Matmul(name, name, True), f"adder_stages={stages}", (slot(*movings), slot(*weights), sums),
          (pair_step if formats else int_pair_step)(weights[0], movings[0], weights[1], movings[1], sums, *formats))


def test_a_broken_netlist_is_found(rng):
    weight, moving, sums = fma_cases(rng, "bf16", "bf16", COUNT)
    result = elements("formats=bf16")["broken"].multiply(Matmul("bf16", "bf16"), moving, weight, sums)
    with pytest.raises(AssertionError, match="results are wrong"):
        assert_same(result, fma(weight, moving, sums, "bf16", "bf16"), weight=weight)


def test_an_unknown_module_is_rejected():
    with pytest.raises(KeyError, match="onc_add has no module onc_tile: it has onc_add"):
        gate_level(emit(Add()), default_library(), names=["onc_tile"])
