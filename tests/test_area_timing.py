"""area/timing.py, area/macro.py: paths across the borders of modules, against the design timed flat."""

import re
import shutil
import subprocess
from dataclasses import replace

import pytest
from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from area import timing
from area.errors import CostError
from area.estimate import estimate
from area.library import default_library
from area.macro import Macro, macro_library
from area.sram import SRAMModel
from area.synthesis import synthesise
from hdl.emit import emit, place
from hdl.memory.sram import SRAM

needs_opensta = pytest.mark.skipif(shutil.which("sta") is None, reason="OpenSTA is not installed: ABC times paths")


class Adder(wiring.Component):
    """A register, an addition behind it or before it, and from ``through`` to the output no register at all."""

    def __init__(self, before):
        self.before = before
        self.module_name = "adder_first" if before else "adder_last"
        super().__init__({"i": In(16), "through": In(16), "o": Out(16)})

    def elaborate(self, platform):
        m = Module()
        held = Signal(16)
        if self.before:
            m.d.sync += held.eq(self.i + (self.i << 3))
            m.d.comb += self.o.eq(held ^ self.through)
        else:
            m.d.sync += held.eq(self.i)
            m.d.comb += self.o.eq((held + (held << 3)) ^ self.through)
        return m


class Pair(wiring.Component):
    """Both, one after the other: the longest path is two additions, half of it in each."""

    module_name = "pair"

    def __init__(self):
        super().__init__({"i": In(16), "through": In(16), "o": Out(16)})

    def elaborate(self, platform):
        m = Module()
        one, two = Adder(False), Adder(True)
        m.submodules.one, m.submodules.two = place(platform, one), place(platform, two)
        m.d.comb += [one.i.eq(self.i), one.through.eq(self.through), two.i.eq(one.o), two.through.eq(self.i),
                     self.o.eq(two.o)]
        return m


class Remembering(wiring.Component):
    """A memory that is written at the sum of what is read and an input."""

    module_name = "remembering"

    def __init__(self):
        super().__init__({"i": In(8), "o": Out(8)})

    def elaborate(self, platform):
        m = Module()
        words = SRAM(8, 256)
        m.submodules.words = place(platform, words)
        m.d.comb += [
            words.read_enable.eq(1), words.read_address.eq(self.i), self.o.eq(words.read_data),
            words.write_enable.eq(1), words.write_address.eq(words.read_data + self.i), words.write_data.eq(self.i),
        ]
        return m


def whole_by_opensta(folder, emission, modules):
    """Longest path of all modules linked together, without what area.macro makes of them."""
    cells = re.sub(r"^\s*default_wire_load\w*\s*:.*$", "", default_library().path.read_text(), flags=re.M)
    (folder / "units.lib").write_text(macro_library([]))
    (folder / "cells.lib").write_text(cells)
    (folder / "whole.v").write_text("".join(module.netlist for module in modules.values()))
    (folder / "whole.tcl").write_text(
        f"read_liberty units.lib\nread_liberty cells.lib\nread_verilog whole.v\nlink_design {emission.top}\n"
        "create_clock -name clk -period 100 [get_ports clk]\nset_input_transition 0.03 [all_inputs]\n"
        "set_load 0.005 [all_outputs]\nset_input_delay 0 -clock clk [all_inputs]\n"
        "set_output_delay 0 -clock clk [all_outputs]\nreport_worst_slack -digits 5\n")
    ran = subprocess.run(["sta", "-no_splash", "-exit", "whole.tcl"], cwd=folder, capture_output=True, text=True)
    return 1000 * (100 - float(re.search(r"worst slack (\S+)", ran.stdout)[1]))


@needs_opensta
def test_a_path_across_borders_counts_in_full(tmp_path):
    emission, library = emit(Pair()), default_library()
    modules = synthesise(emission, library)
    found = timing.longest_path("pair", modules, library, SRAMModel())
    assert found.module == "pair"
    assert found.delay_ps == pytest.approx(whole_by_opensta(tmp_path, emission, modules), rel=0.04)
    parts = {name: timing.longest_path(name, {name: modules[name]}, library, SRAMModel()).delay_ps
             for name in ("adder_first", "adder_last")}
    assert found.delay_ps > 1.4 * max(parts.values())


@needs_opensta
def test_a_memory_is_part_of_the_path():
    quick, slow = (estimate(Remembering(), default_library(), SRAMModel(access_ns=access)) for access in (0.1, 1.1))
    assert slow.delay_ps - quick.delay_ps == pytest.approx(1250 * (256 * 8 / 8192)**0.25, rel=0.02)
    assert slow.slowest == "remembering"


def test_without_opensta_the_pieces_are_abcs(monkeypatch):
    monkeypatch.setattr(timing, "timer", lambda: "abc")
    modules = synthesise(emit(Pair()), default_library())
    found = timing.longest_path("pair", modules, default_library(), SRAMModel())
    assert found.delay_ps == max(module.abc_delay_ps or 0 for module in modules.values())
    assert found.module in ("adder_first", "adder_last")


def test_without_opensta_a_slow_memory_counts(monkeypatch):
    monkeypatch.setattr(timing, "timer", lambda: "abc")
    modules = synthesise(emit(Remembering()), default_library())
    found = timing.longest_path("remembering", modules, default_library(), SRAMModel(access_ns=5))
    assert found == timing.Timing(SRAMModel(access_ns=5).access_ps("onc_sram_256x8"), "onc_sram_256x8")


@needs_opensta
def test_a_netlist_that_opensta_cannot_read_is_an_error():
    module = synthesise(emit(Adder(True)), default_library())["adder_first"]
    broken = {"adder_first": replace(module, netlist="module other(); endmodule")}
    with pytest.raises(CostError, match="OpenSTA could not time adder_first: "):
        timing.longest_path("adder_first", broken, default_library(), SRAMModel())


def test_a_macro_says_what_it_is():
    ports = {"clk": ("input", None), "i": ("input", 2), "o": ("output", None)}
    text = Macro("block", ports, True, {"i[1]": 0.25}, {"o": 0.5}, {("i", "o"): 0.75}).liberty()
    assert "pin (clk) { direction : input; capacitance : 0.001; clock : true; }" in text
    assert text.count("setup_rising") == 1 and 'values ("0.250000")' in text
    assert text.count("rising_edge") == 1 and 'related_pin : "i[0] i[1]"; timing_type : combinational' in text
