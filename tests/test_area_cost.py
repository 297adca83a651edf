"""area/cost.py, area/power.py, area/treemap.py: the commands, what they write, and how they refuse."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from area import cost, power, treemap
from area.estimate import Block
from spec.config import CoreConfig

_ROOT = Path(__file__).parents[1]
VALUES = {"CONFIG": "nano", "TOP": "tile", "SET": "formats=bf16 transpose=no", "LIBERTY": "", "SRAM": ""}


def test_the_report_holds_what_it_promises(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    assert cost.main(VALUES) == 0
    facts = json.loads((tmp_path / "build" / "reports" / "area.json").read_text())
    assert facts["config"] == "nano" and facts["top"] == "tile" and facts["elements"] == facts["macs_per_cycle"] == 16
    assert facts["um2_per_mac"] == pytest.approx(facts["area_um2"] / 16)
    assert facts["peak_tflops"] == pytest.approx(2 * 16 * facts["clock_ghz"] / 1000)
    assert facts["mm2_per_tflops"] == pytest.approx(facts["area_um2"] / 1e6 / facts["peak_tflops"])
    assert facts["timer"] == "abc" or facts["timer"].startswith("OpenSTA ")
    assert [(row["block"], row["count"]) for row in facts["blocks"]] == [("tile", 1), (". pe", 16)]
    assert facts["blocks"][0]["percent"] == 100
    assert (tmp_path / "build" / "reports" / "area.png").read_bytes().startswith(b"\x89PNG")
    assert ". pe" in capsys.readouterr().out


def test_a_block_without_elements_has_no_figures_per_mac(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    cost.main(VALUES | {"TOP": "add", "SET": ""})
    facts = json.loads((tmp_path / "build" / "reports" / "area.json").read_text())
    assert "um2_per_mac" not in facts and facts["set"] is None and facts["area_um2"] > 0


@pytest.mark.parametrize("formats, pairs, macs", [
    (("bf16",), False, 1), (("fp32",), False, 0.25), (("fp8",), False, 1), (("fp8",), True, 2), (("int8",), False, 2),
    (("fp32", "bf16"), False, 1)])
def test_an_element_counts_at_its_best(formats, pairs, macs):
    assert cost.macs_per_element(CoreConfig(8, 8, formats=formats, fp8_pairs=pairs)) == macs


class Accumulator(wiring.Component):
    """Small, so that its gates compile fast; with ports above and below 64 bits."""

    module_name = "accumulator"

    def __init__(self):
        super().__init__({"i": In(8), "mask": In(67), "o": Out(8)})

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.o.eq(self.o + (self.i & self.mask[59:]))
        return m


def test_power_is_reported(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(power, "make_top", lambda name, core: Accumulator())
    assert power.main({"CONFIG": "nano", "TOP": "add", "SET": "", "LIBERTY": ""}) == 0
    facts = json.loads((tmp_path / "build" / "reports" / "power.json").read_text())
    parts = [facts[name] for name in ("switching_fj", "internal_fj", "clock_fj")]
    assert min(parts) > 0 and facts["cycle_fj"] == pytest.approx(sum(parts))
    assert facts["power_mw"] == pytest.approx(facts["cycle_fj"] * facts["clock_ghz"] * 1e-3 + facts["leakage_mw"])
    assert 0 < facts["changes_per_net"] < 1


def test_the_map_is_drawn_to_scale(monkeypatch, tmp_path):
    drawn = []
    monkeypatch.setattr(treemap, "_rectangle", lambda axes, corner, block, area, whole, colours: drawn.append(
        (block.path[-1], area, corner[2] * corner[3])))
    blocks = (Block(("top",), 1, 9, 100.0, 20.0), Block(("top", "a"), 2, 4, 50.0, 50.0),
              Block(("top", "b"), 1, 4, 30.0, 30.0))
    treemap.draw_treemap(blocks, "title", tmp_path / "map.png")
    assert {name: area for name, area, _ in drawn} == {"top": 20, "a": 50, "b": 30}
    whole = sum(size for _, _, size in drawn)
    assert [size / whole for _, _, size in drawn] == pytest.approx([area / 100 for _, area, _ in drawn])


@pytest.mark.parametrize("command, message", [
    ("area.cost TOP=cpu", "TOP: 'cpu' is not allowed; allowed: pe, tile, array, "),
    ("area.cost LIBERTY=none.lib", "LIBERTY: '"),
    ("area.cost SRAM=none.toml", "SRAM: 'none.toml' is not allowed; allowed: a TOML file that can be read"),
    ("area.cost SET=formats=fp9", "formats: 'fp9' is not allowed"),
    ("area.power CONFIG=pico", "CONFIG: 'pico' is not allowed"),
    ("area.power SRAM=x", "argument: 'SRAM=x' is not allowed; allowed: CONFIG=… TOP=… SET=… LIBERTY=…"),
])
def test_a_mistake_is_refused_in_one_line(command, message):
    result = subprocess.run([sys.executable, "-m", *command.split()], text=True, capture_output=True, cwd=_ROOT)
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.startswith(message) and result.stderr.count("\n") == 1


def test_power_of_too_large_a_block_is_refused(monkeypatch):
    monkeypatch.setattr(power, "MOST_CELLS", 100)
    with pytest.raises(power.SpecError, match="TOP: 'add' is not allowed; allowed: a block of at most 100 cells"):
        power.main({"CONFIG": "nano", "TOP": "add", "SET": "", "LIBERTY": ""})
