"""area/sweeps/cluster.py: this machine, a running scheduler or a batch farm, as the sweep file says."""

import os

import psutil
import pytest

from area.sweeps.cluster import FARMS, Cluster
from spec.errors import SpecError

FARM = {"cores": 8, "memory": "32GB"}
HEADERS = {"slurm": "#SBATCH -J", "lsf": "#BSUB -J", "pbs": "#PBS -N", "sge": "#$ -N"}


@pytest.mark.parametrize("kind", FARMS)
def test_a_farms_job_is_what_dask_jobqueue_makes_of_the_options(kind):
    cluster = Cluster.of({"kind": kind, "workers": 5, **FARM, "queue": "long", "processes": 4,
                          "job_script_prologue": ["module load gcc"]})
    assert cluster.kind == kind and cluster.workers == 5
    lines = cluster.job_script("tcp://127.0.0.1:8786").splitlines()
    assert lines[0].startswith("#!") and lines[2].startswith(HEADERS[kind]) and any("long" in line for line in lines)
    command = next(line for line in lines if "dask_worker" in line)
    assert "tcp://127.0.0.1:8786" in command and "--nworkers 4" in command
    # A job begins in the project, with two compilers for each of the four points that share eight cores.
    prologue = [line for line in lines[:lines.index(command)] if line and not line.startswith("#")]
    root = os.getcwd()
    assert prologue == [f"cd {root}", f"export PYTHONPATH={root}", "export OPENNEURONCORE_JOBS=2", "module load gcc"]


def test_a_job_does_as_many_points_at_once_as_it_has_cores():
    script = Cluster.of({"kind": "slurm", **FARM}).job_script("tcp://127.0.0.1:8786")
    assert "--nworkers 8" in script and "--nthreads 1" in script and "OPENNEURONCORE_JOBS=1" in script


@pytest.mark.parametrize("given, message", [
    ({"kind": "cloud"}, "cluster: kind: 'cloud' is not allowed; allowed: local, slurm, lsf, pbs or sge"),
    ({"kind": ["slurm"]}, r"cluster: kind: \['slurm'\] is not allowed"),
    ({"workers": 0}, "cluster: workers: 0 is not allowed; allowed: a whole number from 1 to 1024"),
    ({"workers": True}, "cluster: workers: True is not allowed"),
    ({"queue": "long"}, "cluster: 'queue' is not allowed; allowed: scheduler, kind or workers"),
    ({"scheduler": "here"}, "cluster: scheduler: 'here' is not allowed; allowed: an address such as tcp://"),
    ({"scheduler": 8786}, "cluster: scheduler: 8786 is not allowed"),
    ({"scheduler": "tcp://127.0.0.1:8786", "workers": 2}, "cluster: 'workers' is not allowed; allowed: scheduler"),
    ({"kind": "slurm", "memory": "1GB"}, "cluster: cores: None is not allowed; allowed: the cores of one job"),
    ({"kind": "slurm", "cores": 2}, "cluster: memory: None is not allowed; allowed: the memory of one job"),
    ({"kind": "slurm", **FARM, "colour": 1}, "cluster: 'colour' is not allowed; allowed: kind, workers, queue"),
    ({"kind": "pbs", **FARM, "memory": "lots"}, "cluster: pbs: .* allowed: what dask-jobqueue takes; it says: .*lots"),
])
def test_a_mistake_is_one_line_that_says_what_is_allowed(given, message):
    with pytest.raises(SpecError, match=f"^{message}") as error:
        Cluster.of(given)
    assert "\n" not in str(error.value)


def listening():
    return {connection.laddr.ip for connection in psutil.Process().net_connections() if connection.status == "LISTEN"}


def facts():
    return {"listening": listening(), "jobs": os.environ["OPENNEURONCORE_JOBS"], "pid": os.getpid()}


def test_the_local_cluster_is_processes_of_one_thread_that_only_this_machine_can_reach():
    with Cluster.of({"workers": 2}).client() as client:
        workers = client.scheduler_info()["workers"].values()
        assert [worker["nthreads"] for worker in workers] == [1, 1]
        assert 0 < sum(worker["memory_limit"] for worker in workers) <= psutil.virtual_memory().total
        seen = client.run(facts)
        assert len({fact["pid"] for fact in seen.values()} - {os.getpid()}) == 2
        assert all(fact["jobs"] == "1" for fact in seen.values())
        assert set.union(listening(), *(fact["listening"] for fact in seen.values())) == {"127.0.0.1"}
    assert not any(psutil.pid_exists(fact["pid"]) for fact in seen.values())


def test_a_scheduler_that_does_not_answer_is_one_line(monkeypatch):
    monkeypatch.setattr("area.sweeps.cluster._PATIENCE", "1s")
    cluster = Cluster.of({"scheduler": "tcp://127.0.0.1:9"})  # a port that nobody listens on
    with pytest.raises(SpecError, match="^cluster: scheduler: 'tcp://127.0.0.1:9' is not .* none answered within"):
        with cluster.client():
            pass
