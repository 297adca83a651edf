"""One point of a sweep: its designs, and its figures. These functions run on the workers."""

import contextlib
import functools
import io
import threading
from dataclasses import dataclass

import numpy as np

from area.estimate import estimate
from area.library import chosen_library
from hdl.emit import emit
from hdl.tensor.pe import PE
from hdl.tops import make_top
from sim.checked import random_operands, run_checked
from sim.errors import SimulationError
from sim.model import Model
from sim.tensor import TensorDriver, repeated_modules
from spec.presets import configure
from spec.tensor import Matmul

from .provenance import PROJECT, tools

__all__ = ["Designs", "Task", "find_designs", "measure"]

_LOCK = threading.Lock()


@dataclass(frozen=True)
class Task:
    """All that a worker needs to know of a point.

    Parameters
    ----------
    preset, settings, top : str
        ``CONFIG``, ``SET`` and ``TOP``.
    products : tuple of (int, int, int)
    form : spec.tensor.Matmul
    seed, period_ps : int
    liberty : str or None
        Path of the cell library; None for the default.
    library_sha256 : str
        What the library must be.
    project : str
        What :data:`~area.sweeps.provenance.PROJECT` must be.
    tools : dict
        What :func:`~area.sweeps.provenance.tools` must be.
    """

    preset: str
    settings: str
    top: str
    products: tuple
    form: Matmul
    seed: int
    period_ps: int
    liberty: str | None
    library_sha256: str
    project: str
    tools: dict

    @property
    def core(self):
        return configure(self.preset, self.settings).chip.core


@dataclass(frozen=True)
class Designs:
    """Content hashes of what is costed and of the engine that is simulated; the latter None without products."""

    costed: str
    simulated: str | None


def find_designs(task):
    """The :class:`Designs` of a point."""
    with _alone():
        _refuse_a_stranger(task)
        costed = _emission(task.core, task.top).content_hash
        return Designs(costed, _emission(task.core, "tensor").content_hash if task.products else None)


@functools.lru_cache(maxsize=32)  # a worker often measures the design that it has just found
def _emission(core, top):
    return emit(make_top(top, core))


def measure(task):
    """Figures of a point by name; their units are in ``docs/sweeps.md``.

    Raises
    ------
    area.errors.CostError, sim.cache.BuildError, sim.errors.SimulationError
        A tool failed, or the engine's results are not golden's.
    """
    with _alone():
        _refuse_a_stranger(task)
        library = chosen_library(task.liberty)
        if library.checksum != task.library_sha256:
            raise RuntimeError(f"The worker's cell library {library.path} is not the one of this sweep")
        cost = estimate(make_top(task.top, task.core), library, period_ps=task.period_ps)
        elements = cost.count(PE.module_name)
        figures = {
            "elements": elements, "area_mm2": cost.area_um2 / 1e6, "logic_mm2": cost.logic_um2 / 1e6,
            "sram_mm2": cost.sram_um2 / 1e6, "sram_bits": cost.sram_bits, "registers": cost.registers,
            "cells": cost.cells, "delay_ps": cost.delay_ps, "clock_ghz": cost.clock_ghz,
        }
        return figures | (_performance(task, elements, figures) if task.products and elements else {})


def _performance(task, elements, figures):
    """Cycles and use of the whole engine, and the rate at which the costed block works when it is so used."""
    core = task.core
    driver = TensorDriver(core, Model.build(_emission(core, "tensor"), hierarchical=repeated_modules(core)))
    rng = np.random.default_rng(task.seed)
    cycles = macs = multiplying = span = 0
    for n, m, k in task.products:
        checked = run_checked(driver, [random_operands(rng, task.form, k, m, n)], task.form, f"Product {n} x {m} x {k}")
        if checked.mismatches:
            raise SimulationError(f"Product {n} x {m} x {k}: {checked.mismatches} of {checked.bits_compared} bits "
                                  "differ from the golden model's")
        cycles, macs = cycles + checked.run.cycles, macs + checked.run.macs
        multiplying, span = multiplying + checked.run.counters["multiplying"], span + checked.run.counters["span"]
    utilisation = macs / (core.rows * core.cols * task.form.peak_rate * cycles)
    peak_gflops = 2 * elements * task.form.peak_rate * figures["clock_ghz"]
    return {"cycles": cycles, "macs_per_cycle": macs / cycles, "busy_fraction": multiplying / span,
            "utilisation": utilisation, "peak_gflops": peak_gflops, "gflops": utilisation * peak_gflops,
            "gflops_per_mm2": utilisation * peak_gflops / figures["area_mm2"]}


def _refuse_a_stranger(task):
    """Figures must not depend on who measures, so a worker must be what the sweep's own process is."""
    own = {"project's code": PROJECT, **tools()}
    for name, value in {"project's code": task.project, **task.tools}.items():
        if own[name] != value:
            raise RuntimeError(f"The worker has another {name} than the sweep: {own[name]}, not {value}; start it anew")


@contextlib.contextmanager
def _alone():
    """One point at a time, whatever threads a worker has, and without a word: progress would run across the sweep's."""
    with _LOCK, contextlib.redirect_stderr(io.StringIO()):
        yield
