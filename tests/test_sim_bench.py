"""cocotb benches: passing ones pass, and everything else is a failure that says why."""

import importlib
import sys

import pytest

from hdl.emit import emit
from sim import bench, registry, waves
from sim.bench import run_bench
from sim.cocotb_streams import Scoreboard, pack, unpack
from sim.errors import BenchFailed
from spec.errors import SpecError
from tests.sim_designs import Adder, Rogue

BENCHES = "tests.sim_benches"


@pytest.fixture(autouse=True)
def output(tmp_path, monkeypatch):
    """Logs and traces of these benches go to a folder of the test."""
    monkeypatch.setattr(bench, "_OUTPUT", tmp_path)
    return tmp_path


def test_a_passing_bench_counts_its_tests(capsys):
    run = run_bench(emit(Adder()), BENCHES, tests=["adds", "reads_the_value_before_the_edge"])
    assert run.tests == 2 and run.trace is None
    assert f"seed {run.seed}" in capsys.readouterr().err


def test_failing_tests_are_reported_each_for_its_reason(output):
    with pytest.raises(BenchFailed, match="seed 1: 5 of 6 tests failed: doubles/fault=1, "):
        run_bench(emit(Rogue()), BENCHES, tests="doubles", seed=1)
    log = (output / BENCHES / "bench.log").read_text()
    for message in ("Output 0 is 0x0, not 0x10000",
                    "Stream o dropped valid before ready",
                    "Stream o changed its payload before ready, from 0x10",
                    "Stream o gave 0 of 256 payloads in 3000 cycles"):
        assert log.count(f"AssertionError: {message}") == 1


def test_no_test_at_all_is_a_failure():
    with pytest.raises(BenchFailed, match="no test ran|without results"):
        run_bench(emit(Adder()), BENCHES, tests="not_there")


def test_a_module_that_does_not_import_is_a_failure():
    with pytest.raises(BenchFailed, match="no test ran|without results"):
        run_bench(emit(Adder()), "tests.not_there")


def test_scoreboard_notices_what_is_missing():
    scoreboard = Scoreboard(lambda payload: [payload, payload + 1])
    with pytest.raises(AssertionError, match="compared nothing"):
        scoreboard.finish()
    scoreboard.received(5)
    scoreboard.sent(5)
    with pytest.raises(AssertionError, match="1 outputs are missing after 1 good ones"):
        scoreboard.finish()
    scoreboard.received(6)
    scoreboard.finish()
    scoreboard.received(7)
    with pytest.raises(AssertionError, match="1 outputs too many after 2 good ones"):
        scoreboard.finish()


def test_wide_values_pack_and_unpack():
    assert pack(unpack(0x0000_0002_0000_0001, "<u4", 2)) == 0x0000_0002_0000_0001
    assert list(unpack(0x0000_0002_0000_0001, "<u4", 2)) == [1, 2]


@pytest.fixture
def named(tmp_path, monkeypatch):
    """A bench called ``doubler_bench``, in place of the real ones."""
    folder = tmp_path / "sim_test_benches"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "doubler_bench.py").write_text("from tests.sim_designs import Doubler as design\n"
                                             "from tests.sim_benches import doubles_patiently\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "benches", importlib.import_module(folder.name))
    yield
    for name in [name for name in sys.modules if name.startswith(folder.name)]:
        del sys.modules[name]


def test_waves_writes_a_trace(named, output, capsys):
    assert waves.main({"TEST": "doubler_bench.doubles_patiently", "SEED": "3"}) == 0
    trace = output / "sim_test_benches.doubler_bench" / "dump.fst"
    assert f"1 tests passed with seed 3; trace {trace}" in capsys.readouterr().out
    pywellen = pytest.importorskip("pywellen")
    assert "sim_doubler.o__valid" in {var.full_name for var in pywellen.Waveform(str(trace)).all_vars()}


@pytest.mark.parametrize(("test", "seed", "message"), [
    ("", "", "TEST: '' is not allowed; allowed: <bench> or <bench>.<test>, where <bench> is doubler_bench"),
    ("nothing", "", "TEST: 'nothing' is not allowed; allowed: <bench> or <bench>.<test>, where <bench> is doubler_bench"),
    ("doubler_bench", "x", "SEED: 'x' is not allowed; allowed: a whole number from 0"),
])
def test_wrong_waves_arguments_list_the_benches(named, test, seed, message):
    with pytest.raises(SpecError) as refused:
        waves.main({"TEST": test, "SEED": seed})
    assert str(refused.value) == message


def test_an_unknown_bench_is_rejected(named):
    with pytest.raises(ValueError, match="Bench must be one of doubler_bench, not 'x'"):
        registry.run_named("x")
