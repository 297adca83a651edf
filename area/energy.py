"""Energy of a mapped design from its cells' Liberty tables and from how often its nets change."""

import itertools
import re
from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np

from .liberty import numbers
from .netlist import read_cells

__all__ = ["Energy", "CellModel", "cell_models", "measure_energy"]

SLEW_NS = 0.03
"""Slew that energy tables are read at, of a lightly loaded gate at 45 nm."""

_FF_PER = {"ff": 1.0, "pf": 1000.0}
_WATTS_PER = {"pW": 1e-12, "nW": 1e-9, "uW": 1e-6, "mW": 1e-3}


@dataclass(frozen=True)
class Energy:
    """What a design takes.

    Parameters
    ----------
    switching_fj, internal_fj, clock_fj : float
        In a cycle: charging the cells' input pins; inside cells of logic and registers; at and behind the registers'
        clock pins, whether anything else changes or not.
    leakage_w : float
        In watts, always.
    """

    switching_fj: float
    internal_fj: float
    clock_fj: float
    leakage_w: float

    @property
    def cycle_fj(self):
        """All of a cycle's but leakage."""
        return self.switching_fj + self.internal_fj + self.clock_fj

    def power_w(self, clock_ghz):
        """Power at a clock."""
        return self.cycle_fj * clock_ghz * 1e-6 + self.leakage_w


class CellModel:
    """One cell's energies, from its Liberty group.

    Where a table has conditions (``when``), it counts with the probability that they hold, the cell's pins taken as
    independent of each other; an inverted output is the opposite of its partner.

    Parameters
    ----------
    cell : area.liberty.Group
    ff, volt, watt : float
        What the library's units of capacitance, voltage and leakage are in fF, V and W.
    voltage : float
        Supply.
    """

    def __init__(self, cell, ff, volt, watt, voltage):
        self._cell, self._ff, self._fj, self._watt, self._voltage = cell, ff, ff * volt**2, watt, voltage
        self.pins = {pin.arguments: pin for pin in cell.all("pin")}
        self.outputs = {name for name, pin in self.pins.items() if pin.values.get("direction") == "output"}
        self.clocks = {name for name, pin in self.pins.items() if pin.values.get("clock") == "true"}
        functions = {pin.values.get("function"): name for name, pin in self.pins.items()}
        self._inverted = {functions["IQN"]: functions["IQ"]} if {"IQ", "IQN"} <= set(functions) else {}

    def capacitance_ff(self, pin):
        """Of an input pin."""
        return float(self.pins[pin].values.get("capacitance", 0)) * self._ff

    def leakage_w(self, high):
        """Leakage, given the probability that each pin is 1."""
        states = [(group.values.get("when"), float(group.values["value"])) for group in self._cell.all("leakage_power")]
        value = self._weighted(states, high) if states else float(self._cell.values.get("cell_leakage_power", 0))
        return value * self._watt

    def change_fj(self, pin, load_ff, high):
        """Energy inside the cell when a pin changes once, up or down, with ``load_ff`` at an output."""
        tables = defaultdict(list)
        for group in self.pins[pin].all("internal_power"):
            edges = [_looked_up(table, SLEW_NS, load_ff / self._ff) for kind in ("rise_power", "fall_power", "power")
                     for table in group.all(kind)]
            if edges:
                tables[group.values.get("related_pin")].append((group.values.get("when"), np.mean(edges)))
        # Which input made an output change is not known: each may have.
        return self._fj * np.mean([self._weighted(states, high) for states in tables.values()]) if tables else 0.0

    def switching_fj(self, load_ff):
        """Energy that one change of a net takes from the supply, on average of up and down."""
        return load_ff * self._voltage**2 / 2

    def _weighted(self, states, high):
        """Mean of values by the probabilities of their conditions."""
        weights = [self._probability(when, high) for when, _ in states]
        if not sum(weights):
            weights = [1] * len(states)
        return np.average([value for _, value in states], weights=weights)

    def _probability(self, when, high):
        if when is None:
            return 1.0
        names = sorted(set(re.findall(r"[A-Za-z_]\w*", when)))
        free = sorted({self._inverted.get(name, name) for name in names})
        condition, total = _compiled(when), 0.0
        for bits in itertools.product((0, 1), repeat=len(free)):
            values = dict(zip(free, bits))
            values |= {name: 1 - values[partner] for name, partner in self._inverted.items() if partner in values}
            if eval(condition, {"__builtins__": {}}, values) & 1:
                total += np.prod([high.get(name, 0.5) if value else 1 - high.get(name, 0.5)
                                  for name, value in zip(free, bits)])
        return total


def _compiled(when):
    """A Liberty condition as Python code on 0 and 1."""
    text = re.sub(r"(\w+)\s*'", r"~\1", when.replace("!", "~")).replace("*", "&").replace("+", "|")
    if not re.fullmatch(r"[\w\s()~&|^]*", text):
        raise ValueError(f"A condition in Liberty must be of names, ! & | ^ and parentheses, not {when!r}")
    return compile(text.strip(), "when", "eval")


def _looked_up(table, slew, load):
    """A table's value at a slew and a load, linear between its points, the nearest outside; a scalar as it is."""
    values = np.array(numbers(table.values["values"]))
    axes = [numbers(table.values[axis])[0] for axis in ("index_1", "index_2") if axis in table.values]
    if len(axes) < 2:
        return np.interp(slew, axes[0], values.ravel()) if axes else values.ravel()[0]
    return np.interp(slew, axes[0], [np.interp(load, axes[1], row) for row in values])


def cell_models(library):
    """A :class:`CellModel` for each cell of a library."""
    top = library.group.values
    amount, unit = re.fullmatch(r"\s*([\d.]+)\s*,\s*(\w+)\s*", top["capacitive_load_unit"]).groups()
    leakage = re.fullmatch(r"([\d.]+)(\w+)", top.get("leakage_power_unit", "1nW"))
    volt = re.fullmatch(r"([\d.]+)(m?)V", top.get("voltage_unit", "1V"))
    units = dict(ff=float(amount) * _FF_PER[unit.lower()], volt=float(volt[1]) * (1e-3 if volt[2] else 1),
                 watt=float(leakage[1]) * _WATTS_PER[leakage[2]], voltage=float(top["nom_voltage"]))
    return {name: CellModel(cell, **units) for name, cell in library.cells.items()}


def measure_energy(top, modules, library, activity):
    """Energy of a mapped design; memories are not counted.

    Parameters
    ----------
    top : str
    modules : dict of str to area.synthesis.MappedModule
    library : area.library.Library
    activity : area.activity.Activity
        Of the same netlists.

    Returns
    -------
    Energy
    """
    models = cell_models(library)
    total = Counter()
    _add(total, "", top, {name: read_cells(module.netlist) for name, module in modules.items()}, models, activity)
    return Energy(total["switching"], total["internal"], total["clock"], total["leakage"])


def _add(total, instance, name, cells, models, activity):
    loads = Counter()
    for cell in cells[name]:
        if cell.kind in models:
            for pin, net in cell.pins.items():
                if pin not in models[cell.kind].outputs:
                    loads[net] += models[cell.kind].capacitance_ff(pin)
    for cell in cells[name]:
        if cell.kind in cells:
            _add(total, f"{instance}.{cell.name}".lstrip("."), cell.kind, cells, models, activity)
        elif cell.kind in models:
            _add_cell(total, cell, models[cell.kind], instance, loads, activity)


def _add_cell(total, cell, model, instance, loads, activity):
    high = {pin: activity.high.get((instance, net), float(net == "1'h1")) for pin, net in cell.pins.items()}
    high |= dict.fromkeys(model.clocks, 0.5)
    total["leakage"] += model.leakage_w(high)
    load = max((loads[cell.pins[pin]] for pin in model.outputs if pin in cell.pins), default=0.0)
    for pin, net in cell.pins.items():
        if pin in model.clocks:
            total["clock"] += 2 * (model.change_fj(pin, load, high) + model.switching_fj(model.capacitance_ff(pin)))
            continue
        changes = activity.changes.get((instance, net), 0.0)
        total["internal"] += changes * model.change_fj(pin, loads[net] if pin in model.outputs else load, high)
        if pin not in model.outputs:
            # A net is charged where its load is, whatever drives it.
            total["switching"] += changes * model.switching_fj(model.capacitance_ff(pin))
