"""``python -m sim.utilisation``: small and ragged products on a 16 x 16 array, their cycles and how well they use it."""

import time

import numpy as np

from sim.checked import random_operands, run_checked
from sim.command import run_command
from sim.report import publish
from sim.tensor import TensorDriver
from spec.presets import configure
from spec.tensor import Matmul

__all__ = ["CONFIG", "PRODUCTS", "SCALE_SIM", "SETTINGS", "main", "measure"]

CONFIG, SETTINGS = "mini", "rows=16 cols=16 formats=bf16 transpose=no"
SEED = 1

PRODUCTS = ((1, 1, 1), (4, 4, 4), (5, 3, 17), (17, 13, 16), (8, 256, 256), (64, 64, 64), (64, 64, 512),
            (128, 128, 128), (33, 28, 47), (256, 256, 256), (64, 64, 1))
"""(N, M, K): columns of ``moving``, columns of ``stationary``, elements of the contraction."""

SCALE_SIM = {(64, 64, 64): 0.582, (128, 128, 128): 0.736, (256, 256, 256): 0.848, (64, 64, 512): 0.582,
             (8, 256, 256): 0.148, (33, 28, 47): 0.359}
"""Use of a 16 x 16 weight-stationary array in the model SCALE-Sim v3. Whole tiles come to N / (N + 46): there, no weights
are loaded while the array computes."""


def measure(driver, products=PRODUCTS, seed=SEED):
    """Run each product by itself, in bf16 and with random operands.

    Parameters
    ----------
    driver : sim.tensor.TensorDriver
    products : sequence of (N, M, K)
    seed : int

    Returns
    -------
    list of dict
        A row for each product: ``n``, ``m``, ``k``; ``cycles`` from the first word of weights taken to the last result
        sent; ``use``, multiply-accumulates per processing element and cycle; ``scale_sim_use`` or None;
        ``bits_compared`` and ``mismatches`` against the golden model.
    """
    rng = np.random.default_rng(seed)
    form = Matmul("bf16", "bf16")
    rows = []
    for n, m, k in products:
        checked = run_checked(driver, [random_operands(rng, form, k, m, n)], form, f"Product {n} x {m} x {k}")
        rows.append({"n": n, "m": m, "k": k, "cycles": checked.run.cycles, "use": driver.utilisation(checked.run),
                     "scale_sim_use": SCALE_SIM.get((n, m, k)), "bits_compared": checked.bits_compared,
                     "mismatches": checked.mismatches})
    return rows


def main(values):
    """Run the command; returns 1 if a bit differs from the golden model, else 0."""
    began = time.perf_counter()
    core = configure(CONFIG, SETTINGS).chip.core
    print(f"Products of m x k weights with k x n values, one at a time, on {core.rows} x {core.cols} processing elements "
          f"in bf16.\nuse: multiply-accumulates for each element and cycle, from the first weight in to the last result "
          f"out.\n", flush=True)
    driver = TensorDriver(core)
    rows = measure(driver)
    mismatches = sum(row["mismatches"] for row in rows)
    publish("utilisation", {
        "config": CONFIG, "set": SETTINGS, "design": driver.model.emission.content_hash, "seed": SEED,
        "bits_compared": sum(row["bits_compared"] for row in rows), "mismatches": mismatches,
        "seconds": time.perf_counter() - began, "products": rows,
    })
    return int(mismatches > 0)


if __name__ == "__main__":
    run_command(main, {})
