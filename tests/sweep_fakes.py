"""Stand-ins for what a sweep's workers do, which leave a trace of every call; and a sweep to run them on."""

import hashlib
import os
import signal
import time
import uuid
from pathlib import Path

from area.library import Library
from area.sweeps.file import Sweep
from area.sweeps.point import Designs

LIBERTY = "library (fake) {\n}\n"


def fake_sweep(folder, points, cluster):
    """A sweep over the state buffer's size, which no hardware knows yet."""
    liberty = Path(folder) / "fake.lib"
    liberty.write_text(LIBERTY)
    return Sweep("fake", "nano", "pe", {}, tuple({"sbuf_kib": str(kib)} for kib in range(1, points + 1)), ((1, 1, 1),),
                 None, 1, 1000, Library.from_path(liberty).path, cluster)


def calls(folder):
    """Settings of the tasks that were measured, in no order; a task that was measured twice is there twice."""
    return sorted(path.read_text() for path in Path(folder).glob("*.call"))


def _trace(folder, task):
    (Path(folder) / f"{uuid.uuid4()}.call").write_text(task.settings)


def _size(task):
    return int(task.settings.partition("=")[2])


def fake_designs(task):
    """Designs that differ where the settings do."""
    return Designs(hashlib.sha256(task.settings.encode()).hexdigest(), None)


def one_design(task):
    return Designs("0" * 64, None)


def no_design_for_2(task):
    if _size(task) == 2:
        raise RuntimeError("two cannot be built")
    return fake_designs(task)


def fake_measure(folder, task):
    _trace(folder, task)
    size = _size(task)
    return {"elements": 1, "area_mm2": size / 7, "clock_ghz": 1.0, "delay_ps": 1000.0, "cycles": 10 * size,
            "gflops": size / 3, "utilisation": 1 / size}


def slow_measure(folder, task):
    time.sleep(0.4)
    return fake_measure(folder, task)


def fails_for_3(folder, task):
    if _size(task) == 3:
        _trace(folder, task)
        raise RuntimeError("three cannot be measured\nat all")
    return fake_measure(folder, task)


def dies_once_for_3(folder, task):
    """As if the machine ran out of memory: the worker goes without a word."""
    mark = Path(folder) / "died"
    if _size(task) == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return fake_measure(folder, task)


def dies_for_3(folder, task):
    if _size(task) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return fake_measure(folder, task)
