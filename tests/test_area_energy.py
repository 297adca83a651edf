"""area/energy.py, area/activity.py: energy of a circuit small enough to do by hand, its activity simulated."""

from dataclasses import replace

import numpy as np
import pytest

from area.activity import Activity, record
from area.energy import cell_models, measure_energy
from area.gates import cell_models as verilog_of_cells
from area.library import Library
from area.netlist import read_cells
from area.synthesis import MappedModule
from hdl.emit import Emission, Port

LIBERTY = """\
library (by_hand) {
  voltage_unit : "1V"; leakage_power_unit : "1nW"; capacitive_load_unit (1, ff); nom_voltage : 2.0;
  cell (INV) {
    area : 1;
    leakage_power () { when : "!A"; value : 30; }
    leakage_power () { when : "A"; value : 10; }
    pin (A) { direction : input; capacitance : 2; }
    pin (Y) { direction : output; function : "!A";
      internal_power () { related_pin : "A"; rise_power (scalar) { values ("0.5"); }
                                             fall_power (scalar) { values ("1.5"); } } }
  }
  cell (DFF) {
    area : 4; cell_leakage_power : 40;
    ff ("IQ", "IQN") { next_state : "D"; clocked_on : "CK"; }
    pin (D) { direction : input; capacitance : 3; }
    pin (CK) { direction : input; clock : true; capacitance : 1;
      internal_power () { when : "D & !Q & QN"; rise_power (scalar) { values ("0.6"); }
                                                fall_power (scalar) { values ("0.4"); } }
      internal_power () { when : "Q & QN"; power (scalar) { values ("1000"); } } }
    pin (Q) { direction : output; function : "IQ";
      internal_power () { related_pin : "CK"; power (tables) { index_1 ("0.01, 0.05"); index_2 ("0, 10");
                          values ("3, 13", "5, 15"); } } }
    pin (QN) { direction : output; function : "IQN"; }
  }
}
"""

# Divides the clock by two: n1 and q change in every cycle.
NETLIST = """\
module halver(clk, rst, q);
  input clk;
  input rst;
  output q;
  wire n1, n4;
  INV n2 (
    .A(q),
    .Y(n1)
  );
  DFF n3 (
    .CK(clk),
    .D(n1),
    .Q(q),
    .QN(n4)
  );
endmodule
"""
MODULE = MappedModule("halver", NETLIST, 2, 1, 5.0, None, {})
CYCLES = 1001


@pytest.fixture
def library(tmp_path):
    path = tmp_path / "by_hand.lib"
    path.write_text(LIBERTY)
    return Library.from_path(path)


@pytest.fixture
def activity(library):
    ports = (Port("clk", "input", 1), Port("rst", "input", 1), Port("q", "output", 1))
    emission = Emission("halver", {"cells.v": verilog_of_cells(library), "halver.v": NETLIST}, ports, {})
    return record(emission, {"rst": np.zeros(CYCLES, np.uint8)}, CYCLES)


def test_activity_is_what_the_circuit_does(activity):
    assert activity.changes["", "q"] == activity.changes["", "n1"] == 1
    assert activity.high["", "q"] == pytest.approx(0.5, abs=0.001)
    assert activity.changes["", "rst"] == activity.high["", "rst"] == 0


def test_energy_is_what_a_hand_computes(library, activity):
    energy = measure_energy("halver", {"halver": MODULE}, library, activity)
    # 2 V: q changes 2 fF and n1 3 fF, once a cycle, half of C V^2 each time.
    assert energy.switching_fj == pytest.approx((2 + 3) * 2**2 / 2)
    # The inverter 1 fJ a change on average of its edges; the register, between its slews 0.01 and 0.05 and its loads 0
    # and 10 fF: 4 fJ at 0 fF, 1 fJ more for each fF, and q carries 2 fF.
    assert energy.internal_fj == pytest.approx(1 + 4 + 2)
    # Two edges: 0.5 fJ, for Q and QN are never 1 together, and 1 fF charged.
    assert energy.clock_fj == pytest.approx(2 * (0.5 + 2**2 / 2))
    assert energy.leakage_w == pytest.approx((20 + 40) * 1e-9, rel=1e-3)
    assert energy.power_w(2) == pytest.approx(energy.cycle_fj * 2e-6 + energy.leakage_w)


def test_what_does_not_change_takes_leakage_and_clock_alone(library, activity):
    still = replace(activity, changes=dict.fromkeys(activity.changes, 0.0))
    energy = measure_energy("halver", {"halver": MODULE}, library, still)
    assert energy.switching_fj == energy.internal_fj == 0
    assert energy.clock_fj > 0 and energy.leakage_w > 0


def test_instances_count_one_by_one(library):
    pair = """\
module pair(clk, rst, q);
  halver a (
    .clk(clk),
    .rst(rst),
    .q(n1)
  );
  halver b (
    .clk(clk),
    .rst(rst),
    .q(q)
  );
endmodule
"""
    modules = {"halver": MODULE, "pair": MappedModule("pair", pair, 0, 0, 0.0, None, {"halver": 2})}
    activity = Activity(2, {("b", "q"): 1.0, ("b", "n1"): 1.0},
                        {(instance, net): 0.5 for instance in "ab" for net in ("q", "n1")})
    energy = measure_energy("pair", modules, library, activity)
    assert energy.switching_fj == pytest.approx(10)
    assert energy.clock_fj == pytest.approx(2 * 5)


@pytest.mark.parametrize("when, expected", [("A", 1), ("!A", 3), ("A'", 3), ("(A * 1) + 0", 1)])
def test_conditions_are_read(library, when, expected):
    cell = cell_models(library)["INV"]
    assert cell._weighted([(when, expected), (f"!({when})", 9)], {"A": float(expected == 1)}) == expected


def test_a_condition_that_is_none_is_rejected(library):
    with pytest.raises(ValueError, match="A condition in Liberty"):
        cell_models(library)["INV"]._weighted([("A ? B : C", 1)], {})


def test_assignments_make_nets_one():
    netlist = "  INV n1 (\n    .A(a),\n    .Y(n2)\n  );\n  assign y = n3;\n  assign n3 = n2;\n"
    assert [(cell.kind, cell.name, cell.pins) for cell in read_cells(netlist)] == [("INV", "n1", {"A": "a", "Y": "n2"})]
