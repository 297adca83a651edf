"""Where a sweep runs: processes of this machine, a scheduler that runs already, or a batch farm."""

import contextlib
import inspect
import logging
import os
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

import dask
import dask_jobqueue
from dask_jobqueue.core import Job
from distributed import Client, LocalCluster

from spec.errors import SpecError, choices

__all__ = ["FARMS", "Cluster"]

FARMS = {"slurm": dask_jobqueue.SLURMCluster, "lsf": dask_jobqueue.LSFCluster, "pbs": dask_jobqueue.PBSCluster,
         "sge": dask_jobqueue.SGECluster}
"""Batch systems by the name that a sweep file gives them."""

_PROJECT = Path(__file__).parents[2]
_LOOPBACK = "127.0.0.1"
_MOST_WORKERS = 1024
_PATIENCE = "10s"  # for a scheduler to answer
_OURS = {
    # A worker holds the point that it measures and no other, so that its death is blamed on that point alone.
    "distributed.scheduler.worker-saturation": 1.0,
    # Generating Verilog holds Python's lock for seconds; that is no fault of the worker.
    "distributed.admin.tick.limit": "1h",
    # Nobody looks at profiles of the workers, which would cost some per cent of their time.
    "distributed.worker.profile.enabled": False,
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
        Local processes, or jobs of a farm.
    options : dict
        What dask-jobqueue is given for a farm.
    """

    kind: str = "local"
    scheduler: str | None = None
    workers: int = 1
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
        given = dict(given)
        if "scheduler" in given:
            return cls._of_scheduler(given)
        kind = given.pop("kind", "local")
        if kind not in ["local", *FARMS]:  # a list, since what cannot be hashed may be given
            raise SpecError("cluster: kind", kind, choices(["local", *FARMS]))
        workers = given.pop("workers", len(os.sched_getaffinity(0)) if kind == "local" else 1)
        if type(workers) is not int or not 1 <= workers <= _MOST_WORKERS:
            raise SpecError("cluster: workers", workers, f"a whole number from 1 to {_MOST_WORKERS}")
        if kind == "local":
            _refuse_others(given, (), ("scheduler", "kind", "workers"))
            return cls(kind, workers=workers)
        return cls._of_farm(kind, workers, given)

    @classmethod
    def _of_scheduler(cls, given):
        _refuse_others(given, ("scheduler",))
        address = given["scheduler"]
        if not isinstance(address, str) or not re.fullmatch(r"(tcp|tls)://.+:\d+", address):
            raise SpecError("cluster: scheduler", address, "an address such as tcp://127.0.0.1:8786")
        return cls("scheduler", address)

    @classmethod
    def _of_farm(cls, kind, workers, options):
        _refuse_others(options, _job_options(kind), ("kind", "workers"))
        if type(options.get("cores")) is not int or options["cores"] < 1:
            raise SpecError("cluster: cores", options.get("cores"), "the cores of one job, a whole number from 1")
        if not isinstance(options.get("memory"), str):
            raise SpecError("cluster: memory", options.get("memory"), 'the memory of one job, such as "16GB"')
        cluster = cls(kind, workers=workers, options=options)
        try:
            cluster.job_script("tcp://127.0.0.1:8786")
        except Exception as error:  # whatever dask-jobqueue makes of a wrong option
            raise SpecError(f"cluster: {kind}", " ".join(options),
                            f"what dask-jobqueue takes; it says: {error}") from None
        return cluster

    def job_script(self, scheduler):
        """What one job of a farm runs, for a scheduler at an address."""
        return FARMS[self.kind].job_cls(scheduler, name="sweep", **self._farm_options()).job_script()

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
            cluster = stack.enter_context(self._local() if self.kind == "local" else self._farm())
            yield stack.enter_context(Client(cluster))

    def _connected(self):
        try:
            return Client(self.scheduler, timeout=_PATIENCE)
        except OSError:
            raise SpecError("cluster: scheduler", self.scheduler,
                            f"the address of a running scheduler; none answered within {_PATIENCE}") from None

    def _local(self):
        """Processes of one thread each, reachable from this machine alone."""
        return LocalCluster(n_workers=self.workers, threads_per_worker=1, processes=True, host=_LOOPBACK,
                            dashboard_address=f"{_LOOPBACK}:0", silence_logs=logging.CRITICAL,
                            # The cores are taken: each worker has one compiler at a time.
                            env={"OPENNEURONCORE_JOBS": "1"})

    def _farm(self):
        cluster = FARMS[self.kind](scheduler_options={"dashboard": False, "dashboard_address": f"{_LOOPBACK}:0"},
                                   **self._farm_options())
        cluster.scale(jobs=self.workers)
        return cluster

    def _farm_options(self):
        """The user's options; as many processes as cores if not said otherwise; jobs that find the project."""
        cores = self.options["cores"]
        processes = self.options.get("processes", cores)
        prologue = [f"cd {shlex.quote(str(_PROJECT))}", f"export PYTHONPATH={shlex.quote(str(_PROJECT))}",
                    f"export OPENNEURONCORE_JOBS={max(1, cores // processes)}"]
        return {**self.options, "processes": processes,
                "job_script_prologue": [*prologue, *self.options.get("job_script_prologue", [])]}


def _job_options(kind):
    """Names that dask-jobqueue takes for a job, by its own signatures."""
    signatures = map(inspect.signature, (FARMS[kind].job_cls.__init__, Job.__init__))
    names = [name for signature in signatures for name, parameter in signature.parameters.items()
             if parameter.kind is not parameter.VAR_KEYWORD]
    return [name for name in dict.fromkeys(names) if name not in ("self", "scheduler", "name", "config_name")]


def _refuse_others(given, allowed, also=()):
    for name in given:
        if name not in allowed:
            raise SpecError("cluster", name, choices([*also, *allowed]))
