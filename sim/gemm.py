"""``python -m sim.gemm [M=…] [N=…] [K=…] [FORMAT=…] [CONFIG=…] [SET=…] [TIMELINE=yes]``: one product on a core."""

import contextlib
import time
from pathlib import Path

import numpy as np

from golden.core import Core
from golden.tensor import matmul_tiled
from spec.errors import SpecError
from spec.tensor import Matmul, check_matmul, is_paired_always

from .checked import random_operands
from .command import run_command, selected_system
from .core import CoreDriver, build_core
from .matmul_plan import Product
from .matmul_program import MatmulProgram
from .progress import progress_bar
from .report import publish

__all__ = ["main", "run_product"]

SEED = 1
LATENCY = (20, 40)
"""Cycles that memory takes to answer."""
_PATIENCE = 40
"""Cycles a wave, at most; a core that is told to do little for each wave waits for memory."""
_TIMELINE = Path("build") / "reports" / "gemm-timeline.json"


def run_product(core, product, operands, *, model=None, timeline=None):
    """Run a product's program on the RTL and on the golden core.

    Parameters
    ----------
    core : spec.config.CoreConfig
    product : sim.matmul_plan.Product
    operands : (array [K, M], array [K, N])
        Bit patterns.
    model : sim.model.Model
        Of ``NeuronCore(core)``; built if not given.
    timeline : str or pathlib.Path
        Where a trace of the run is written; see :class:`sim.timeline.Timeline`.

    Returns
    -------
    dict
        ``mismatches``: words that differ from the golden core's, or from the golden product's; ``cycles``;
        ``busy_fraction``: of the cycles from the first wave to the last; ``bytes_moved``, ``stalls_*``: cycles of those without
        a wave, by what it lacked; ``seconds``; ``program_bytes``, ``descriptor_bytes``.
    """
    program = MatmulProgram(core, [product])
    golden = Core(core, bytearray(program.end))
    driver = CoreDriver(core, program.end, model=model or build_core(core), latency=LATENCY, seed=SEED)
    for machine in (golden, driver):
        program.load(machine)
        program.put(machine, 0, *operands)
    driver.clear_counters()
    for machine in (golden, driver):
        program.start(machine)
    golden.run(limit=100_000_000)
    began, cycles = time.perf_counter(), driver.model.cycle
    with progress_bar("product") as progress, driver.timeline() if timeline else contextlib.nullcontext() as recorded:
        driver.run(100_000 + _PATIENCE * program.waves, lambda done, _: progress(done, max(done, program.waves)))
    seconds = time.perf_counter() - began
    if timeline:
        recorded.write(timeline)
    counters = driver.counters
    expected = matmul_tiled(core, *operands, product.form)
    results = [program.result(machine, 0) for machine in (driver, golden)]
    return {
        "mismatches": sum(int((result != expected).sum()) for result in results),
        "cycles": driver.model.cycle - cycles, "busy_fraction": counters["multiplying"] / max(1, counters["span"]),
        "bytes_moved": counters["bytes_read"] + counters["bytes_written"],
        **{f"stalls_{name}": counters[name] for name in ("no_moving", "no_weights", "no_instruction")},
        "seconds": seconds, "program_bytes": len(program.program), "descriptor_bytes": len(program.descriptors)}


def _whole(values, name):
    if not values[name].isdecimal():
        raise SpecError(name, values[name], "a whole number from 1")
    return int(values[name])


def main(values):
    """Run the command; returns 1 if a word differs, else 0."""
    system = selected_system(values)
    core, name = system.chip.core, values["FORMAT"]
    if values["TIMELINE"] not in ("yes", "no"):
        raise SpecError("TIMELINE", values["TIMELINE"], "yes or no")
    product = Product(*(_whole(values, size) for size in "MNK"), Matmul(name, name, is_paired_always(name)))
    timeline = _TIMELINE if values["TIMELINE"] == "yes" else None
    check_matmul(core, product.form)
    operands = random_operands(np.random.default_rng(SEED), product.form, product.k, product.m, product.n)
    outcome = run_product(core, product, operands, timeline=timeline)
    seconds = outcome.pop("seconds")
    publish("gemm", {
        "config": system.chip.name, "set": values["SET"] or None, "m": product.m, "n": product.n, "k": product.k,
        "format": name, "seed": SEED, **outcome, "macs_per_cycle": product.macs / outcome["cycles"],
        "cycles_per_second": outcome["cycles"] / seconds})
    if timeline:
        print(f"Timeline in {timeline}, for https://ui.perfetto.dev")
    return int(outcome["mismatches"] > 0)


if __name__ == "__main__":
    run_command(main, {"M": "64", "N": "64", "K": "64", "FORMAT": "bf16", "CONFIG": "mini", "SET": "", "TIMELINE": "no"})
