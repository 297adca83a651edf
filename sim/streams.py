"""A run of streams through a model: what goes in, what came out, and how far it is."""

import ctypes
import hashlib

import numpy as np

from sim import harness, rows
from sim.errors import OutOfCycles, StreamRuleBroken
from sim.pace import paced

__all__ = ["StreamRun"]

_BROKEN = {harness.VALID_DROPPED: "valid dropped before ready", harness.PAYLOAD_CHANGED: "payload changed before ready"}


class StreamRun:
    """What ``Model.streams`` started: finished, or to be resumed.

    Members
    -------
    finished : bool
        Whether every stream is through.
    start : int
        Model cycle in which the run began.
    cycles : int
        Cycles that the run took so far.
    """

    def __init__(self, model, inputs, outputs, stall, seed):
        given = {name: rows.pack(f"Stream {name}", _payload_width(model, name, "input"), payloads)
                 for name, payloads in inputs.items()}
        taken = {name: rows.empty(_payload_width(model, name, "output"), count) for name, count in outputs.items()}
        self._model = model
        self._seed = seed
        self._rows = given | taken
        self._held = {name: np.zeros(16 + rows.stride(array), np.uint8) for name, array in taken.items()}
        stall = _stall_rates(stall, self._rows)
        self._inputs = (harness.Stream * len(given))(*(self._state(name, stall[name]) for name in given))
        self._outputs = (harness.Stream * len(taken))(*(self._state(name, stall[name]) for name in taken))
        self._states = dict(zip(self._rows, [*self._inputs, *self._outputs]))
        self.start = model.cycle
        self.cycles = 0
        self.finished = False

    @property
    def outputs(self):
        """Payloads collected so far, by stream; ``run["o"]`` is short for ``run.outputs["o"]``."""
        return {name: self[name] for name in self._held}

    def __getitem__(self, stream):
        return self._rows[stream][:self._states[stream].done] if stream in self._held else self._missing(stream)

    @property
    def transfers(self):
        """How many payloads went through so far, by stream."""
        return {name: state.done for name, state in self._states.items()}

    @property
    def first(self):
        """Model cycle of the first transfer, by stream; streams without one are left out."""
        return {name: state.first for name, state in self._states.items() if state.done}

    @property
    def last(self):
        """Model cycle of the last transfer so far, by stream; streams without one are left out."""
        return {name: state.last for name, state in self._states.items() if state.done}

    def resume(self, max_cycles, *, partial=False, progress=None):
        """Go on for up to ``max_cycles`` more cycles; arguments, result and errors are those of ``Model.streams``."""
        model = self._model
        if model._run is not self:
            raise ValueError("This run is over: it finished, or the model was reset")
        broken = ctypes.c_uint64()
        outcome = harness.OUT_OF_CYCLES
        for begin, end in paced(max_cycles):
            outcome = model._code.onc_streams(model._model, self._inputs, len(self._inputs), self._outputs,
                                              len(self._outputs), end - begin, broken)
            model._check_bus(outcome)
            self.cycles = model.cycle - self.start
            if progress:
                progress(sum(state.done for state in self._states.values()),
                         sum(state.count for state in self._states.values()))
            if outcome != harness.OUT_OF_CYCLES:
                break
        model._settled = outcome not in _BROKEN
        if outcome in _BROKEN:
            raise StreamRuleBroken(f"Output stream {list(self._held)[broken.value]} of {model.emission.top} broke "
                                   f"a rule in cycle {model.cycle}: {_BROKEN[outcome]} (seed {self._seed})")
        if outcome == harness.FINISHED:
            self.finished = True
            model._run = None
        elif not partial:
            raise OutOfCycles(f"{model.emission.top} did not finish in {self.cycles} cycles (seed {self._seed}): "
                              + self.standing())
        return self

    def standing(self):
        """How far each stream is and what the unfinished ones wait for, in words."""
        words = []
        for name, state in self._states.items():
            verb, wants = ("collected", "valid") if name in self._held else ("sent", "ready")
            word = f"{name} {verb} {state.done} of {state.count}"
            if state.done < state.count:
                word += f", waiting for {wants}" if verb == "collected" or state.waiting else ", not offering"
                word += f" since cycle {state.last}" if state.done else ""
            words.append(word)
        return "; ".join(words)

    def _state(self, name, stall):
        array = self._rows[name]
        width, places = _payload_width(self._model, name), self._model._places
        return harness.Stream(
            payload=places.get(f"{name}__payload"), valid=places[f"{name}__valid"], ready=places[f"{name}__ready"],
            rows=array.ctypes.data, held=self._held[name].ctypes.data if name in self._held else None,
            bytes=rows.stride(array) if width else 0, top_mask=_top_mask(width, rows.stride(array)), count=len(array),
            stall=int(stall * 2**32),
            # By name, so that a stream's stalls do not depend on which others run.
            random=int.from_bytes(hashlib.sha256(f"{self._seed} {name}".encode()).digest()[:8], "little"))

    def _missing(self, stream):
        raise KeyError(f"This run collects no stream {stream!r}: it collects {', '.join(self._held) or 'none'}")


def _payload_width(model, name, direction=None):
    valid = model.ports.get(f"{name}__valid")
    if valid is None or f"{name}__ready" not in model.ports or direction not in (None, valid.direction):
        streams = [port.name.removesuffix("__valid") for port in model.ports.values()
                   if port.name.endswith("__valid") and direction in (None, port.direction)]
        raise KeyError(f"{model.emission.top} has no {direction} stream {name!r}: "
                       f"it has {', '.join(streams) or 'none'}")
    payload = model.ports.get(f"{name}__payload")
    return payload.width if payload else 0


def _top_mask(width, size):
    rest = width - 8 * (size - 1)  # bits in the last byte
    return (1 << max(0, min(8, rest))) - 1


def _stall_rates(stall, streams):
    rates = stall if isinstance(stall, dict) else dict.fromkeys(streams, stall)
    for name, rate in rates.items():
        if name not in streams:
            raise KeyError(f"Stall names the stream {name!r}: this run has {', '.join(streams)}")
        if not 0 <= rate < 1:
            raise ValueError(f"Stall of stream {name} must be from 0 to below 1, not {rate}")
    return {**dict.fromkeys(streams, 0.0), **rates}
