"""Driving the tensor engine: products become commands and operand streams, results come back as matrices."""

from dataclasses import dataclass, field

import numpy as np

from hdl.emit import emit
from hdl.tensor.engine import TensorEngine, counters_layout
from spec.formats import FORMAT_CODES, FORMATS
from spec.tensor import WEIGHTS_PER_CYCLE, Opcode, check_matmul, check_transpose, contraction_tiles, encode_command

from . import rows
from .model import Model

__all__ = ["Program", "TensorDriver", "EngineRun", "repeated_modules"]

SMALL_ARRAY = 64
"""Elements up to which the processing element itself is compiled once: quick to build, but each call costs time."""


def repeated_modules(core):
    """Modules to compile once each: whole tiles where speed counts, single elements where building would take longer."""
    element = "onc_pe" if core.rows * core.cols <= SMALL_ARRAY else "onc_tile"
    return (element, "onc_row_feeder", "onc_psum_column")


@dataclass
class Program:
    """Commands, operand payloads and where the results belong; products are added one after another.

    Parameters
    ----------
    core : spec.config.CoreConfig
    """

    core: object
    commands: list = field(default_factory=list)
    stationary: list = field(default_factory=list)
    moving: list = field(default_factory=list)
    placements: list = field(default_factory=list)
    shapes: list = field(default_factory=list)
    macs: int = 0
    next_bank: int = 0

    def matmul(self, stationary, moving, form):
        """Add ``result[M, N] = stationary[K, M]^T . moving[K, N]`` of any size; returns the product's number.

        The operands are bit patterns in the unsigned dtype of their format. Tiles go in the order of rule N2.

        Raises
        ------
        SpecError
            The core does not compute such a product.
        """
        core = self.core
        check_matmul(core, form)
        (contraction, outputs), (_, columns) = stationary.shape, moving.shape
        self.shapes.append((outputs, columns))
        self.macs += contraction * outputs * columns
        for m in _slices(outputs, core.cols):
            for n in _slices(columns, core.psum_bank_words):
                bank = self._take_bank()
                for index, k in enumerate(contraction_tiles(core.rows, contraction, form.paired)):
                    self._load(stationary[k, m], form.stationary, form.paired)
                    self._multiply(moving[k, n], form, bank, accumulate=index > 0)
                self._read(bank, n.stop - n.start, m, n)
        return len(self.shapes) - 1

    def transpose(self, stationary, format_name):
        """Add ``result[m, k] = stationary[k, m]``, bits untouched (rule N14); returns the product's number."""
        core = self.core
        check_transpose(core, format_name)
        contraction, outputs = stationary.shape
        self.shapes.append((outputs, contraction))
        for m in _slices(outputs, core.cols):
            for n in _slices(contraction, core.rows):
                bank = self._take_bank()
                self._load(stationary[n, m], format_name, paired=False, transpose=True)
                self._command(opcode=Opcode.MULTIPLY, format=FORMAT_CODES[format_name], count=n.stop - n.start,
                              bank=bank)
                self._read(bank, n.stop - n.start, m, n)
        return len(self.shapes) - 1

    def _take_bank(self):
        bank, self.next_bank = self.next_bank, (self.next_bank + 1) % self.core.psum_banks
        return bank

    def _command(self, **fields):
        self.commands.append(encode_command(self.core, **fields))

    def _load(self, tile, format_name, paired, transpose=False):
        contraction, columns = tile.shape
        self._command(opcode=Opcode.LOAD, format=FORMAT_CODES[format_name], contraction=contraction, columns=columns,
                      paired=paired, transpose=transpose)
        slots = self._slots(tile, format_name, paired)
        beats = -(-columns // WEIGHTS_PER_CYCLE)
        padded = np.zeros((self.core.rows, beats * WEIGHTS_PER_CYCLE, slots.shape[2]), np.uint8)
        padded[:, :columns] = slots
        # Each beat holds, row after row, the row's next two weights.
        beats_first = padded.reshape(self.core.rows, beats, -1).transpose(1, 0, 2)
        self.stationary.append(beats_first.reshape(beats, -1))

    def _multiply(self, tile, form, bank, accumulate):
        columns = tile.shape[1]
        self._command(opcode=Opcode.MULTIPLY, format=FORMAT_CODES[form.moving], count=columns, bank=bank,
                      accumulate=accumulate)
        slots = self._slots(tile, form.moving, form.paired)
        self.moving.append(slots.transpose(1, 0, 2).reshape(columns, -1))

    def _read(self, bank, count, m, n):
        self._command(opcode=Opcode.READ, bank=bank, count=count)
        self.placements.append((len(self.shapes) - 1, m, n))

    def _slots(self, tile, format_name, paired):
        """Bytes [rows, columns, slot bytes] of a tile [K, columns]; rows that hold no element are zero."""
        contraction, columns = tile.shape
        element_bytes = FORMATS[format_name].width // 8
        tile = np.ascontiguousarray(tile, f"<u{element_bytes}")
        slots = np.zeros((self.core.rows, columns, self.core.slot_bits // 8), np.uint8)
        held = -(-contraction // 2) if paired else contraction
        elements = tile.view(np.uint8).reshape(contraction, columns, element_bytes)
        slots[:held, :, :element_bytes] = elements[:held]
        if paired:
            slots[:contraction - held, :, 1:2] = elements[held:]
        return slots


def _slices(length, step):
    return [slice(start, min(start + step, length)) for start in range(0, length, step)]


@dataclass(frozen=True)
class EngineRun:
    """What a program did.

    Parameters
    ----------
    results : list of uint32 array [M, N]
        One for each product, in order.
    cycles : int
        From the first word of weights taken to the last result sent, both included.
    counters : dict of str to int
        The engine's own, over the run; see :func:`hdl.tensor.engine.counters_layout`.
    macs : int
        Multiply-accumulates that the products ask for.
    """

    results: list
    cycles: int
    counters: dict
    macs: int

    @property
    def busy_fraction(self):
        """Share of the cycles from first to last wave in which a wave was issued, counted in hardware."""
        return self.counters["multiplying"] / self.counters["span"]


class TensorDriver:
    """Runs programs on a Verilated tensor engine.

    Parameters
    ----------
    core : spec.config.CoreConfig
    model : sim.model.Model
        Of ``TensorEngine(core)``; built if not given.
    """

    def __init__(self, core, model=None):
        self.core = core
        self.model = model or Model.build(emit(TensorEngine(core)), hierarchical=repeated_modules(core))
        self.model.reset()

    def utilisation(self, run):
        """Multiply-accumulates per processing element and cycle from first weight to last result."""
        return run.macs / (self.core.rows * self.core.cols * run.cycles)

    def run(self, program, *, stall=0.0, seed=0, max_cycles=None, progress=None):
        """Run a program and return an :class:`EngineRun`.

        Raises
        ------
        sim.errors.OutOfCycles
            The program did not end in ``max_cycles``; by default far more than any program needs.
        """
        core, model = self.core, self.model
        inputs = {
            "command": self._payloads("command", program.commands),
            "stationary": self._payloads("stationary", program.stationary),
            "moving": self._payloads("moving", program.moving),
        }
        words = sum(n.stop - n.start for _, _, n in program.placements)
        if max_cycles is None:
            max_cycles = int((20 * (sum(map(len, inputs.values())) + words) + 40 * (core.rows + core.cols + 100))
                             / (1 - stall) ** 2)
        model.poke("counters_clear", 1)
        model.step()
        model.poke("counters_clear", 0)
        outcome = model.streams(inputs, {"results": words}, stall=stall, seed=seed, max_cycles=max_cycles,
                                progress=progress)
        return EngineRun(self._results(program, outcome["results"]),
                         outcome.last["results"] - outcome.first["stationary"] + 1, self._counters(), program.macs)

    def _payloads(self, stream, items):
        width = self.model.ports[f"{stream}__payload"].width
        if stream == "command":
            data = [word.to_bytes(rows.row_bytes(width), "little") for word in items]
            return rows.from_bytes(width, np.frombuffer(b"".join(data), np.uint8).reshape(len(items), -1))
        return rows.from_bytes(width, np.concatenate(items) if items else np.zeros((0, -(-width // 8)), np.uint8))

    def _results(self, program, payloads):
        words = rows.to_bytes(payloads).reshape(-1).view("<u4").reshape(-1, self.core.cols)
        results = [np.zeros(shape, np.uint32) for shape in program.shapes]
        start = 0
        for product, m, n in program.placements:
            end = start + n.stop - n.start
            results[product][m, n] = words[start:end, :m.stop - m.start].T
            start = end
        return results

    def _counters(self):
        value = self.model.peek("counters")
        return {name: value >> field.offset & 0xFFFFFFFF for name, field in counters_layout()}
