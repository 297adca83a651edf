"""sim/speed.py: its parts on small engines, and that the command reports them all."""

import json
import os

import pytest

from hdl.arith.add import Add
from hdl.emit import emit
from sim import cache, speed
from sim.speed import array_core, fresh_build, golden_speed, run_speed, verilog_speed
from spec.errors import SpecError
from spec.presets import PRESETS
from tests.engines import preset_driver


def test_the_array_is_the_size_asked_for():
    core = array_core(32)
    assert (core.rows, core.cols, core.formats, core.transpose) == (32, 32, ("bf16",), False)


def test_verilog_is_timed_and_measured(monkeypatch, tmp_path):
    monkeypatch.setattr(speed, "TensorEngine", lambda core: Add())  # a small design is as good
    emit(Add()).write(tmp_path)
    seconds, size = verilog_speed("core")
    assert 0 < seconds < 30 and size == sum(file.stat().st_size for file in tmp_path.iterdir())


def test_golden_is_compared_with_numpy(monkeypatch):
    seconds = iter([6.0, 2.0])
    monkeypatch.setattr(speed, "_seconds", lambda work, runs: work() is None or next(seconds))
    assert golden_speed(PRESETS["nano"].chip.core, size=16) == 3


def test_the_first_time_does_not_count(monkeypatch):
    clock = iter([0, 100, 100, 103, 103, 104, 104, 106])
    monkeypatch.setattr(speed.time, "perf_counter", lambda: next(clock))
    assert speed._seconds(lambda: None, runs=3) == 2


def test_back_to_back_products_keep_the_array_busy():
    row = run_speed(preset_driver("nano"), products=3)
    assert row["mismatches"] == 0 and row["busy_fraction"] > 0.99
    assert row["pe_cycles_per_second"] == pytest.approx(16 * row["cycles_per_second"]) and row["cycles_per_second"] > 100


def test_a_fresh_build_uses_no_cache_but_the_run_time_library(monkeypatch):
    own = cache.root()

    def driver(core):
        assert cache.root() != own and os.environ["CCACHE_DISABLE"] == "1"
        (library,) = cache.root().glob("runtime-*")
        assert (library / "libruntime.a").is_file()
        return core

    monkeypatch.setattr(speed, "TensorDriver", driver)
    assert fresh_build("core")[0] == "core"
    assert cache.root() == own


@pytest.mark.parametrize(("full", "sizes"), [("no", (8, 32)), ("yes", (8, 32, 128))])
@pytest.mark.parametrize(("mismatches", "status"), [(0, 0), (1, 1)])
def test_the_command_reports_everything(monkeypatch, tmp_path, full, sizes, mismatches, status):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(speed, "verilog_speed", lambda core: (40.0, 3_000_000))
    monkeypatch.setattr(speed, "golden_speed", lambda core, size: 3.0)
    monkeypatch.setattr(speed, "_measure_array", lambda size: {
        "size": size, "build_seconds": 30.0, "cycles_per_second": 1e4, "pe_cycles_per_second": 1e6,
        "busy_fraction": size / 1000, "mismatches": mismatches, "design": "0"})
    assert speed.main({"FULL": full}) == status
    report = json.loads((tmp_path / "build" / "reports" / "bench.json").read_text())
    assert report["verilog_seconds_trn2"] == 40 and report["verilog_bytes_trn2"] == 3_000_000
    assert report["golden_over_matmul"] == 3 and report["busy_fraction"] == 0.008
    for name in ("build_seconds", "cycles_per_second", "pe_cycles_per_second", "busy_fraction", "mismatches", "design"):
        assert [key for key in report if key.startswith(f"{name}_")] == [f"{name}_{size}" for size in sizes]


def test_an_unclear_full_is_rejected():
    with pytest.raises(SpecError, match="^FULL: 'maybe' is not allowed; allowed: yes or no$"):
        speed.main({"FULL": "maybe"})
