"""How often each net of a mapped design changes: from a simulation of its gates."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pywellen

from sim.model import Model

__all__ = ["Activity", "record"]

_RESET_CYCLES = 2


@dataclass(frozen=True)
class Activity:
    """Of each net, by instance and name: ``changes`` in a cycle, and ``high``, the share of cycles in which it is 1.

    Parameters
    ----------
    cycles : int
        How many were observed.
    changes, high : dict of (str, str) to float
        By instance, its path from the top, ``""`` for the top itself; and by net.
    """

    cycles: int
    changes: dict
    high: dict


def record(emission, inputs, cycles):
    """Run a design of cells, see :func:`area.gates.gate_level`, and watch all its nets.

    A net counts once a cycle, by its value before the clock's edge: what it does on the way there, glitches, is not
    seen.

    Parameters
    ----------
    emission : hdl.emit.Emission
        Of a design with a clock.
    inputs : dict of str to numpy.ndarray
        Rows for :meth:`sim.model.Model.vectors`, one a cycle, after two cycles of reset.
    cycles : int

    Returns
    -------
    Activity
    """
    model = Model.build(emission, trace=True)
    model.reset(_RESET_CYCLES)
    with tempfile.TemporaryDirectory() as folder:
        with model.trace_to(Path(folder) / "nets.fst") as path:
            model.vectors(inputs, [], cycles)
        changes, high = {}, {}
        for var in pywellen.Waveform(str(path)).all_vars():
            top, _, rest = var.full_name.partition(".")
            if top != emission.top:
                continue
            instance, _, net = rest.rpartition(".")
            width = var.bitwidth or 1
            bits = _settled(var, cycles, width)
            for bit in range(width):
                name = instance, net if width == 1 else f"{net}[{bit}]"
                changes[name] = np.count_nonzero(bits[1:, bit] != bits[:-1, bit]) / (cycles - 1)
                high[name] = bits[:, bit].mean()
    return Activity(cycles, changes, high)


def _settled(var, cycles, width):
    """Bits of a signal before the rising edge of every cycle, the lowest first: one row a cycle."""
    # A cycle is 1000 units of time, its rising edge in the middle; sim/harness.cpp counts from the model's making.
    before_edge = 1000 * (_RESET_CYCLES + np.arange(cycles)) + 499
    times, values = zip(*var.tv)
    places = np.searchsorted(times, before_edge, side="right") - 1
    taken = np.array([int(value) for value in values], object)[places]
    return np.array([[value >> bit & 1 for bit in range(width)] for value in taken], np.uint8)
