"""``python -m area.power [CONFIG=…] [TOP=…] [SET=…] [LIBERTY=…]``: energy of a cycle, and power, of a block's cells."""

import numpy as np

from hdl.emit import emit
from hdl.tops import make_top
from sim.command import run_command, selected_system
from sim.progress import progress_bar
from sim.report import publish
from sim.rows import row_bytes
from spec.errors import SpecError

from .activity import record
from .energy import measure_energy
from .gates import gate_level
from .library import chosen_library
from .sram import SRAMModel
from .synthesis import synthesise
from .timing import longest_path, timer

__all__ = ["MOST_CELLS", "main", "noise"]

MOST_CELLS = 40_000
"""Every cell is simulated: more than these take too long to compile."""

SEED, CYCLES = 1, 1000


def main(values):
    """Run the command; returns 0."""
    emission = emit(make_top(values["TOP"], selected_system(values).chip.core))
    if all(port.name != "clk" for port in emission.ports):
        raise SpecError("TOP", values["TOP"], "a block with a clock")
    library = chosen_library(values["LIBERTY"])
    with progress_bar("Synthesis", "modules") as progress:
        modules = synthesise(emission, library, progress=progress)
    cells = _cells(emission.top, modules)
    if cells > MOST_CELLS:
        raise SpecError("TOP", values["TOP"],
                        f"a block of at most {MOST_CELLS:,} cells, this one has {cells:,}; pe for instance")
    activity = record(gate_level(emission, library), noise(emission, CYCLES, SEED), CYCLES)
    energy = measure_energy(emission.top, modules, library, activity)
    clock_ghz = 1000 / longest_path(emission.top, modules, library, SRAMModel()).delay_ps
    publish("power", {
        "config": values["CONFIG"], "set": values["SET"] or None, "top": values["TOP"], "cells": cells,
        "switching_fj": energy.switching_fj, "internal_fj": energy.internal_fj, "clock_fj": energy.clock_fj,
        "cycle_fj": energy.cycle_fj, "leakage_mw": energy.leakage_w * 1e3, "clock_ghz": clock_ghz,
        "power_mw": energy.power_w(clock_ghz) * 1e3, "changes_per_net": float(np.mean(list(activity.changes.values()))),
        "cycles": CYCLES, "seed": SEED, "timer": timer(), "library": library.identity, "design": emission.content_hash,
    })
    return 0


def noise(emission, cycles, seed):
    """Random bits for every input but clock and reset: rows for :meth:`sim.model.Model.vectors`."""
    rng = np.random.default_rng(seed)
    inputs = {}
    for port in emission.ports:
        if port.direction == "input" and port.name not in ("clk", "rst"):
            if port.width <= 64:
                inputs[port.name] = rng.integers(0, 1 << port.width, cycles, np.uint64)
            else:
                rows = rng.integers(0, 256, (cycles, row_bytes(port.width)), np.uint8)
                rows[:, -1] >>= -port.width % 8
                inputs[port.name] = rows
    return inputs


def _cells(name, modules):
    """Cells of a module with all that it places."""
    if name not in modules:  # a memory
        return 0
    placed = modules[name].children
    return modules[name].cells + sum(count * _cells(child, modules) for child, count in placed.items())


if __name__ == "__main__":
    run_command(main, {"CONFIG": "mini", "TOP": "pe", "SET": "", "LIBERTY": ""})
