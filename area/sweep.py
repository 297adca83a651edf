"""``python -m area.sweep SWEEP=<file>``: a design-space sweep, into ``build/sweeps/<name>/`` and a report."""

from pathlib import Path

from sim.command import run_command
from sim.report import publish
from spec.errors import SpecError

from .sweeps.file import read_sweep
from .sweeps.page import write_page
from .sweeps.provenance import tools
from .sweeps.run import run_sweep
from .sweeps.store import Store
from .sweeps.table import failure_rows, make_table, report_rows, write_table

__all__ = ["main"]

_FOLDER = Path("build") / "sweeps"


def main(values):
    """Run the command; returns 1 if a point failed, else 0."""
    if not values["SWEEP"]:
        raise SpecError("SWEEP", "", "a file such as examples/sweeps/arrays.toml")
    sweep = read_sweep(values["SWEEP"])
    store = Store(_FOLDER / sweep.name)
    run = run_sweep(sweep, store)
    table = make_table(sweep, run.results)
    failed = int(table["error"].notna().sum())
    facts = {
        "sweep": sweep.name, "config": sweep.preset, "set": sweep.settings({}) or None, "top": sweep.top,
        "products": ", ".join(" x ".join(map(str, product)) for product in sweep.products) or None,
        "seed": sweep.seed, "period_ps": sweep.period_ps, "library": run.library.name,
        "library_sha256": run.library.checksum, "timer": tools()["timer"],
        "tools": ", ".join(f"{name} {version}" for name, version in tools().items() if name != "timer"),
    }
    counts = {"points_done": len(table) - failed, "points_failed": failed}
    written = [*write_table(table, store.folder), write_page(sweep, table, facts | counts, store.folder)]
    publish("sweep", {**facts, **counts, "points": report_rows(table, sweep.varied), "failures": failure_rows(table)})
    print(f"Points measured now: {run.measured}; taken from {store.folder}: {len(table) - run.measured}\n"
          + "\n".join(f"Written to {path}" for path in written))
    return int(failed > 0)


if __name__ == "__main__":
    run_command(main, {"SWEEP": ""})
