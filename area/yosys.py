"""Runs Yosys in a process of its own, so that its log and its crashes stay there."""

import importlib.metadata
import sys
from pathlib import Path

import pyosys

__all__ = ["VERSION", "ABC", "run_script"]

VERSION = importlib.metadata.version("pyosys")
"""What figures of area depend on; part of every content key."""

ABC = Path(pyosys.__file__).with_name("yosys-abc")
"""ABC, which Yosys maps with, as a program of its own."""

_PROGRAM = "import sys; from pyosys import libyosys; libyosys.run_pass('script ' + sys.argv[1], libyosys.Design())"


def run_script(build, script):
    """Run a script of Yosys commands in a build's folder.

    Parameters
    ----------
    build : sim.cache.Build
    script : str
        One command a line.

    Raises
    ------
    sim.cache.BuildError
        A command failed; the message names the log.
    """
    (build.folder / "flow.ys").write_text(script)
    build.run([sys.executable, "-c", _PROGRAM, "flow.ys"])
