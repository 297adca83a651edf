"""The longest path of a mapped module: by OpenSTA where it is installed, else by ABC."""

import functools
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from .errors import CostError

__all__ = ["longest_path_ps", "timer"]

_PERIOD_NS = 100  # longer than any path: the slack then tells the path's length


@functools.cache
def timer():
    """Name of the timer in use: ``OpenSTA`` with its version, or ``abc``."""
    if not shutil.which("sta"):
        return "abc"
    version = subprocess.run(["sta", "-version"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return f"OpenSTA {version.stdout.split()[0]}"


def longest_path_ps(module, library):
    """Longest path between registers and ports of a :class:`~area.synthesis.MappedModule`, in ps; None without one.

    OpenSTA counts the set-up of the registers, ABC does not and reads 5 to 10 % lower. Neither knows wires.
    """
    if timer() == "abc":
        return module.abc_delay_ps
    with tempfile.TemporaryDirectory() as folder:
        liberty = Path(folder) / "cells.lib"
        # Version 2 would add a fan-out's typical wire, version 3 and ABC do not.
        liberty.write_text(re.sub(r"^\s*default_wire_load\w*\s*:.*$", "", library.path.read_text(), flags=re.M))
        script, netlist = Path(folder) / "time.tcl", Path(folder) / "netlist.v"
        netlist.write_text(module.netlist)
        clocked = re.search(r"^  input clk;", module.netlist, re.M)
        script.write_text("\n".join([
            f"read_liberty {liberty}", f"read_verilog {netlist}", f"link_design {module.name}",
            f"create_clock -name clk -period {_PERIOD_NS}" + (" [get_ports clk]" if clocked else ""),
            "set_input_delay 0 -clock clk [all_inputs]", "set_output_delay 0 -clock clk [all_outputs]",
            f"set_driving_cell -lib_cell {library.driver} [all_inputs]",
            "set_load 0.005 [all_outputs]",
            "report_worst_slack -digits 4", "exit", ""]))
        ran = subprocess.run(["sta", "-no_splash", "-exit", script], capture_output=True, text=True,
                             stdin=subprocess.DEVNULL)
    slack = re.search(r"worst slack (\S+)", ran.stdout)
    if slack is None or ran.returncode:
        raise CostError(f"OpenSTA gave no slack for {module.name}: {(ran.stdout + ran.stderr)[-500:]}")
    return None if slack[1] == "INF" else 1000 * (_PERIOD_NS - float(slack[1]))
