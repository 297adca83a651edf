"""area/sweep.py and area/sweeps/point.py: a true sweep from its file to its reports; figures are the tools' own."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from area import sweep as command
from area.estimate import estimate
from area.library import default_library
from area.sweeps import point
from area.sweeps.file import default_form
from area.sweeps.point import Designs, Task, find_designs, measure
from area.sweeps.provenance import PROJECT, tools
from area.sweeps.run import Result, Run
from hdl.emit import emit
from hdl.tops import make_top
from sim.checked import CheckedRun, random_operands, run_checked
from sim.errors import SimulationError
from sim.tensor import EngineRun, TensorDriver
from spec.presets import configure
from spec.tensor import Matmul

_ROOT = Path(__file__).parents[1]
SETTINGS = "formats=bf16,fp8,int8 adder_stages=3"  # as another test has it too, so its engine is compiled once for both
FILE = """
preset = "nano"
top = "pe"
products = [[4, 4, 4], [3, 2, 5]]

[set]
formats = "bf16,fp8,int8"
adder_stages = 3

[grid]
sbuf_kib = [4, 64]  # no hardware knows it yet
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elements.toml").write_text(FILE)
    return tmp_path / "elements.toml"


def outputs(folder):
    names = ("reports/sweep.json", *(f"sweeps/elements/sweep.{ending}" for ending in ("csv", "parquet", "html")))
    return {name: (folder / "build" / name).read_bytes() for name in names}


def expected():
    """Cost and cycles, without the sweep's code."""
    core = configure("nano", SETTINGS).chip.core
    rng = np.random.default_rng(1)
    form = Matmul("bf16", "bf16")
    driver = TensorDriver(core)
    runs = [run_checked(driver, [random_operands(rng, form, k, m, n)], form, "").run
            for n, m, k in ((4, 4, 4), (3, 2, 5))]
    return estimate(make_top("pe", core), default_library()), sum(run.cycles for run in runs)


def explained_keys():
    section = re.search(r"^## sweep\n(.*?)^## ", (_ROOT / "docs" / "reports.md").read_text(), re.M | re.S)[1]
    return set(re.findall(r"`(\w+)`", section))


def test_a_sweep_from_its_file_to_its_reports(file, tmp_path, capsys):
    assert command.main({"SWEEP": str(file)}) == 0
    first, said = outputs(tmp_path), capsys.readouterr().out
    assert "Points measured now: 1; taken from build/sweeps/elements: 1" in said
    report = json.loads(first["reports/sweep.json"])
    assert (report["config"], report["top"], report["points_done"], report["points_failed"]) == ("nano", "pe", 2, 0)
    assert report["library_sha256"] == default_library().checksum and report["failures"] == []
    assert report.keys() <= explained_keys()
    table = pd.read_parquet(tmp_path / "build" / "sweeps" / "elements" / "sweep.parquet")
    assert [row["key"] for row in report["points"]] == [key[:8] for key in table["key"]]
    cost, cycles = expected()
    for _, row in table.iterrows():
        assert row["area_mm2"] == cost.area_um2 / 1e6 and row["clock_ghz"] == cost.clock_ghz and row["elements"] == 1
        assert row["design"] == cost.content_hash and row["cycles"] == cycles
        use = (4 * 4 * 4 + 3 * 2 * 5) / (4 * 4 * cycles)
        assert row["utilisation"] == pytest.approx(use) and row["gflops"] == pytest.approx(2 * use * cost.clock_ghz)
        assert row["gflops_per_mm2"] == pytest.approx(row["gflops"] / row["area_mm2"])
        assert row["macs_per_cycle"] == pytest.approx(94 / cycles) and 0 < row["busy_fraction"] <= 1
    assert table["key"][0] == table["key"][1]

    assert command.main({"SWEEP": str(file)}) == 0  # again: nothing is measured, nothing differs
    assert "Points measured now: 0; taken from build/sweeps/elements: 2" in capsys.readouterr().out
    assert outputs(tmp_path) == first


def test_a_point_that_fails_makes_the_status_1(file, tmp_path, monkeypatch):
    results = [Result(str(number) * 32, None, Matmul("bf16", "bf16"), {}, "no") for number in range(2)]
    monkeypatch.setattr(command, "run_sweep", lambda sweep, store: Run(results, 2, default_library()))
    assert command.main({"SWEEP": str(file)}) == 1
    report = json.loads((tmp_path / "build" / "reports" / "sweep.json").read_text())
    assert report["points_failed"] == 2
    assert report["failures"] == [{"point": 1, "error": "no"}, {"point": 2, "error": "no"}]


# One point, in this process

def task(settings="", **changes):
    core = configure("nano", settings).chip.core
    library = default_library()
    return replace(Task("nano", settings, "issue", ((1, 1, 1),), default_form(core), 1, 1000, None, library.checksum,
                        PROJECT, tools()), **changes)


def test_designs_are_what_is_costed_and_what_is_simulated():
    settings = "formats=bf16 transpose=no"
    issue = emit(make_top("issue", configure("nano", settings).chip.core)).content_hash
    engine = find_designs(task(settings, top="tensor"))
    assert engine.costed == engine.simulated != issue
    assert find_designs(task(settings)) == Designs(issue, engine.costed)
    assert find_designs(task(settings, products=())) == Designs(issue, None)


def test_a_block_without_elements_is_costed_alone():
    figures = measure(task())
    assert figures["elements"] == 0 and figures["area_mm2"] > 0 and figures["clock_ghz"] > 0 and "cycles" not in figures


@pytest.mark.parametrize("change, message", [
    ({"project": "another"}, "has another project's code"),
    ({"tools": {**tools(), "timer": "sundial"}}, "has another timer than the sweep: .*, not sundial"),
    ({"library_sha256": "another"}, "is not the one of this sweep"),
])
def test_a_worker_of_another_kind_measures_nothing(change, message):
    with pytest.raises(RuntimeError, match=message):
        measure(task(**change))


def without_engine(monkeypatch):
    monkeypatch.setattr(point, "_emission", lambda core, top: None)
    monkeypatch.setattr(point.Model, "build", lambda emission, hierarchical: None)
    monkeypatch.setattr(point, "TensorDriver", lambda core, model: None)


@pytest.mark.parametrize("form, rate", [(Matmul("bf16", "bf16"), 1), (Matmul("fp8_e4m3", "fp8_e4m3", True), 2),
                                        (Matmul("int8", "int8", True), 2), (Matmul("fp32", "fp32"), 0.25)])
def test_utilisation_is_of_what_the_form_can_reach(monkeypatch, form, rate):
    counters = {"multiplying": 30, "span": 40}
    run = CheckedRun(EngineRun([], 100, counters, int(16 * rate * 100 * 0.75)), 0.0, 32, 0)
    without_engine(monkeypatch)
    monkeypatch.setattr(point, "run_checked", lambda *arguments: run)
    figures = point._performance(task(form=form), 16, {"clock_ghz": 0.5, "area_mm2": 2.0})
    assert form.peak_rate == rate
    assert figures["utilisation"] == pytest.approx(0.75) and figures["busy_fraction"] == 0.75
    assert figures["peak_gflops"] == pytest.approx(2 * 16 * rate * 0.5)
    assert figures["gflops"] == pytest.approx(0.75 * 16 * rate) == pytest.approx(2 * figures["gflops_per_mm2"])


def test_results_that_are_not_goldens_fail_the_point(monkeypatch):
    wrong = CheckedRun(EngineRun([], 10, {"multiplying": 1, "span": 1}, 1), 0.0, 32, 3)
    without_engine(monkeypatch)
    monkeypatch.setattr(point, "run_checked", lambda *arguments: wrong)
    with pytest.raises(SimulationError, match="^Product 1 x 1 x 1: 3 of 32 bits differ from the golden model's$"):
        point._performance(task(), 16, {"clock_ghz": 1.0, "area_mm2": 1.0})
