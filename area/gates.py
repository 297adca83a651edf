"""A design with some of its modules as cells of a library, for gate-level simulation and for proofs."""

from dataclasses import replace

from sim import cache

from .sram import is_sram
from .synthesis import synthesise
from .yosys import VERSION, run_script

__all__ = ["cell_models", "gate_level"]

CELLS = "cells.v"


def cell_models(library):
    """Verilog of what each cell of a library computes, as its Liberty file says; without delays.

    Raises
    ------
    sim.cache.BuildError
        Yosys could not read the library.
    """
    def make(build):
        run_script(build, f"read_liberty -ignore_miss_func {library.path}\nwrite_verilog -noattr {CELLS}\n")
        cache.keep_only(build.folder, CELLS)

    key = cache.content_key(library=library.checksum, yosys=VERSION)
    models = cache.contents("cells", key, make, f"models of the cells of {library.name}")[CELLS]
    # What happens inside cells is of no interest in a trace, and would be most of it.
    return f"/* verilator tracing_off */\n{models}\n/* verilator tracing_on */\n"


def gate_level(emission, library, *, names=None, period_ps=1000, progress=None):
    """The design with modules replaced by their netlists, and with models of the cells; runs wherever the design runs.

    Registers lose their initial values: reset it before use.

    Parameters
    ----------
    emission : hdl.emit.Emission
    library : area.library.Library
    names : collection of str
        Modules to replace; by default all but memories.
    period_ps, progress
        As for :func:`area.synthesis.synthesise`.

    Returns
    -------
    hdl.emit.Emission

    Raises
    ------
    KeyError
        The design has no such module.
    sim.cache.BuildError
        Yosys failed; the message names the log file.
    """
    held = [name.removesuffix(".v") for name in emission.files]
    wanted = [name for name in held if not is_sram(name)] if names is None else list(names)
    if missing := set(wanted) - set(held):
        raise KeyError(f"{emission.top} has no module {', '.join(sorted(missing))}: it has {', '.join(held)}")
    modules = synthesise(emission, library, names=wanted, period_ps=period_ps, progress=progress)
    netlists = {f"{name}.v": module.netlist for name, module in modules.items()}
    return replace(emission, files={CELLS: cell_models(library)} | emission.files | netlists)
