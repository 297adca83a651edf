"""``python -m sim.speed [FULL=yes]``: how fast Verilog is written, models are built and run, and golden products are."""

import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

from golden.formats import decode
from golden.tensor import matmul_tiled
from hdl.emit import emit
from hdl.tensor.engine import TensorEngine
from sim.checked import random_operands, run_checked
from sim.command import run_command
from sim.report import publish
from sim.tensor import TensorDriver
from sim.toolchain import jobs
from sim.verilate import runtime
from spec.errors import SpecError
from spec.presets import configure
from spec.tensor import Matmul

__all__ = ["array_core", "fresh_build", "golden_speed", "main", "run_speed", "verilog_speed"]

SEED = 1
BF16 = Matmul("bf16", "bf16")
COLUMNS = 512  # of ``moving`` in each product: one bank of the partial-sum buffer
PRODUCTS = {8: 200, 32: 20, 128: 4}
"""How many products run on an array of each size: enough to fill some seconds."""


def array_core(size):
    """The core that is measured: ``size`` x ``size`` elements in bf16."""
    return configure("mini", f"rows={size} cols={size} formats=bf16 transpose=no").chip.core


def verilog_speed(core):
    """Seconds to write the tensor engine of ``core`` as Verilog, and the bytes written."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        emit(TensorEngine(core)).write(folder)
        seconds = time.perf_counter() - began
        return seconds, sum(file.stat().st_size for file in Path(folder).iterdir())


def golden_speed(core, size, runs=3):
    """Time of a golden ``size``^3 product in bf16 over that of numpy's ``@`` in float32, one thread, medians of ``runs``."""
    stationary, moving = random_operands(np.random.default_rng(SEED), BF16, size, size, size)
    weights, values = decode(stationary, "bf16").T.copy(), decode(moving, "bf16")
    with threadpool_limits(1):
        golden = _seconds(lambda: matmul_tiled(core, stationary, moving, BF16), runs)
        return golden / _seconds(lambda: weights @ values, runs)


def _seconds(work, runs):
    """Median time of ``work`` after a first time that does not count."""
    times = []
    for _ in range(runs + 1):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return median(times[1:])


def fresh_build(core):
    """A driver whose model is made now, whatever the caches hold, and the seconds from configuration to model.

    Verilator's run-time library, which is compiled once for all designs, is not included.
    """
    library = runtime().parent
    with tempfile.TemporaryDirectory() as folder, \
            patch.dict(os.environ, OPENNEURONCORE_CACHE=folder, CCACHE_DISABLE="1"):
        Path(folder, library.name).symlink_to(library)
        began = time.perf_counter()
        driver = TensorDriver(core)
        return driver, time.perf_counter() - began


def run_speed(driver, products):
    """Run random products of the array's size, one behind the other.

    Returns
    -------
    dict
        ``cycles_per_second`` and ``pe_cycles_per_second``, on one thread; ``busy_fraction``, the share of
        the cycles from first to last wave in which the array was given one, counted in hardware; ``mismatches``.
    """
    core, rng = driver.core, np.random.default_rng(SEED)
    operands = [random_operands(rng, BF16, core.rows, core.cols, COLUMNS) for _ in range(products)]
    checked = run_checked(driver, operands, BF16, f"{core.rows} x {core.cols}")
    speed = checked.run.cycles / checked.seconds
    return {"cycles_per_second": speed, "pe_cycles_per_second": speed * core.rows * core.cols,
            "busy_fraction": checked.run.busy_fraction, "mismatches": checked.mismatches}


def _measure_array(size):
    """What is reported of an array of ``size`` x ``size`` elements."""
    driver, build_seconds = fresh_build(array_core(size))
    return {"size": size, "build_seconds": build_seconds, **run_speed(driver, PRODUCTS[size]),
            "design": driver.model.emission.content_hash}


def _announce(what):
    print(f"{what} …", file=sys.stderr, flush=True)


def main(values):
    """Run the command; returns 1 if a bit differs from the golden model, else 0."""
    if values["FULL"] not in ("yes", "no"):
        raise SpecError("FULL", values["FULL"], "yes or no")
    trn2 = configure("trn2").chip.core
    _announce("Writing trn2's tensor engine as Verilog")
    verilog_seconds, verilog_bytes = verilog_speed(trn2)
    _announce("Multiplying 1024 x 1024 matrices with the golden model")
    golden = golden_speed(trn2, 1024)
    rows = []
    for size in sorted(PRODUCTS) if values["FULL"] == "yes" else (8, 32):
        _announce(f"Building and running {size} x {size} processing elements")
        rows.append(_measure_array(size))
    publish("bench", {
        "config": "mini", "set": "rows=<size> cols=<size> formats=bf16 transpose=no", "seed": SEED,
        "verilog_seconds_trn2": verilog_seconds, "verilog_bytes_trn2": verilog_bytes, "golden_over_matmul": golden,
        "compile_jobs": jobs(), "busy_fraction": rows[0]["busy_fraction"],
        **{f"{name}_{row['size']}": row[name] for row in rows for name in row if name != "size"},
    })
    return int(any(row["mismatches"] for row in rows))


if __name__ == "__main__":
    run_command(main, {"FULL": "no"})
