"""Where a sweep runs: processes of this machine, a scheduler that runs already, or a batch farm."""

import contextlib
import inspect
import logging
import os
from dataclasses import dataclass, field
from pathlib import Path

import dask
import dask_jobqueue
from distributed import Client, LocalCluster

from spec.errors import SpecError, choices

__all__ = ["FARMS", "Cluster"]

FARMS = {"slurm": dask_jobqueue.SLURMCluster, "lsf": dask_jobqueue.LSFCluster, "pbs": dask_jobqueue.PBSCluster,
         "sge": dask_jobqueue.SGECluster}
"""Batch systems by the name that a sweep file gives them."""

_PROJECT = Path(__file__).parents[2]
_PATIENCE = "10s"   # for a scheduler to answer
_OURS = {
    # A worker holds the point that it measures and no other, so that its death is blamed on that point alone.
    "distributed.scheduler.worker-saturation": 1.0,
    # Generating Verilog holds Python's lock for seconds; that is no fault of the worker.
    "distributed.admin.tick.limit": "1h",
}


@dataclass(frozen=True)
class Cluster:
    """Where a sweep runs.

    Parameters
    ----------
    kind : str
        ``"local"``, ``"scheduler"`` or a name of :data:`FARMS`.
    scheduler : str or None
        Address of a scheduler that runs already.
    workers : int
        Local processes, or jobs of a farm; 0 for as many local processes as there are cores.
    options : dict
        What dask-jobqueue is given for a farm.
    """

    kind: str = "local"
    scheduler: str | None = None
    workers: int = 0
    options: dict = field(default_factory=dict)

    @classmethod
    def of(cls, given):
        """The cluster that a sweep file's table ``[cluster]`` describes.

        Raises
        ------
        SpecError
            For an unknown key or an impossible value.
        """
        if not isinstance(given, dict):
            raise SpecError("cluster", given, "a table [cluster]")
        if "scheduler" in given:
            _refuse_others(given, ("scheduler",))
            address = given["scheduler"]
            if not isinstance(address, str) or not address.startswith(("tcp://", "tls://")):
                raise SpecError("cluster: scheduler", address, "an address such as tcp://127.0.0.1:8786")
            return cls("scheduler", scheduler=address)
        kind = given.get("kind", "local")
        if kind not in ["local", *FARMS]:
            raise SpecError("cluster: kind", kind, choices(["local", *FARMS]))
        workers = given.get("workers", 0 if kind == "local" else 1)
        if type(workers) is not int or not (kind == "local") <= workers + (kind == "local") <= 1024 or workers < 0:
            raise SpecError("cluster: workers", workers, "a whole number from 1 to 1024")
        options = {name: value for name, value in given.items() if name not in ("kind", "workers")}
        _refuse_others(options, _farm_options(kind), ("kind", "workers", *(() if kind != "local" else ("scheduler",))))
        for name in ("cores", "memory"):
            if kind != "local" and name not in options:
                raise SpecError(f"cluster: {name}", None, f"what one job of {kind} gets, such as "
                                + {"cores": "8", "memory": '"32GB"'}[name])
        return cls(kind, workers=workers, options=options)

    @contextlib.contextmanager
    def client(self):
        """A connected client; what was started for it ends with the context.

        Raises
        ------
        SpecError
            No scheduler answers at the address.
        """
        with dask.config.set(_OURS), contextlib.ExitStack() as stack:
            if self.kind == "scheduler":
                yield stack.enter_context(self._connected())
                return
            cluster = stack.enter_context(self.local() if self.kind == "local" else self.farm())
            if self.kind != "local":
                cluster.scale(jobs=self.workers)
            yield stack.enter_context(Client(cluster))

    def _connected(self):
        try:
            return Client(self.scheduler, timeout=_PATIENCE)
        except OSError:
            raise SpecError("cluster: scheduler", self.scheduler,
                            f"the address of a running scheduler; none answered within {_PATIENCE}") from None

    def local(self):
        """As many processes of one thread as there are cores, reachable from this machine alone."""
        return LocalCluster(n_workers=self.workers or len(os.sched_getaffinity(0)), threads_per_worker=1, processes=True,
                            host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL,
                            # The cores are taken: a worker compiles with one compiler at a time.
                            env={"OPENNEURONCORE_JOBS": "1"})

    def farm(self):
        """The farm's cluster, without jobs yet; its ``job_script()`` is what a job runs."""
        options = dict(self.options)
        processes = options.setdefault("processes", options["cores"])
        compilers = max(1, options["cores"] // processes)
        options["job_script_prologue"] = [f"cd '{_PROJECT}'", f"export PYTHONPATH='{_PROJECT}'",
                                          f"export OPENNEURONCORE_JOBS={compilers}",
                                          *options.get("job_script_prologue", [])]
        return FARMS[self.kind](**options)


def _farm_options(kind):
    """Names that dask-jobqueue takes for a farm, by its own signatures."""
    if kind == "local":
        return ()
    signatures = (FARMS[kind].job_cls.__init__, dask_jobqueue.core.Job.__init__, dask_jobqueue.core.JobQueueCluster.__init__)
    names = dict.fromkeys(name for signature in signatures for name, parameter in
                          inspect.signature(signature).parameters.items() if parameter.kind is not parameter.VAR_KEYWORD)
    return tuple(name for name in names if name not in ("self", "job_cls", "loop", "asynchronous", "n_workers"))


def _refuse_others(given, allowed, also=()):
    for name in given:
        if name not in allowed:
            raise SpecError("cluster", name, choices([*also, *allowed]))
