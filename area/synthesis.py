"""Synthesis: each module of a design mapped to library cells, once."""

import importlib.metadata
import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from sim.cache import BuildError, content_key, entry, keep_only
from sim.toolchain import jobs

from .errors import CostError
from .sram import is_sram

__all__ = ["MappedModule", "run_yosys", "synthesise"]

_REGISTER = re.compile(r"\$_(?:S|AL|A)?DFF\w*_")
_LOAD_FF = 5  # on every output, as in the table of open peers that this flow is compared with
_CHILD = Path(__file__).with_name("yosys_child.py")


@dataclass(frozen=True)
class MappedModule:
    """One module on library cells, without what it places.

    Parameters
    ----------
    name : str
    netlist : pathlib.Path
        Verilog of library cells and placed modules.
    area_um2 : float
    cells, registers : int
    abc_delay_ps : float or None
        ABC's delay of the longest path between registers and ports, without wires and set-up; None without logic.
    children : dict of str to int
        How many of which modules it places.
    """

    name: str
    netlist: Path
    area_um2: float
    cells: int
    registers: int
    abc_delay_ps: float | None
    children: dict


def run_yosys(build, script):
    """Run a Yosys script in the folder of a :class:`sim.cache.Build`."""
    path = build.folder / "script.ys"
    path.write_text(script)
    build.run([sys.executable, _CHILD, path])


def synthesise(emission, library, period_ps=1000, progress=None):
    """Map every module of a design, SRAMs left out, two at a time; results are cached by content.

    The flow: ``synth -flatten`` within a module, ``dfflibmap``, ``abc -liberty`` with a driving cell, a load of 5 fF and
    the period as its goal, which sizes the gates.

    Parameters
    ----------
    emission : hdl.emit.Emission
    library : Library
    period_ps : int
        What ABC sizes for; far below what can be reached, it gives the fastest circuit.
    progress : callable, optional
        Called with modules done and modules in all.

    Returns
    -------
    dict of str to MappedModule

    Raises
    ------
    CostError
        Yosys failed; the message names the log.
    """
    texts = {Path(file).stem: text for file, text in emission.files.items()}
    names = [name for name in texts if not is_sram(name)]
    placed = {name: [other for other in texts if other != name and re.search(rf"^ *{other} ", texts[name], re.M)]
              for name in names}
    mapped = {}
    with ThreadPoolExecutor(min(2, jobs())) as pool:
        for done, module in enumerate(pool.map(lambda name: _module(name, texts, placed[name], library, period_ps),
                                               names), 1):
            mapped[module.name] = module
            if progress:
                progress(done, len(names))
    return mapped


def _module(name, texts, children, library, period_ps):
    ports = {child: _header(child, texts[child]) for child in children}
    key = content_key(flow=_script("design", "library", children, period_ps), text=texts[name], ports=ports,
                      library=library.sha256, driver=library.driver, yosys=importlib.metadata.version("pyosys"))

    def make(build):
        for module in (name, *children):
            (build.folder / f"{module}.v").write_text(texts[module])
        (build.folder / "drive").write_text(f"set_driving_cell {library.driver}\nset_load {_LOAD_FF}\n")
        run_yosys(build, _script(name, library.path, children, period_ps))
        delays = re.findall(r"Delay = *([\d.]+) ps", (build.folder / "abc.log").read_text())
        counted = _statistics(build.folder / "generic.json", name)
        result = _statistics(build.folder / "mapped.json", name)
        own = {cell: number for cell, number in result["num_cells_by_type"].items() if cell not in texts}
        (build.folder / "facts.json").write_text(json.dumps({
            "area_um2": result.get("area", 0.0), "cells": sum(own.values()),
            "registers": sum(number for cell, number in counted["num_cells_by_type"].items()
                             if _REGISTER.fullmatch(cell)),
            "abc_delay_ps": float(delays[-1]) if delays else None,
            "children": {cell: number for cell, number in result["num_cells_by_type"].items() if cell in texts},
        }))
        keep_only(build.folder, "facts.json", "netlist.v")

    try:
        folder = entry("synthesis", key, make, f"the netlist of {name}", quiet=True)
    except BuildError as error:
        raise CostError(f"{error}") from None
    return MappedModule(name, folder / "netlist.v", **json.loads((folder / "facts.json").read_text()))


def _script(name, liberty, children, period_ps):
    stubs = [f"read_verilog -lib {child}.v" for child in children]
    return "\n".join([
        f"read_verilog {name}.v", *stubs,
        f"synth -flatten -top {name}",
        "tee -q -o generic.json stat -json",
        f"dfflibmap -liberty {liberty}",
        f"tee -o abc.log abc -liberty {liberty} -constr drive -D {period_ps}",
        "opt_clean -purge",
        f"tee -q -o mapped.json stat -liberty {liberty} -json",
        # OpenSTA takes no concatenations on the left of an assignment.
        "write_verilog -noattr -simple-lhs netlist.v", ""])


def _header(name, text):
    """The ports of a module, which are all that a parent's netlist depends on."""
    return sorted(re.findall(r"^  (?:input|output) .*;$", text[re.search(rf"^module {name}\(", text, re.M).start():], re.M))


def _statistics(file, name):
    return json.loads(file.read_text())["modules"]["\\" + name]
