"""Products on the tensor engine, every bit compared with the golden model."""

import time
from dataclasses import dataclass

import numpy as np

from golden.formats import encode
from golden.tensor import matmul_tiled
from sim.progress import progress_bar
from sim.tensor import EngineRun, Program

__all__ = ["CheckedRun", "random_operands", "run_checked"]


@dataclass(frozen=True)
class CheckedRun:
    """A run, and how its results compare.

    Parameters
    ----------
    run : sim.tensor.EngineRun
    seconds : float
        That the engine ran.
    bits_compared, mismatches : int
        Bits of results, and those of them that differ from the golden model's.
    """

    run: EngineRun
    seconds: float
    bits_compared: int
    mismatches: int


def random_operands(rng, form, contraction, outputs, columns):
    """Normally distributed ``stationary[K, M]`` and ``moving[K, N]`` as bit patterns."""
    return (encode(rng.standard_normal((contraction, outputs), np.float32), form.stationary),
            encode(rng.standard_normal((contraction, columns), np.float32), form.moving))


def run_checked(driver, operands, form, what):
    """Run products one after the other in one program, and compare them.

    Parameters
    ----------
    driver : sim.tensor.TensorDriver
    operands : list of (stationary, moving)
    form : spec.tensor.Matmul
    what : str
        What the progress bar says.

    Returns
    -------
    CheckedRun
    """
    program = Program(driver.core)
    for stationary, moving in operands:
        program.matmul(stationary, moving, form)
    began = time.perf_counter()
    with progress_bar(what, "payloads") as progress:
        run = driver.run(program, progress=progress)
    seconds = time.perf_counter() - began
    differing = sum(int(np.bitwise_count(result ^ matmul_tiled(driver.core, *pair, form)).sum())
                    for result, pair in zip(run.results, operands))
    return CheckedRun(run, seconds, sum(result.nbytes * 8 for result in run.results), differing)
