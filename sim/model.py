"""A design in a loop of C++, fed with numpy arrays: the fastest way to run one."""

import ctypes
import os
import weakref
from pathlib import Path

import numpy as np

from sim import harness, rows
from sim.errors import BusRuleBroken, OutOfCycles
from sim.pace import paced
from sim.streams import StreamRun

__all__ = ["Model"]


class Model:
    """A design that runs.

    Every cycle the inputs are applied while the clock is low, the design settles, outputs are read, and the clock
    rises. A purely combinational design has no clock; a cycle is then one evaluation.

    All inputs start as zero, registers and memories with their initial values, as after a reset of the real thing
    except for memories, which keep their contents.

    Members
    -------
    emission : hdl.emit.Emission
        The design.
    ports : dict of str to hdl.emit.Port
        Its ports by name.
    memory : sim.memory.Memory or None
        What serves its AXI4 ports.
    """

    @classmethod
    def build(cls, emission, *, hierarchical=(), trace=False):
        """A model of the design, compiled now if the cache does not hold it.

        Parameters
        ----------
        emission : hdl.emit.Emission
            The design.
        hierarchical : sequence of str
            Names of repeated modules, which are then compiled once each instead of once per instance; those that the
            design does not hold are passed over. Large arrays need it.
        trace : bool
            Whether ``trace_to`` is possible; such a model is slower.

        Raises
        ------
        sim.cache.BuildError
            The design does not compile; the message names the log file.
        sim.toolchain.ToolchainError
            A tool is missing.
        """
        return cls(emission, harness.load(harness.build(emission, hierarchical, trace)))

    def __init__(self, emission, code):
        self.emission = emission
        self.ports = {port.name: port for port in emission.ports}
        self.clocked = "clk" in self.ports
        self._code = code
        self._model = code.onc_new()
        self._delete = weakref.finalize(self, code.onc_delete, self._model)
        places = (harness.PortPlace * len(emission.ports))()
        code.onc_ports(self._model, places)
        self._places = {port.name: place.place for port, place in zip(emission.ports, places)}
        self._settled = False
        self._run = None  # the stream run that is not finished
        self.memory = None

    @property
    def cycle(self):
        """Rising clock edges since the model was made; evaluations, where there is no clock."""
        return self._code.onc_cycle(self._model)

    def reset(self, cycles=2):
        """Hold ``rst`` high for some cycles, with every driven ``valid`` and ``ready`` low; ends an unfinished run."""
        self._run = None
        if self.memory:
            self.memory.reset()
        for name, port in self.ports.items():
            if port.direction == "input" and port.width == 1 and name.endswith(("__valid", "__ready")):
                self.poke(name, 0)
        if self.clocked:
            self.poke("rst", 1)
            self.step(cycles)
            self.poke("rst", 0)

    def poke(self, port, value):
        """Set an input port to an integer. It holds until it is set again.

        Raises
        ------
        KeyError, ValueError
            The design has no such input, or the value does not fit it.
        """
        width = self._port(port, "input").width
        value = int(value)
        if not 0 <= value < 1 << width:
            raise ValueError(f"Input {port} of {width} bits must be 0 to {(1 << width) - 1:#x}, not {value:#x}")
        data = value.to_bytes(rows.row_bytes(width), "little")
        ctypes.memmove(self._places[port], data, len(data))
        self._settled = False

    def peek(self, port):
        """Value of any port as an integer, settled, before the next rising edge."""
        width = self._port(port).width
        self._settle()
        return int.from_bytes(ctypes.string_at(self._places[port], rows.row_bytes(width)), "little")

    def step(self, cycles=1):
        """Run some cycles with the inputs as they are."""
        self._refuse_unfinished()
        self._check_bus(self._code.onc_step(self._model, cycles))
        self._settled = True

    def run_until(self, port, limit, progress=None):
        """Run until a port is not zero.

        Returns
        -------
        int
            Cycles that were run; 0 where it was so at once.

        Raises
        ------
        sim.errors.OutOfCycles
            It was zero for ``limit`` cycles.
        """
        self._refuse_unfinished()
        size, begins, outcome = rows.row_bytes(self._port(port).width), self.cycle, harness.OUT_OF_CYCLES
        for begin, end in paced(limit):
            outcome = self._code.onc_run_until(self._model, self._places[port], size, end - begin)
            self._check_bus(outcome)
            if progress:
                progress(self.cycle - begins, limit)
            if outcome == harness.FINISHED:
                break
        self._settled = True
        if outcome != harness.FINISHED:
            raise OutOfCycles(f"{port} of {self.emission.top} was zero for {limit} cycles")
        return self.cycle - begins

    def vectors(self, inputs, outputs, cycles=None, progress=None):
        """Apply one row of every input array in each cycle, and read the outputs in the same cycle.

        Outputs are read after the design has settled and before the rising edge, so a block of latency L shows in row
        i + L what went in with row i.

        Parameters
        ----------
        inputs : dict of str to numpy.ndarray
            By port: unsigned integers, one a cycle, for ports of up to 64 bits; rows of bytes, lowest first, for wider
            ones. Ports that are not named stay as they are.
        outputs : sequence of str
            The ports to read.
        cycles : int
            How many cycles to run, at least the arrays' length, which is also the default; the last row stays applied.
        progress : callable
            Called now and then with the cycles run and the cycles to run.

        Returns
        -------
        dict of str to numpy.ndarray
            By port, in the forms that inputs have.

        Raises
        ------
        KeyError, TypeError, ValueError
            An unknown port, or an array of the wrong kind or length or with values that do not fit.
        """
        self._refuse_unfinished()
        if isinstance(outputs, str):
            raise TypeError(f"Outputs must be a sequence of port names, not the string {outputs!r}")
        if "clk" in inputs:
            raise ValueError("The clock cannot be driven: every row is one of its cycles")
        given = {name: rows.pack(name, self._port(name, "input").width, array) for name, array in inputs.items()}
        lengths = {len(array) for array in given.values()}
        if len(lengths) > 1:
            raise ValueError("Input arrays must be of one length, not "
                             + ", ".join(f"{name} {len(array)}" for name, array in given.items()))
        filled = lengths.pop() if lengths else 0
        cycles = filled if cycles is None else cycles
        if cycles < filled:
            raise ValueError(f"Cycles must be at least the arrays' length {filled}, not {cycles}")
        taken = {name: rows.empty(self._port(name).width, cycles) for name in outputs}
        sources, targets = self._columns(given), self._columns(taken)
        for begin, end in paced(cycles, filled):
            driven = len(sources) if begin < filled else 0
            self._check_bus(self._code.onc_vectors(self._model, sources, driven, targets, len(targets), begin, end))
            if progress:
                progress(end, cycles)
        self._settled = True
        return taken

    def streams(self, inputs, outputs, *, max_cycles, stall=0.0, seed=0, partial=False, progress=None):
        """Send payloads into streams and collect payloads from others until all are through.

        The design's own streams are checked on the way: once ``valid`` is high it must stay, with the same payload,
        until ``ready``. Where the driver's ``valid`` is low the payload is noise.

        Parameters
        ----------
        inputs : dict of str to numpy.ndarray
            Payloads by stream, in the forms of ``vectors``; the stream ``i`` has the ports ``i__payload``, ``i__valid``
            and ``i__ready``. Streams that are not named stay as they are.
        outputs : dict of str to int
            How many payloads to collect, by stream; after the last one ``ready`` stays low.
        max_cycles : int
            After so many cycles an unfinished run is an error, or returned as it is if ``partial``.
        stall : float or dict of str to float
            How often, from 0 to below 1, a new ``valid`` or a ``ready`` is withheld; by stream, or for all.
        seed : int
            Of the stalls and the noise; a run with the same seed is the same.
        partial : bool
            Whether an unfinished run is returned, to be resumed or given up by ``reset``.
        progress : callable
            Called now and then with the payloads through and the payloads there are.

        Returns
        -------
        sim.streams.StreamRun

        Raises
        ------
        sim.errors.StreamRuleBroken
            The design broke a rule; the message names the stream, the cycle and the seed.
        sim.errors.OutOfCycles
            The run did not finish; the message says how far each stream came.
        """
        self._refuse_unfinished()
        self._run = StreamRun(self, inputs, outputs, stall, seed)
        self._settled = False
        return self._run.resume(max_cycles, partial=partial, progress=progress)

    def changes(self, port):
        """Context in which every change of a port is recorded; one port at a time.

        Returns
        -------
        Changes
        """
        return Changes(self, port)

    def trace_to(self, path):
        """Context in which every cycle is written to an FST file; only for a model built with ``trace=True``.

        Returns
        -------
        Trace
        """
        if not hasattr(self._code, "onc_trace_open"):
            raise ValueError("This model cannot write a trace: build it with trace=True")
        return Trace(self, Path(path))

    def _port(self, name, direction=None):
        port = self.ports.get(name)
        if port is None or direction and port.direction != direction:
            allowed = [port.name for port in self.emission.ports if direction in (None, port.direction)]
            raise KeyError(f"{self.emission.top} has no {direction or 'port'} {name!r}: it has {', '.join(allowed)}")
        return port

    def _settle(self):
        if not self._settled:
            self._code.onc_settle(self._model)
            self._settled = True

    def _check_bus(self, outcome):
        if outcome == harness.BUS_RULE_BROKEN:
            self._settled = False
            raise BusRuleBroken(self._code.onc_memory_error(self._model).decode())

    def _refuse_unfinished(self):
        if self._run:
            raise ValueError("A stream run is unfinished and may hold a payload that is not accepted: "
                             "resume it or reset the model first")

    def _columns(self, arrays):
        return (harness.Column * len(arrays))(*(
            harness.Column(self._places[name], array.ctypes.data, rows.stride(array)) for name, array in arrays.items()))


class Changes:
    """What a port did, to be read after the context that recorded it.

    Attributes
    ----------
    cycles : uint64 array
        The first one recorded, and each in which the port was not as in the one before.
    values : list of int
        Of the port, settled, in those cycles.
    end : int
        The cycle behind the last one recorded.
    """

    def __init__(self, model, port):
        self._model, self._bytes = model, rows.row_bytes(model._port(port).width)
        self._place = model._places[port]

    def __enter__(self):
        self._model._code.onc_watch(self._model._model, self._place, self._bytes)
        return self

    def __exit__(self, *error):
        code, model = self._model._code, self._model._model
        count = code.onc_watch_count(model)
        self.cycles, values = np.empty(count, np.uint64), np.empty((count, self._bytes), np.uint8)
        code.onc_watch_end(model, self.cycles.ctypes.data, values.ctypes.data)
        self.values = [int.from_bytes(row, "little") for row in values]
        self.end = self._model.cycle


class Trace:
    """An FST file being written; leave the context to complete it."""

    def __init__(self, model, path):
        self._model = model
        self._path = path

    def __enter__(self):
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._model._code.onc_trace_open(self._model._model, os.fsencode(self._path))
        return self._path

    def __exit__(self, *error):
        self._model._code.onc_trace_close(self._model._model)
