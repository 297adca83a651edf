"""area/sweeps/run.py: done points stay done, failures and deaths cost one point, order and place of work do not matter."""

import functools
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from area.sweeps.cluster import Cluster
from area.sweeps.run import run_sweep
from area.sweeps.store import Store
from tests.sweep_fakes import (calls, dies_for_3, dies_once_for_3, fails_for_3, fake_designs, fake_measure, fake_sweep,
                               no_design_for_2, with_cluster)

_ROOT = Path(__file__).parents[1]


@pytest.fixture
def traces(tmp_path):
    folder = tmp_path / "traces"
    folder.mkdir()
    return folder


def run(sweep, store, traces, measure=fake_measure, designs=fake_designs):
    return run_sweep(sweep, store, designs, functools.partial(measure, traces))


def contents(store):
    return {path.name: path.read_bytes() for path in (store.folder / "points").iterdir()}


def settings(*sizes):
    return [f"sbuf_kib={size}" for size in sizes]


def test_points_are_measured_once_and_kept(tmp_path, traces):
    sweep, store = fake_sweep(tmp_path, 5), Store(tmp_path / "store")
    first = run(sweep, store, traces)
    assert first.measured == 5 and calls(traces) == settings(1, 2, 3, 4, 5)
    assert [result.figures["area_mm2"] for result in first.results] == [size / 7 for size in range(1, 6)]
    again = run(sweep, store, traces)
    assert again.measured == 0 and len(calls(traces)) == 5 and again.results == first.results
    for result in first.results:  # a file holds what its name is the hash of
        kept = store.load("points", result.key)
        assert kept["inputs"]["library"] == first.library.checksum and kept["figures"] == result.figures


def test_another_seed_product_period_or_library_is_another_result(tmp_path, traces):
    ...


def test_a_point_that_fails_keeps_its_reason_and_is_tried_again(tmp_path, traces):
    sweep, store = fake_sweep(tmp_path, 4), Store(tmp_path / "store")
    failed = run(sweep, store, traces, fails_for_3)
    assert [result.error for result in failed.results] == [None, None, "RuntimeError: three cannot be measured\nat all", None]
    assert store.load("points", failed.results[2].key)["error"] == failed.results[2].error
    assert failed.results[2].figures == {} and failed.results[3].figures
    mended = run(sweep, store, traces)
    assert mended.measured == 1 and [result.error for result in mended.results] == [None] * 4
    assert calls(traces) == settings(1, 2, 3, 3, 4)


def test_a_point_without_a_design_keeps_its_reason(tmp_path, traces):
    sweep, store = fake_sweep(tmp_path, 3), Store(tmp_path / "store")
    results = run(sweep, store, traces, designs=no_design_for_2).results
    assert [result.error for result in results] == [None, "RuntimeError: two cannot be built", None]
    assert results[1].designs is None and store.load("points", results[1].key)["error"] == results[1].error
    assert run(sweep, store, traces).measured == 1 and calls(traces) == settings(1, 2, 3)


def test_a_worker_that_is_killed_costs_nothing(tmp_path, traces):
    sweep = fake_sweep(tmp_path, 5)
    undisturbed, killed = Store(tmp_path / "undisturbed"), Store(tmp_path / "killed")
    run(sweep, undisturbed, traces)
    assert all(result.error is None for result in run(sweep, killed, traces, dies_once_for_3).results)
    assert (traces / "died").exists() and contents(killed) == contents(undisturbed)


def test_a_point_that_kills_every_worker_is_given_up_alone(tmp_path, traces):
    results = run(fake_sweep(tmp_path, 6), Store(tmp_path / "store"), traces, dies_for_3).results
    assert [bool(result.error) for result in results] == [False, False, True, False, False, False]
    assert "4 workers died of it" in results[2].error and "tcp://" not in results[2].error


_SLOW_RUN = """
import functools, sys
from area.sweeps.run import run_sweep
from area.sweeps.store import Store
from tests.sweep_fakes import fake_designs, fake_sweep, slow_measure
if __name__ == "__main__":
    folder = sys.argv[1]
    run_sweep(fake_sweep(folder, 12), Store(folder + "/store"), fake_designs,
              functools.partial(slow_measure, folder + "/traces"))
"""


def test_a_run_that_is_killed_resumes_where_it_was(tmp_path, traces):
    (tmp_path / "slow_run.py").write_text(_SLOW_RUN)
    store = Store(tmp_path / "store")
    process = subprocess.Popen([sys.executable, tmp_path / "slow_run.py", tmp_path], cwd=_ROOT,
                               env={**os.environ, "PYTHONPATH": str(_ROOT)})
    deadline = time.monotonic() + 30
    while len(list((store.folder / "points").glob("*.json"))) < 4:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(1)  # for the workers to notice
    done = contents(store)
    done = {name: text for name, text in done.items() if name.endswith(".json")}
    before = calls(traces)
    assert 4 <= len(done) < 12
    resumed = run(fake_sweep(tmp_path, 12), store, traces)
    assert resumed.measured == 12 - len(done) == len(calls(traces)) - len(before)
    assert {name: contents(store)[name] for name in done} == done
    undisturbed = Store(tmp_path / "undisturbed")
    run(fake_sweep(tmp_path, 12), undisturbed, traces)
    assert {name: text for name, text in contents(store).items() if name.endswith(".json")} == contents(undisturbed)


@pytest.fixture
def scheduler(tmp_path):
    """Address of a scheduler with one worker, started as a user would."""
    scheduler = subprocess.Popen([sys.executable, "-m", "dask", "scheduler", "--host", "127.0.0.1", "--port", "0",
                                  "--dashboard-address", "127.0.0.1:0"], cwd=_ROOT, stderr=subprocess.PIPE, text=True)
    address = next(found[1] for line in scheduler.stderr if (found := re.search(r"(tcp://127\.0\.0\.1:\d+)", line)))
    worker = subprocess.Popen([sys.executable, "-m", "dask", "worker", address, "--host", "127.0.0.1", "--nthreads", "1",
                               "--no-dashboard", "--local-directory", tmp_path / "scratch"], cwd=_ROOT,
                              stderr=subprocess.DEVNULL)
    yield address
    for process in (worker, scheduler):
        process.terminate()
        process.wait()
    scheduler.stderr.close()


def test_a_scheduler_that_runs_already_gives_the_same_files(tmp_path, traces, scheduler):
    sweep = fake_sweep(tmp_path, 6)
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    first = run(sweep, here, traces)
    second = run(with_cluster(sweep, Cluster("scheduler", scheduler)), there, traces)
    assert second.results == first.results and contents(here) == contents(there)
    assert calls(traces) == sorted(2 * settings(1, 2, 3, 4, 5, 6))


def test_files_that_differ_are_noticed(tmp_path, traces):
    sweep = fake_sweep(tmp_path, 2)
    one, other = Store(tmp_path / "one"), Store(tmp_path / "other")
    run(sweep, one, traces)
    result = run(sweep, other, traces).results[0]
    kept = other.load("points", result.key)
    other.save("points", result.key, {**kept, "figures": {**kept["figures"], "cycles": 11}})
    assert contents(one) != contents(other)
    json.loads(contents(one)[f"{result.key}.json"])
