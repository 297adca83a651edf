"""area/sweeps/run.py: done points stay done, failures and deaths cost one point, the place of work does not matter."""

import functools
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from area.sweeps.cluster import Cluster
from area.sweeps.run import run_sweep
from area.sweeps.store import Store
from tests.sweep_fakes import (calls, dies_for_3, dies_once_for_3, fails_for_3, fake_designs, fake_measure, fake_sweep,
                               no_design_for_2, one_design)

_ROOT = Path(__file__).parents[1]
_DASK = [sys.executable, "-m", "dask"]
LOCAL = Cluster(workers=2)


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    """A scheduler with one worker, started as a user would; most tests use it, since a local cluster takes seconds."""
    running = subprocess.Popen([*_DASK, "scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address",
                                "127.0.0.1:0"], cwd=_ROOT, stderr=subprocess.PIPE, text=True)
    address = next(found[1] for line in running.stderr if (found := re.search(r"(tcp://127\.0\.0\.1:\d+)", line)))
    worker = subprocess.Popen([*_DASK, "worker", address, "--host", "127.0.0.1", "--nthreads", "1", "--no-dashboard",
                               "--local-directory", tmp_path_factory.mktemp("worker")], cwd=_ROOT,
                              stderr=subprocess.DEVNULL)
    yield Cluster("scheduler", address)
    for process in (worker, running):
        process.terminate()
        process.wait()
    running.stderr.close()


@pytest.fixture
def traces(tmp_path):
    folder = tmp_path / "traces"
    folder.mkdir()
    return folder


@pytest.fixture
def sweep_of(tmp_path, scheduler):
    return lambda points: fake_sweep(tmp_path, points, scheduler)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def run(sweep, store, traces, measure=fake_measure, designs=fake_designs):
    return run_sweep(sweep, store, designs, functools.partial(measure, traces))


def contents(store):
    return {path.name: path.read_bytes() for path in (store.folder / "points").glob("*.json")}


def settings(*sizes):
    return [f"sbuf_kib={size}" for size in sizes]


def test_points_are_measured_once_and_kept(sweep_of, store, traces):
    sweep = sweep_of(5)
    first = run(sweep, store, traces)
    assert first.measured == 5 and calls(traces) == settings(1, 2, 3, 4, 5)
    assert [result.figures["area_mm2"] for result in first.results] == [size / 7 for size in range(1, 6)]
    again = run(sweep, store, traces)
    assert again.measured == 0 and len(calls(traces)) == 5 and again.results == first.results
    for result in first.results:  # a file holds what its name is the hash of
        kept = store.load("points", result.key)
        assert kept["inputs"]["library"] == first.library.checksum and kept["figures"] == result.figures


def test_whatever_decides_the_figures_makes_another_result(tmp_path, sweep_of, store, traces):
    sweep = sweep_of(1)
    (tmp_path / "other.lib").write_text("library (other) {\n}\n")
    keys = [run(each, store, traces).results[0].key for each in (
        sweep, replace(sweep, seed=2), replace(sweep, period_ps=500), replace(sweep, products=((1, 1, 2),)),
        replace(sweep, format="int8"), replace(sweep, liberty=tmp_path / "other.lib"))]
    assert len(set(keys)) == 6 == len(calls(traces))
    # Where a file stands and what it is called decides nothing; without products the seed does not either.
    (tmp_path / "copy.lib").write_text((tmp_path / "fake.lib").read_text())
    assert run(replace(sweep, liberty=tmp_path / "copy.lib"), store, traces).results[0].key == keys[0]
    nothing = replace(sweep, products=())
    assert run(nothing, store, traces).results[0].key == run(replace(nothing, seed=2), store, traces).results[0].key


def test_equal_designs_are_measured_once(sweep_of, store, traces):
    done = run(sweep_of(3), store, traces, designs=one_design)
    assert done.measured == 1 == len(calls(traces)) and len({result.key for result in done.results}) == 1


def test_an_empty_or_broken_result_is_measured_again(sweep_of, store, traces):
    sweep = sweep_of(2)
    first = run(sweep, store, traces)
    (store.folder / "points" / f"{first.results[0].key}.json").write_text('{"inputs": {')
    again = run(sweep, store, traces)
    assert again.measured == 1 and again.results == first.results and calls(traces) == settings(1, 1, 2)


def test_a_point_that_fails_keeps_its_reason_and_is_tried_again(sweep_of, store, traces):
    sweep = sweep_of(4)
    failed = run(sweep, store, traces, fails_for_3)
    reason = "RuntimeError: three cannot be measured\nat all"
    assert [result.error for result in failed.results] == [None, None, reason, None]
    assert store.load("points", failed.results[2].key)["error"] == failed.results[2].error
    assert failed.results[2].figures == {} and failed.results[3].figures
    mended = run(sweep, store, traces)
    assert mended.measured == 1 and [result.error for result in mended.results] == [None] * 4
    assert calls(traces) == settings(1, 2, 3, 3, 4)


def test_a_point_without_a_design_keeps_its_reason(sweep_of, store, traces):
    sweep = sweep_of(3)
    results = run(sweep, store, traces, designs=no_design_for_2).results
    assert [result.error for result in results] == [None, "RuntimeError: two cannot be built", None]
    assert results[1].designs is None and store.load("points", results[1].key)["error"] == results[1].error
    assert run(sweep, store, traces).measured == 1 and calls(traces) == settings(1, 2, 3)


def test_a_worker_that_is_killed_costs_nothing(tmp_path, sweep_of, store, traces):
    undisturbed = Store(tmp_path / "undisturbed")
    run(sweep_of(5), undisturbed, traces)
    killed = run(fake_sweep(tmp_path, 5, LOCAL), store, traces, dies_once_for_3)
    assert all(result.error is None for result in killed.results)
    assert (traces / "died").exists() and contents(store) == contents(undisturbed)


@pytest.mark.long
def test_a_point_that_kills_every_worker_is_given_up_alone(tmp_path, store, traces):
    results = run(fake_sweep(tmp_path, 6, LOCAL), store, traces, dies_for_3).results
    assert [bool(result.error) for result in results] == [False, False, True, False, False, False]
    assert "4 workers died of it" in results[2].error and "tcp://" not in results[2].error


_SLOW_RUN = """
import functools, sys
from area.sweeps.cluster import Cluster
from area.sweeps.run import run_sweep
from area.sweeps.store import Store
from tests.sweep_fakes import fake_designs, fake_sweep, slow_measure
if __name__ == "__main__":
    folder = sys.argv[1]
    run_sweep(fake_sweep(folder, 12, Cluster(workers=2)), Store(folder + "/store"), fake_designs,
              functools.partial(slow_measure, folder + "/traces"))
"""


def test_a_run_that_is_killed_resumes_where_it_was(tmp_path, sweep_of, store, traces):
    (tmp_path / "slow_run.py").write_text(_SLOW_RUN)
    process = subprocess.Popen([sys.executable, tmp_path / "slow_run.py", tmp_path],
                               env={**os.environ, "PYTHONPATH": str(_ROOT)})
    workers = []
    while len(contents(store)) < 4:
        assert process.poll() is None
        workers = psutil.Process(process.pid).children(recursive=True)
        time.sleep(0.02)
    process.kill()
    process.wait()
    psutil.wait_procs(workers)
    done, before = contents(store), len(calls(traces))
    assert 4 <= len(done) < 12
    resumed = run(sweep_of(12), store, traces)
    assert resumed.measured == 12 - len(done) == len(calls(traces)) - before
    undisturbed = Store(tmp_path / "undisturbed")
    run(sweep_of(12), undisturbed, traces)
    assert contents(store) == contents(undisturbed) and done.items() <= contents(store).items()


def test_a_scheduler_that_runs_already_gives_the_same_files_as_this_machine(tmp_path, sweep_of, traces):
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    first = run(fake_sweep(tmp_path, 6, LOCAL), here, traces)
    second = run(sweep_of(6), there, traces)
    assert second.results == first.results and contents(here) == contents(there)
    assert calls(traces) == sorted(2 * settings(1, 2, 3, 4, 5, 6))


def test_files_that_differ_are_noticed(tmp_path, sweep_of, traces):
    one, other = Store(tmp_path / "one"), Store(tmp_path / "other")
    run(sweep_of(2), one, traces)
    result = run(sweep_of(2), other, traces).results[0]
    kept = other.load("points", result.key)
    other.save("points", result.key, {**kept, "figures": {**kept["figures"], "cycles": 11}})
    assert contents(one) != contents(other)