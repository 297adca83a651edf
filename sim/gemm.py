"""``python -m sim.gemm [M=…] [N=…] [K=…] [FORMAT=…] [CONFIG=…] [SET=…]``: one product, memory to memory, on a core."""

import time

import numpy as np

from golden.core import Core
from golden.tensor import matmul_tiled
from spec.errors import SpecError
from spec.tensor import Matmul

from .checked import random_operands
from .command import run_command, selected_system
from .core import CoreDriver, build_core
from .matmul_program import MatmulProgram
from .progress import progress_bar
from .report import publish

__all__ = ["main", "run_product"]

SEED = 1
LATENCY = (20, 40)
"""Cycles that memory takes to answer."""
_CYCLES_A_WAVE = 40


def run_product(core, program, operands, form, model=None):
    """Run a product's program on the RTL and on the golden core.

    Parameters
    ----------
    core : spec.config.CoreConfig
    program : sim.matmul_program.MatmulProgram
    operands : (array [K, M], array [K, N])
        Bit patterns.
    form : spec.tensor.Matmul
    model : sim.model.Model
        Of ``NeuronCore(core)``; built if not given.

    Returns
    -------
    dict
        ``mismatches``: words that differ from the golden core's, or from the golden product's; ``cycles``;
        ``busy_fraction``: of the cycles from the first wave to the last; ``bytes_moved``, ``stalls_*``: cycles of those without
        a wave, by what it lacked; ``seconds``.
    """
    golden = Core(core, bytearray(program.end))
    driver = CoreDriver(core, program.end, model=model or build_core(core), latency=LATENCY, seed=SEED)
    for machine in (golden, driver):
        program.load(machine, *operands)
    driver.clear_counters()
    for machine in (golden, driver):
        program.start(machine)
    golden.run(limit=100_000_000)
    began, cycles = time.perf_counter(), driver.model.cycle
    limit = 100_000 + _CYCLES_A_WAVE * program.macs * form.passes // (core.rows * core.cols)
    with progress_bar("product") as progress:
        driver.run(limit, progress)
    seconds = time.perf_counter() - began
    counters = driver.counters
    expected = matmul_tiled(core, *operands, form)
    results = [program.result(machine) for machine in (driver, golden)]
    return {
        "mismatches": sum(int((result != expected).sum()) for result in results),
        "cycles": driver.model.cycle - cycles, "busy_fraction": counters["multiplying"] / max(1, counters["span"]),
        "bytes_moved": counters["bytes_read"] + counters["bytes_written"],
        **{f"stalls_{name}": counters[name] for name in ("no_moving", "no_weights", "no_instruction")},
        "seconds": seconds}


def _whole(values, name):
    if not values[name].isdecimal():
        raise SpecError(name, values[name], "a whole number from 1")
    return int(values[name])


def main(values):
    """Run the command; returns 1 if a word differs, else 0."""
    system = selected_system(values)
    core, form = system.chip.core, Matmul(values["FORMAT"], values["FORMAT"])
    m, n, k = (_whole(values, name) for name in "MNK")
    program = MatmulProgram(core, m, n, k, form.moving)
    operands = random_operands(np.random.default_rng(SEED), form, k, m, n)
    outcome = run_product(core, program, operands, form)
    seconds = outcome.pop("seconds")
    publish("gemm", {
        "config": system.chip.name, "set": values["SET"] or None, "m": m, "n": n, "k": k, "format": form.moving, "seed": SEED,
        **outcome, "macs_per_cycle": program.macs / outcome["cycles"], "cycles_per_second": outcome["cycles"] / seconds,
        "program_bytes": len(program.program), "descriptor_bytes": len(program.descriptors)})
    return int(outcome["mismatches"] > 0)


if __name__ == "__main__":
    run_command(main, {"M": "64", "N": "64", "K": "64", "FORMAT": "bf16", "CONFIG": "mini", "SET": ""})
