"""The floors of the house: nothing imports from a floor above its own, and hdl and golden never from each other."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

FLOORS = ({"spec"}, {"hdl", "golden"}, {"sim"}, {"area"}, {"examples", "docs"}, {"tests"})
"""The lowest first. Rooms of one floor do not import each other."""

ALLOWED = {room: {room}.union(*FLOORS[:level]) for level, rooms in enumerate(FLOORS) for room in rooms}


def imported(source, package):
    """Modules that a source imports, as (line, full name).

    Parameters
    ----------
    source : str
    package : list of str
        Names of the packages that hold the module, the outermost first.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[:len(package) + 1 - node.level] if node.level else []
            yield node.lineno, ".".join([*above, *(node.module or "").split(".")]).strip(".")


def faults(source, package):
    """Imports of a source that go where they must not, as text."""
    room = package[0]
    return [f"line {line}: {room} imports {name}" for line, name in imported(source, package)
            if name.partition(".")[0] in ALLOWED.keys() - ALLOWED[room]]


def sources():
    """Every source of every room that exists."""
    return [path for room in ALLOWED for path in sorted((ROOT / room).rglob("*.py"))]


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_import_goes_up(path):
    assert faults(path.read_text(), list(path.relative_to(ROOT).parent.parts)) == []


def test_every_room_with_code_has_a_floor():
    held = {path.relative_to(ROOT).parts[0] for path in ROOT.glob("[!.]*/**/*.py")} - {"build"}
    assert {"spec", "hdl", "golden", "sim", "tests"} <= held <= set(ALLOWED)


@pytest.mark.parametrize("package, source, fault", [
    ("spec", "import hdl.emit", "spec imports hdl.emit"),
    ("golden", "from hdl.arith import add", "golden imports hdl.arith"),
    ("hdl.arith", "from golden.arith import add", "hdl imports golden.arith"),
    ("hdl", "def f():\n    from sim import model", "hdl imports sim"),
    ("sim.benches", "from tests.corners import random_bits", "sim imports tests.corners"),
    ("sim", "import numpy, area.cost as cost", "sim imports area.cost"),
    ("hdl.tensor", "try:\n    import sim\nexcept ImportError:\n    pass", "hdl imports sim"),
    ("hdl", "if __name__ == '__main__':\n    from sim.command import run_command", "hdl imports sim.command"),
])
def test_an_import_upward_is_found(package, source, fault):
    assert [text.partition(": ")[2] for text in faults(source, package.split("."))] == [fault]


@pytest.mark.parametrize("package, source", [
    ("hdl.tensor", "from ..arith.add import Add\nfrom . import tile\nfrom spec.formats import FORMATS"),
    ("sim", "from . import rows\nfrom hdl.emit import emit\nfrom golden.tensor import matmul"),
    ("tests", "import area.cost, sim.model, golden.arith, hdl.emit, spec.config, docs.pictures.draw"),
    ("hdl", "import simulation, tests_of_mine"),
])
def test_an_import_on_its_floor_or_down_passes(package, source):
    assert faults(source, package.split(".")) == []


def test_relative_imports_are_resolved():
    source = "from ..arith.add import Add\nfrom . import tile\nfrom .. import emit"
    assert [name for _, name in imported(source, ["hdl", "tensor"])] == ["hdl.arith.add", "hdl.tensor", "hdl"]
