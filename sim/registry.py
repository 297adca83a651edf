"""Benches by name: every module in ``sim/benches/`` is one."""

import importlib
import pkgutil

from hdl.emit import emit
from sim import benches
from sim.bench import run_bench

__all__ = ["bench_names", "run_named"]


def bench_names():
    """Names of all benches, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(benches.__path__))


def run_named(name, *, seed=None, waves=False):
    """Run a bench by its name.

    A bench is a module with cocotb tests and a function ``design()`` that returns the component they are for; it may
    set ``HIERARCHICAL``, the names of repeated modules to compile once each.

    Parameters
    ----------
    name : str
        The bench, or ``bench.test`` for one of its tests.
    seed, waves
        As for ``sim.bench.run_bench``.

    Returns
    -------
    sim.bench.BenchRun

    Raises
    ------
    ValueError
        There is no such bench; the message lists those there are.
    sim.errors.BenchFailed
        A test failed, or none ran.
    """
    bench, _, test = name.partition(".")
    if bench not in bench_names():
        raise ValueError(f"Bench must be one of {', '.join(bench_names()) or '(there are none)'}, not {bench!r}")
    module = importlib.import_module(f"{benches.__name__}.{bench}")
    return run_bench(emit(module.design()), module.__name__, tests=test or None, seed=seed, waves=waves,
                     hierarchical=getattr(module, "HIERARCHICAL", ()))
