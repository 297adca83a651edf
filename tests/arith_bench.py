"""Arithmetic blocks side by side in one model, so that their tests share one build, and the comparison with golden."""

import functools

import numpy as np
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out
from amaranth.sim import Simulator

from hdl.arith.add import Add
from hdl.arith.align_add import AlignAdd
from hdl.arith.int_pair_multiply_add import IntPairMultiplyAdd
from hdl.arith.layouts import OperandFormat
from hdl.arith.leading_zeros import leading_zeros
from hdl.arith.multiply import Multiply
from hdl.arith.normalize_round import NormalizeRound
from hdl.arith.recode import Recode
from hdl.emit import emit
from sim.model import Model

__all__ = ["SideBySide", "Block", "AmaranthModel", "RECODES", "assert_same", "chunks", "small_blocks"]

RECODES = {
    "recode_all": (("fp32", "tf32", "bf16", "fp16", "fp8_e5m2", "fp8_e4m3", "fp8_e3m4", "fp8_e4m3fn"), ("fp32",)),
    "recode_small": (("fp16", "fp8_e5m2", "fp8_e4m3", "fp8_e3m4", "fp8_e4m3fn"), ("fp16",)),
    "recode_pair": (("fp8_e5m2", "fp8_e4m3"), ("fp8_e5m2", "fp8_e4m3")),
    "recode_tf32": (("tf32",), ("tf32",)),
}
"""Formats, and formats that the operand is for, of the :class:`Recode` blocks under test."""


class SideBySide(wiring.Component):
    """Independent components in one top; the ports of the component ``x`` are called ``x__<port>``."""

    def __init__(self, module_name, components):
        self.module_name = module_name
        self.components = components
        super().__init__({name: Out(component.signature) for name, component in components.items()})

    def elaborate(self, platform):
        m = Module()
        for name, component in self.components.items():
            m.submodules[name] = component
            wiring.connect(m, component, wiring.flipped(getattr(self, name)))
        return m

    def blocks(self, model=None):
        """A :class:`Block` for each component, by name, all of one model, by default the C++ loop."""
        model = Model.build(emit(self)) if model is None else model
        return {name: Block(model, name, component) for name, component in self.components.items()}


class Block:
    """One component of a :class:`SideBySide` model; its rows go in one a cycle.

    Parameters
    ----------
    model : sim.model.Model or AmaranthModel
    name : str
    component : amaranth.lib.wiring.Component
        Where ``latency`` is not given to a call, it has one.
    """

    def __init__(self, model, name, component):
        self.model, self.component, self._name = model, component, name

    def __call__(self, output="o", latency=None, **inputs):
        """What the port ``output`` shows ``latency`` cycles after each row of ``inputs``, arrays or integers by port."""
        latency = self.component.latency if latency is None else latency
        return self.cycles([output], latency, **inputs)[output][latency:]

    def cycles(self, outputs, extra=0, **inputs):
        """Every cycle's ``outputs`` by port, while the inputs are applied and ``extra`` cycles longer."""
        count = max(len(np.atleast_1d(values)) for values in inputs.values())
        rows = {f"{self._name}__{port}": np.broadcast_to(values, count).copy() for port, values in inputs.items()}
        names = {port: f"{self._name}__{port}" for port in outputs}
        read = self.model.vectors(rows, list(names.values()), count + extra)
        return {port: read[name] for port, name in names.items()}

    def reset(self):
        """Reset the model, all of its components, and take all inputs back to zero."""
        for port in self.model.ports.values():
            if port.direction == "input" and port.name not in ("clk", "rst"):
                self.model.poke(port.name, 0)
        self.model.reset()


class AmaranthModel:
    """A :class:`SideBySide` in Amaranth's own simulator, with the ``vectors`` of ``sim.model.Model``."""

    def __init__(self, top):
        self._top = top

    def vectors(self, inputs, outputs, cycles):
        """As ``sim.model.Model.vectors``, for ports of up to 64 bits; every run starts from reset."""
        ports = {"__".join(path): signal for path, _, signal in self._top.signature.flatten(self._top)}
        taken = {name: np.zeros(cycles, np.uint64) for name in outputs}

        async def drive(ctx):
            for cycle in range(cycles):
                for name, values in inputs.items():
                    ctx.set(ports[name], int(values[min(cycle, len(values) - 1)]))
                for name in outputs:
                    taken[name][cycle] = ctx.get(ports[name])
                await ctx.tick()

        simulator = Simulator(self._top)
        simulator.add_clock(1e-6)
        simulator.add_testbench(drive)
        simulator.run()
        return taken


class CountZeros(wiring.Component):
    """:func:`leading_zeros` as a component."""

    latency = 0

    def __init__(self, width):
        self._width = width
        super().__init__({"i": wiring.In(width), "o": Out((max(2, width) - 1).bit_length())})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.o.eq(leading_zeros(m, self.i, "zeros"))
        return m


@functools.cache
def small_blocks():
    """The blocks that are too small for a model of their own."""
    components = {"add": Add(), "multiply": Multiply(), "multiply_1": Multiply(latency=1),
                  "int_pair": IntPairMultiplyAdd()}
    components |= {name: Recode(formats, OperandFormat(operand)) for name, (formats, operand) in RECODES.items()}
    components |= {"align": AlignAdd(2, 2), "round": NormalizeRound(28)}
    components |= {f"zeros_{width}": CountZeros(width) for width in (1, 2, 3, 8, 11, 16)}
    return SideBySide("test_small_blocks", components).blocks()


def chunks(count, size=200_000):
    """Sizes of at most ``size`` that add up to ``count``, so that long campaigns need no more memory than short ones."""
    return [min(size, count - begin) for begin in range(0, count, size)]


def assert_same(result, expected, **operands):
    """Fail with the first operands whose results differ, and say how many do."""
    result, expected = np.broadcast_arrays(result, expected)
    wrong = np.flatnonzero(result != expected)
    if wrong.size:
        shown = [" ".join(f"{name}={int(np.broadcast_to(values, result.shape)[i]):#x}" for name, values in operands.items())
                 + f" gave {int(result[i]):#x}, not {int(expected[i]):#x}" for i in wrong[:5]]
        raise AssertionError(f"{wrong.size} of {result.size} results are wrong: " + "; ".join(shown))
    assert result.size, "nothing was compared"
