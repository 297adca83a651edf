"""From Verilog to cells of a library: each module of a design is synthesised once, whatever number of it there is."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from sim import cache, toolchain

from .sram import is_sram
from .yosys import VERSION, run_script

__all__ = ["MappedModule", "synthesise"]

_LOAD_FF = 5  # at every output, while a module is mapped

# What figures of other designs were made with (docs/processing-element.md), so that ours compare. Then every internal
# net becomes a bit of a plain name, which OpenSTA, Verilator and area.netlist all can read.
_SCRIPT = """\
read_liberty -lib -ignore_miss_func {liberty}
read_verilog -lib {stubs}
read_verilog {source}
synth -flatten -top {name}
tee -q -o gates.json stat -json
dfflibmap -liberty {liberty}
tee -q -o abc.log abc -liberty {liberty} -constr constraints -D {period}
rename -hide w:*
opt_clean -purge
splitnets
opt_clean -purge
rename -enumerate -pattern n%
tee -q -o cells.json stat -json -liberty {liberty}
write_verilog -noattr -simple-lhs netlist.v
"""
_STUBS = "stubs.v"
_KEPT = ("gates.json", "cells.json", "abc.log", "netlist.v")

_MOST_AT_ONCE = 2   # a process holds the library several times over
_REGISTER = re.compile(r"\$_\w*(?:FF|LATCH)\w*_$")


@dataclass(frozen=True)
class MappedModule:
    """One module in cells of a library; what it instantiates is not counted in.

    Parameters
    ----------
    name : str
    netlist : str
        Verilog of the cells and of the modules that it instantiates.
    cells, registers : int
        Cells, and the one-bit registers among them.
    area_um2 : float
        Area of the cells.
    abc_delay_ps : float or None
        ABC's longest path between ports, registers and placed modules, without what registers take themselves; None
        without logic.
    children : dict of str to int
        How many of which other module it instantiates.
    """

    name: str
    netlist: str
    cells: int
    registers: int
    area_um2: float
    abc_delay_ps: float | None
    children: dict


def synthesise(emission, library, *, names=None, period_ps=1000, progress=None):
    """Modules of a design in cells of a library, from the cache or mapped now, two at a time.

    Parameters
    ----------
    emission : hdl.emit.Emission
    library : area.library.Library
    names : collection of str
        The modules; by default all but memories.
    period_ps : float
        The clock period that mapping aims at.
    progress : callable
        Called with how many modules are done and how many there are.

    Returns
    -------
    dict of str to MappedModule
        By name, leaves first.

    Raises
    ------
    sim.cache.BuildError
        Yosys failed; the message names the log file.
    """
    texts = {name.removesuffix(".v"): text for name, text in emission.files.items()}
    names = [name for name in texts if (not is_sram(name) if names is None else name in names)]
    done = 0

    def mapped(name):
        nonlocal done
        children = {child: texts[child] for child in _instantiated(texts[name], texts)}
        module = _module(name, texts[name], children, library, period_ps)
        done += 1
        if progress:
            progress(done, len(names))
        return module

    workers = min(_MOST_AT_ONCE, toolchain.jobs())
    # The longest text takes longest: it comes first, so that it does not run alone at the end.
    order = sorted(names, key=lambda name: -len(texts[name]))
    with ThreadPoolExecutor(workers) as pool:
        modules = dict(zip(order, pool.map(mapped, order)))
    return {name: modules[name] for name in names}


def _instantiated(text, names):
    return sorted(set(re.findall(r"^\s+(\w+) \\?\S+ \($", text, re.M)) & set(names))


def _stub(text):
    """The first module of a Verilog text without its contents."""
    header = re.search(r"^module .*?\);$", text, re.M | re.S)[0]
    body = text[text.index(header) + len(header):]
    ports = re.findall(r"^  (?:input|output) .*?;$", body[:body.index("\nendmodule")], re.M)
    return "\n".join([header, *ports, "endmodule", ""])


def _module(name, text, children, library, period_ps):
    stubs = "".join(_stub(child) for child in children.values())
    constraints = f"set_driving_cell {library.driver}\nset_load {_LOAD_FF}\n"
    key = cache.content_key(text=text, stubs=stubs, library=library.checksum, yosys=VERSION, script=_SCRIPT,
                            constraints=constraints, period_ps=period_ps)

    def make(build):
        for file, content in ((f"{name}.v", text), (_STUBS, stubs), ("constraints", constraints)):
            (build.folder / file).write_text(content)
        run_script(build, _SCRIPT.format(name=name, source=f"{name}.v", stubs=_STUBS, liberty=library.path,
                                         period=period_ps))
        cache.keep_only(build.folder, *_KEPT)

    files = cache.contents("netlist", key, make, f"the netlist of {name}")
    gates, cells = (json.loads(files[file])["modules"][f"\\{name}"] for file in ("gates.json", "cells.json"))
    counted = cells["num_cells_by_type"]
    delays = re.findall(r"Delay = *([\d.]+) ps", files["abc.log"])
    return MappedModule(
        name, files["netlist.v"], sum(count for cell, count in counted.items() if cell not in children),
        sum(count for cell, count in gates["num_cells_by_type"].items() if _REGISTER.match(cell)),
        cells.get("area", 0.0), float(delays[-1]) if delays else None,
        {child: counted[child] for child in children if child in counted})
