"""area/estimate.py: what blocks cost, by parts and as a whole, and that it is the same twice."""

from dataclasses import replace

import pytest

from area.estimate import estimate
from area.library import default_library
from area.sram import SRAMModel
from area.synthesis import synthesise
from hdl.emit import emit
from hdl.tops import make_top
from spec.presets import configure
from tests.area_bounds import BOUNDS, TOLERANCE, costed


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: f"{bound.config}-{bound.top}-{bound.settings}")
def test_area_and_clock_are_as_they_were(bound):
    """After a change that is meant, put what `python -m tests.area_bounds` prints into tests/area_bounds.py."""
    cost = costed(bound.config, bound.top, bound.settings)
    assert cost.area_um2 == pytest.approx(bound.area_um2, rel=TOLERANCE)
    assert cost.abc_delay_ps == pytest.approx(bound.abc_ps, rel=TOLERANCE)
    assert cost.delay_ps == pytest.approx(bound.abc_ps if cost.timer == "abc" else bound.sta_ps, rel=TOLERANCE)


def test_a_change_of_five_percent_is_noticed():
    for bound in BOUNDS:
        for change in (0.95, 1.05):
            assert bound.area_um2 * change != pytest.approx(bound.area_um2, rel=TOLERANCE)


def test_formats_left_out_cost_no_gates():
    bf16, two, every = (costed("nano", "pe", settings) for settings in
                        ("formats=bf16 transpose=no", "formats=bf16,fp16 transpose=no", ""))
    for fewer, more in ((bf16, two), (two, every), (costed("nano", "pe", "formats=fp8 transpose=no"), every)):
        assert fewer.area_um2 < more.area_um2 and fewer.cells < more.cells and fewer.registers < more.registers
    assert bf16.area_um2 < 0.35 * every.area_um2


@pytest.mark.parametrize("settings", ["formats=bf16 transpose=no", pytest.param("", marks=pytest.mark.long)])
def test_the_sum_of_parts_is_the_whole(settings):
    """4 x 4 elements, mapped once and multiplied, against all of them flattened and mapped together."""
    tile = make_top("tile", configure("nano", settings).chip.core)
    emission = emit(tile)
    text = "".join(reversed(emission.files.values()))
    flat = synthesise(replace(emission, files={"onc_tile.v": text}), default_library())["onc_tile"]
    cost = estimate(make_top("tile", configure("nano", settings).chip.core), default_library())
    assert not flat.children and cost.registers == flat.registers
    assert cost.area_um2 == pytest.approx(flat.area_um2, rel=0.03)


@pytest.mark.parametrize("top, settings, paths", [
    ("tile", "formats=bf16 transpose=no", {"onc_tile": 1, "onc_tile/onc_pe": 16}),
    ("psum", "", {"onc_psum": 1, "onc_psum/onc_psum_column": 4, "onc_psum/onc_psum_column/onc_sram_512x32": 32}),
])
def test_blocks_add_up(top, settings, paths):
    cost = costed("nano", top, settings)
    assert {"/".join(block.path): block.count for block in cost.blocks} == paths
    assert cost.count(cost.blocks[-1].path[-1]) == cost.blocks[-1].count
    assert sum(block.own_um2 for block in cost.blocks) == pytest.approx(cost.area_um2)
    for block in cost.blocks:
        children = [child for child in cost.blocks if child.path[:-1] == block.path]
        assert block.area_um2 == pytest.approx(block.own_um2 + sum(child.area_um2 for child in children))
    assert cost.area_um2 == cost.logic_um2 + cost.sram_um2
    assert cost.clock_ghz == pytest.approx(1000 / cost.delay_ps)


def test_memories_are_macros():
    cost = costed("nano", "psum_column", "")
    assert cost.sram_bits == 8 * 512 * 32
    assert cost.sram_um2 == pytest.approx(8 * SRAMModel().area_um2("onc_sram_512x32"))
    assert cost.registers < 1000


def test_the_same_design_gives_the_same_figures(monkeypatch, tmp_path):
    """The second time without what the first left in the cache."""
    first = costed("nano", "add", "")
    library = default_library()
    monkeypatch.setenv("OPENNEURONCORE_CACHE", str(tmp_path))
    assert estimate(make_top("add", configure("nano").chip.core), library) == first


def test_progress_comes_to_its_end():
    seen = []
    estimate(make_top("tile", configure("nano", "formats=bf16 transpose=no").chip.core), default_library(),
             progress=lambda done, count: seen.append((done, count)))
    assert seen[0][0] >= 1 and {count for _, count in seen} == {4}
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
