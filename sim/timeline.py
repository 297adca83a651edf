"""What a core did, cycle by cycle, as a file that the Perfetto viewer opens: streams, waits, transfers, the tensor engine."""

import contextlib
import json
from functools import lru_cache
from pathlib import Path

import numpy as np

from hdl.core import activity_layout
from spec.assembly import format_instruction
from spec.dma import DESCRIPTOR_BYTES, decode_transfer
from spec.errors import SpecError
from spec.isa import INSTRUCTION_BYTES, STREAMS, decode

__all__ = ["Timeline"]

_ENGINES = ("multiplying", "loading", "vector_busy")
_CYCLES_A_MICROSECOND = 1000  # the trace's unit is a microsecond, and a cycle is drawn as a nanosecond


class Timeline:
    """Context that records a core while it runs, then holds what it did.

    Parameters
    ----------
    driver : sim.core.CoreDriver

    Attributes
    ----------
    spans : list of dict
        ``track``: a stream, ``dma_<number>``, ``multiplying``, ``loading`` or ``vector_busy``; ``name``; ``begin`` and ``end``, in cycles;
        ``text``: the instruction, or what the transfer moves. Spans of one track that overlap lie within each other: a wait
        lies within its instruction.
    begin, end : int
        First cycle that was recorded, and the one behind the last.
    """

    def __init__(self, driver):
        self._driver = driver
        self._layout = activity_layout(driver.core)
        self._changes = driver.model.changes("activity")
        self._program = {}  # instructions by address, None for what is none

    def __enter__(self):
        self._changes.__enter__()
        return self

    def __exit__(self, *error):
        self._changes.__exit__(*error)
        changes = self._changes
        cycles, self.end = changes.cycles.tolist(), changes.end
        self.begin = cycles[0] if cycles else self.end
        columns = {name: [value >> field.offset & ((1 << field.width) - 1) for value in changes.values]
                   for name, field in self._layout}
        self.spans = []
        for stream in STREAMS:
            running, waiting, address = (columns[f"{stream}_{part}"] for part in ("running", "waiting", "address"))
            self._add(stream, cycles, self._places(running, address), self._instruction)
            self._add(stream, cycles, [place if waits and self._waits(place) else None
                                       for waits, place in zip(waiting, address)], self._wait)
        for number in range(self._driver.core.dma_engines):
            active, address = (columns[f"dma_{number}_{part}"] for part in ("active", "descriptor"))
            self._add(f"dma_{number}", cycles, [place if moves else None for moves, place in zip(active, address)],
                      self._transfer)
        for name in _ENGINES:
            self._add(name, cycles, [bit or None for bit in columns[name]], lambda bit, name=name: (name, ""))

    def _add(self, track, cycles, values, describe):
        """A span for each run of one value other than None."""
        describe = lru_cache(maxsize=None)(describe)
        begins, current = self.begin, None
        for cycle, value in [*zip(cycles, values), (self.end, None)]:
            if value != current:
                if current is not None:
                    name, text = describe(current)
                    self.spans.append({"track": track, "name": name, "begin": begins, "end": cycle, "text": text})
                begins, current = cycle, value

    def _places(self, running, address):
        """Where a stream is; at its halt until it has stopped, though its address is already behind it."""
        places, last = [], None
        for runs, place in zip(running, address):
            if last is None or self._decoded(last) is None or self._decoded(last).opcode != "halt":
                last = place
            last = last if runs else None
            places.append(last)
        return places

    def _content(self, address, size):
        return bytes(self._driver.memory[address:address + size])

    def _decoded(self, address):
        if address not in self._program:
            self._program[address] = None
            with contextlib.suppress(SpecError):
                self._program[address] = decode(self._content(address, INSTRUCTION_BYTES))
        return self._program[address]

    def _waits(self, address):
        instruction = self._decoded(address)
        return instruction.waits if instruction else ()

    def _instruction(self, address):
        instruction = self._decoded(address)
        return (instruction.opcode, f"{address:#x}: {format_instruction(instruction)}") if instruction else (
            "illegal", f"{address:#x}")

    def _wait(self, address):
        text = ", ".join(f"s{wait.semaphore}{wait.comparison}{wait.value}" for wait in self._waits(address))
        return f"wait {text}", text

    def _transfer(self, address):
        with contextlib.suppress(SpecError):
            transfer = decode_transfer(self._content(address, DESCRIPTOR_BYTES))
            source, target = transfer.source, transfer.destination
            count = int(np.prod([count for _, count in source.dims]))
            return f"{source.space} to {target.space}", f"descriptor {address:#x}: {count} x {source.format} to {target.format}"
        return "illegal", f"descriptor {address:#x}"

    def write(self, path):
        """Write the trace, in the JSON form that https://ui.perfetto.dev opens; a cycle is a nanosecond there.

        Returns
        -------
        pathlib.Path
        """
        path, core = Path(path), self._driver.core
        tracks = [*STREAMS, *(f"dma_{number}" for number in range(core.dma_engines)), *_ENGINES]
        events = [{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": f"core, {core.rows} x {core.cols}"}}]
        for number, track in enumerate(tracks, 1):
            names = {"thread_name": {"name": track}, "thread_sort_index": {"sort_index": number}}
            events += [{"ph": "M", "pid": 1, "tid": number, "name": name, "args": args} for name, args in names.items()]
        events += [{"ph": "X", "pid": 1, "tid": tracks.index(span["track"]) + 1, "name": span["name"],
                    "ts": (span["begin"] - self.begin) / _CYCLES_A_MICROSECOND,
                    "dur": (span["end"] - span["begin"]) / _CYCLES_A_MICROSECOND, "args": {"what": span["text"]}}
                   for span in self.spans]
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as file:
            json.dump({"displayTimeUnit": "ns", "traceEvents": events}, file)
        return path
