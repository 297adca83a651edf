"""Runs a sweep: finds what is done already, spreads the rest over workers, keeps each result as it comes."""

import contextlib
from dataclasses import asdict, dataclass

from distributed import KilledWorker, as_completed

from area.errors import CostError
from area.library import chosen_library
from sim.cache import BuildError, content_key
from sim.errors import SimulationError
from sim.progress import progress_bar
from sim.toolchain import ToolchainError
from spec.errors import SpecError
from spec.presets import configure

from .point import Designs, Task, find_designs, measure
from .provenance import PROJECT, flow, tools

__all__ = ["Result", "Run", "run_sweep"]


@dataclass(frozen=True)
class Result:
    """What came of a point.

    Parameters
    ----------
    key : str
        Hash of all that decides the figures.
    designs : area.sweeps.point.Designs or None
        None where no design could be made.
    form : spec.tensor.Matmul
        Form of the products.
    figures : dict
        By name; empty for a point that failed.
    error : str or None
        Why it failed.
    """

    key: str
    designs: Designs | None
    form: object
    figures: dict
    error: str | None


@dataclass(frozen=True)
class Run:
    """A sweep that is through: ``results`` in the order of the points, how many designs were ``measured`` now, and the
    cell ``library``."""

    results: list
    measured: int
    library: object


def run_sweep(sweep, store, find_designs=find_designs, measure=measure):
    """Measure the points of a sweep that the store does not hold, and return the :class:`Run`.

    A point that fails keeps its reason, and is tried again by the next run. Each result is kept as soon as it is there,
    so a run that is killed loses only the points that were under way.

    Parameters
    ----------
    sweep : area.sweeps.file.Sweep
    store : area.sweeps.store.Store
    find_designs, measure : callable
        What the workers do with a :class:`~area.sweeps.point.Task`.
    """
    library = chosen_library(sweep.liberty)
    tasks = _tasks(sweep, library)
    with contextlib.ExitStack() as stack:
        workers = _Workers(sweep.cluster, stack)
        designs, errors = _find_all(tasks, store, workers, find_designs)
        inputs = [_inputs(task, library, design) for task, design in zip(tasks, designs)]
        keys = [content_key(**given) for given in inputs]
        kept = {key: store.load("points", key) for key in keys}
        todo = {key: number for number, key in enumerate(keys)
                if designs[number] and not (kept[key] and kept[key]["error"] is None)}
        for number, error in errors.items():
            kept[keys[number]] = {"inputs": inputs[number], "figures": {}, "error": error}
            store.save("points", keys[number], kept[keys[number]])
        for key, figures, error in workers.spread(measure, {key: tasks[number] for key, number in todo.items()},
                                                  "Measuring", "points"):
            kept[key] = {"inputs": inputs[todo[key]], "figures": figures or {}, "error": error}
            store.save("points", key, kept[key])
    results = [Result(key, design, task.form, kept[key]["figures"], kept[key]["error"])
               for key, design, task in zip(keys, designs, tasks)]
    return Run(results, len(todo), library)


def _tasks(sweep, library):
    with_tools, liberty = tools(), sweep.liberty and str(sweep.liberty)
    return [Task(sweep.preset, settings, sweep.top, sweep.products,
                 sweep.form(configure(sweep.preset, settings).chip.core), sweep.seed, sweep.period_ps, liberty,
                 library.checksum, PROJECT, with_tools)
            for settings in map(sweep.settings, sweep.points)]


def _find_all(tasks, store, workers, find_designs):
    """Designs of all tasks, known of the same configuration under the same code or found now; and errors by number."""
    keys = [content_key(preset=task.preset, settings=task.settings, top=task.top, simulated=bool(task.products),
                        project=task.project, tools=task.tools) for task in tasks]
    known = [store.load("designs", key) for key in keys]
    designs = [found and Designs(**found) for found in known]
    errors = {}
    unknown = {number: task for number, task in enumerate(tasks) if designs[number] is None}
    for number, found, error in workers.spread(find_designs, unknown, "Writing Verilog", "points"):
        if error is None:
            designs[number] = found
            store.save("designs", keys[number], asdict(found))
        else:
            errors[number] = error
    return designs, errors


def _inputs(task, library, designs):
    """All that decides a point's figures; for a point without a design, its configuration."""
    given = {"products": task.products, "form": asdict(task.form), "seed": task.seed} if task.products else {}
    what = asdict(designs) if designs else {"preset": task.preset, "settings": task.settings, "top": task.top}
    return {"designs": what, "period_ps": task.period_ps, "library": library.checksum, "flow": flow(), **given}


class _Workers:
    """A cluster that is started when there is work for it."""

    def __init__(self, cluster, stack):
        self._cluster = cluster
        self._stack = stack
        self._client = None

    def spread(self, function, tasks, what, unit):
        """Call the function with each task on the workers; yields (name, result, error) as they come.

        Parameters
        ----------
        tasks : dict
            By name.
        """
        if not tasks:
            return
        if self._client is None:
            self._client = self._stack.enter_context(self._cluster.client())
        futures = {self._client.submit(_attempt, function, task, pure=False): name for name, task in tasks.items()}
        with progress_bar(what, unit) as progress:
            progress(0, len(futures))
            for done, future in enumerate(as_completed(futures), 1):
                yield futures[future], *_outcome(future)
                progress(done, len(futures))


def _attempt(function, task):
    """Result and error of a call, one of them None; on the worker, since not every error can travel."""
    try:
        return function(task), None
    except (SpecError, CostError, BuildError, SimulationError, ToolchainError) as error:
        return None, str(error)
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"


def _outcome(future):
    """Result and error of an attempt, which may not have come to its end."""
    if future.cancelled():
        return None, "The scheduler gave it up"
    error = future.exception()
    if isinstance(error, KilledWorker):  # its own text names addresses, which differ from run to run
        return None, f"{error.allowed_failures + 1} workers died of it, in a row; of too little memory, perhaps"
    if error is not None:
        return None, f"{type(error).__name__}: {error}"
    return future.result()
