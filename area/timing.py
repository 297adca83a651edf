"""The longest path of a mapped design: by OpenSTA where it is installed, else by ABC."""

import functools
import re
import shutil
import subprocess
from collections import defaultdict
from dataclasses import dataclass

from sim import cache

from .errors import CostError
from .macro import TRANSITION_NS, Macro, macro_library

__all__ = ["Timing", "timer", "longest_path"]

_PERIOD_NS = 100  # longer than any path: the slack then tells the path's length
_LOAD_PF = 0.005  # at every output, as in mapping

# What lies inside a module, then each border by itself. A name is read again for each, since not every version can take
# constraints back; slack has different names in different versions.
_SCRIPT = """\
read_liberty macros.lib
read_liberty cells.lib
proc fresh {{}} {{
  read_verilog netlist.v
  link_design {name}
  create_clock -name clk -period {period} {clock}
  create_clock -name border -period {period}
  set_input_transition {transition} [all_inputs]
  set_load {load} [all_outputs]
}}
proc slack {{port}} {{
  set worst inf
  foreach name {{max_rise_slack max_fall_slack slack_max_rise slack_max_fall}} {{
    if {{![catch {{get_property $port $name}} slack] && $slack < $worst}} {{ set worst $slack }}
  }}
  return $worst
}}
proc show {{what ports}} {{
  foreach port $ports {{
    set name [get_property $port full_name]
    if {{$name ne "clk" && [slack $port] < {period} + 1}} {{ puts "$what $name [slack $port]" }}
  }}
}}
fresh
puts "inside"
report_worst_slack -digits 5
fresh
set_input_delay 0 -clock border [all_inputs]
show setup [all_inputs]
set_output_delay 0 -clock border [all_outputs]
puts "whole"
report_worst_slack -digits 5
fresh
set_output_delay 0 -clock border [all_outputs]
show arrival [all_outputs]
fresh
set_input_delay 0 -clock border [all_inputs]
set_output_delay 0 -clock border [all_outputs]
set_false_path -from [get_clocks border] -to [get_clocks clk]
set crossing {{}}
foreach port [all_inputs] {{
  set name [get_property $port full_name]
  if {{$name ne "clk" && [slack $port] < {period} + 1}} {{ dict lappend crossing [lindex [split $name "\\["] 0] $name }}
}}
dict for {{port bits}} $crossing {{
  fresh
  set_input_delay 0 -clock border [get_ports $bits]
  set_output_delay 0 -clock border [all_outputs]
  set_false_path -from [get_clocks clk]
  show "through $port" [all_outputs]
}}
puts "complete"
"""


@dataclass(frozen=True)
class Timing:
    """The longest path of a design.

    Parameters
    ----------
    delay_ps : float or None
        Its length; None without one.
    module : str or None
        The module that holds it, with all that the module places.
    """

    delay_ps: float | None
    module: str | None


@functools.cache
def timer():
    """Name of the timer in use: ``OpenSTA`` with its version, or ``abc``."""
    if not shutil.which("sta"):
        return "abc"
    version = subprocess.run(["sta", "-version"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return f"OpenSTA {version.stdout.split()[0]}"


def longest_path(top, modules, library, sram, progress=None):
    """The longest path between registers, memories and the ports of the top.

    OpenSTA measures each module once, in the surroundings of what it places: placed modules and memories stand there as
    cells with the set-up times, arrival times and delays of their own borders, so a path that crosses borders counts in
    full. It counts the registers' set-up and delay. ABC sees the pieces between borders and registers, without the
    registers' own times, so it reads lower. Neither knows wires.

    Parameters
    ----------
    top : str
    modules : dict of str to area.synthesis.MappedModule
        Leaves first.
    library : area.library.Library
    sram : area.sram.SRAMModel
    progress : callable
        Called with how many modules are done and how many there are.

    Returns
    -------
    Timing

    Raises
    ------
    CostError
        OpenSTA gave no answer.
    """
    if timer() == "abc":
        delays = {name: module.abc_delay_ps for name, module in modules.items()}
        # A macro's access has no other module's logic around it here.
        delays |= {child: sram.access_ps(child) for module in modules.values() for child in module.children
                   if child not in modules}
    else:
        delays = _measured(top, modules, library, sram, progress)
    timed = {name: delay for name, delay in delays.items() if delay is not None}
    module = max(timed, key=timed.get, default=None)
    return Timing(timed.get(module), module)


def _measured(top, modules, library, sram, progress):
    macros, delays = {}, {}
    for name, module in modules.items():
        for child in module.children:
            if child not in macros:
                macros[child] = sram.macro(child)
        measured = _measure(module, [macros[child] for child in sorted(module.children)], library)
        macros[name] = _macro(module, measured)
        delays[name] = measured["whole" if name == top else "inside"]
        if progress:
            progress(len(delays), len(modules))
    return delays


def _measure(module, placed, library):
    """What OpenSTA says of one module: ``inside`` and ``whole`` in ps, and for its borders slack in ns."""
    clocked = "clk" in _ports(module.netlist)
    macros = macro_library(placed)
    script = _SCRIPT.format(name=module.name, period=_PERIOD_NS, transition=TRANSITION_NS, load=_LOAD_PF,
                            clock="[get_ports clk]" if clocked else "")

    def make(build):
        # Version 2 would add a fan-out's typical wire, which version 3 and ABC do not.
        cells = re.sub(r"^\s*default_wire_load\w*\s*:.*$", "", library.path.read_text(errors="replace"), flags=re.M)
        for file, text in (("cells.lib", cells), ("macros.lib", macros), ("netlist.v", module.netlist),
                           ("time.tcl", script)):
            (build.folder / file).write_text(text)
        ran = subprocess.run(["sta", "-no_splash", "-exit", "time.tcl"], cwd=build.folder, text=True,
                             stdin=subprocess.DEVNULL, capture_output=True)
        if ran.stdout.count("worst slack") != 2 or not ran.stdout.endswith("complete\n"):
            said = " ".join((ran.stdout + ran.stderr)[-300:].split())
            raise CostError(f"OpenSTA could not time {module.name}: {said}")
        (build.folder / "slacks").write_text(ran.stdout)
        cache.keep_only(build.folder, "slacks")

    key = cache.content_key(script=script, netlist=module.netlist, macros=macros, library=library.checksum,
                            timer=timer())
    return _read(cache.contents("timing", key, make, f"the timing of {module.name}")["slacks"])


def _read(slacks):
    measured = {"setup": {}, "arrival": {}, "through": defaultdict(float)}
    lines = iter(slacks.splitlines())
    for line in lines:
        match line.split():
            case ["inside" | "whole" as what]:
                slack = float(next(lines).split()[-1])
                measured[what] = None if slack > _PERIOD_NS else 1000 * (_PERIOD_NS - slack)
            case ["setup" | "arrival" as what, bit, slack]:
                measured[what][bit] = _PERIOD_NS - float(slack)
            case ["through", port, bit, slack]:
                measured["through"][port, bit] = _PERIOD_NS - float(slack)
    return measured


def _macro(module, measured):
    ports = _ports(module.netlist)
    return Macro(module.name, ports, "clk" in ports, *(measured[what] for what in ("setup", "arrival", "through")))


def _ports(netlist):
    """Direction and width of the ports of a module, by name."""
    found = re.findall(r"^  (input|output) (?:\[(\d+):0\] )?(\S+);", netlist, re.M)
    return {name: (direction, int(high) + 1 if high else None) for direction, high, name in found}
