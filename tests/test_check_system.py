"""sim/check_system.sh: what the system lacks is said in one line, before anything is installed."""

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "sim" / "check_system.sh"


def outcome(folder, tools, python="exit 0"):
    """Run the script on a system that has only the given tools, and a ``python3`` that does as told."""
    for tool in tools:
        (folder / tool).symlink_to(shutil.which("true"))
    (folder / "python3").write_text(f"#!/bin/sh\n{python}\n")
    (folder / "python3").chmod(0o755)
    return subprocess.run([shutil.which("sh"), SCRIPT], env={"PATH": str(folder)}, capture_output=True, text=True)


def test_a_complete_system_passes_in_silence(tmp_path):
    run = outcome(tmp_path, ["g++", "make", "perl"])
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


@pytest.mark.parametrize("tools, named", [(["make"], "g++ perl"), (["g++", "make"], "perl")])
def test_missing_tools_are_named_in_one_line(tmp_path, tools, named):
    run = outcome(tmp_path, tools)
    assert run.returncode == 1
    assert run.stderr == f"OpenNeuronCore needs {named}: on Debian or Ubuntu, apt install g++ make perl python3 python3-venv\n"


def test_an_old_python_is_named(tmp_path):
    run = outcome(tmp_path, ["g++", "make", "perl"],
                  'case "$1" in --version) echo Python 3.9.2;; *) exit 1;; esac')
    assert run.returncode == 1
    assert run.stderr == "OpenNeuronCore needs Python 3.11 or later as python3, not Python 3.9.2\n"
