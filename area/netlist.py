"""Reads the netlists that synthesis writes: which cell's pin is on which net."""

import re
from dataclasses import dataclass

__all__ = ["Cell", "read_cells"]

_CELL = re.compile(r"^  (\w+) (\w+) \(\n(.*?)^  \);", re.M | re.S)
_PIN = re.compile(r"^    \.(\w+)\((.*?)\),?$", re.M)
_ASSIGN = re.compile(r"^  assign (\w+(?:\[\d+\])?) = (\w+(?:\[\d+\])?);", re.M)


@dataclass(frozen=True)
class Cell:
    """One cell, or one instance of a module: its ``kind``, its ``name``, and the net of each pin."""

    kind: str
    name: str
    pins: dict


def read_cells(netlist):
    """All cells and instances of a module's netlist; nets that are one by assignment have one name."""
    same = dict(_ASSIGN.findall(netlist))

    def net(name):
        while name in same:
            name = same[name]
        return name

    return [Cell(kind, name, {pin: net(wire) for pin, wire in _PIN.findall(pins)})
            for kind, name, pins in _CELL.findall(netlist)]
