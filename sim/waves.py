"""``python -m sim.waves TEST=<bench>[.<test>] [SEED=<n>]``: runs one bench with a trace and says where the trace is."""

import sys

from sim.errors import SimulationError
from sim.registry import bench_names, run_named

__all__ = ["main"]


def main(arguments):
    """Run the command with arguments of the form ``NAME=value``.

    Returns
    -------
    int
        Exit status: 0, 1 if the bench failed, 2 if the arguments are wrong.
    """
    given = dict(argument.partition("=")[::2] for argument in arguments)
    if unknown := sorted(given.keys() - {"TEST", "SEED"}):
        return _usage(f"Argument must be TEST=… or SEED=…, not {unknown[0]!r}")
    if not given.get("TEST"):
        return _usage("TEST=<bench> or TEST=<bench>.<test> is needed")
    seed = given.get("SEED") or None
    if seed is not None and not seed.isdecimal():
        return _usage(f"SEED must be a whole number from 0, not {seed!r}")
    if given["TEST"].partition(".")[0] not in bench_names():
        return _usage(f"There is no bench {given['TEST']!r}")
    try:
        run = run_named(given["TEST"], seed=None if seed is None else int(seed), waves=True)
    except SimulationError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{run.tests} tests passed with seed {run.seed}; trace {run.trace} (gtkwave and surfer read it)")
    return 0


def _usage(problem):
    print(f"{problem}; benches: {', '.join(bench_names()) or 'none yet'}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
