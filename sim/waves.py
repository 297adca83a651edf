"""``python -m sim.waves TEST=<bench>[.<test>] [SEED=<n>]``: runs one bench with a trace and says where the trace is."""

from sim.command import run_command
from sim.registry import bench_names, run_named
from spec.errors import SpecError, choices

__all__ = ["main"]


def main(values):
    """Run the command; returns 0, a failing bench raises."""
    test, seed = values["TEST"], values["SEED"] or None
    if test.partition(".")[0] not in bench_names():
        raise SpecError("TEST", test, f"<bench> or <bench>.<test>, where <bench> is {choices(bench_names())}")
    if seed is not None and not seed.isdecimal():
        raise SpecError("SEED", seed, "a whole number from 0")
    run = run_named(test, seed=None if seed is None else int(seed), waves=True)
    print(f"{run.tests} tests passed with seed {run.seed}; trace {run.trace} (gtkwave and surfer read it)")
    return 0


if __name__ == "__main__":
    run_command(main, {"TEST": "", "SEED": ""})
