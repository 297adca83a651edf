"""One processing element between plain bit patterns: recoding before it, packing behind it, and the timing around it."""

import functools

import numpy as np
from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.arith.layouts import pack, unpack
from hdl.arith.quarter_product import CHUNK_BITS, PASSES
from hdl.arith.recode import Recode
from hdl.tensor.pe import PE
from spec.formats import FORMAT_CODES
from tests.arith_bench import SideBySide
from tests.pe_cases import CORES

__all__ = ["PEBench", "Element", "element", "slot"]

_MODELS = {"test_pe_nano": ("nano",), "test_pe_others": tuple(core for core in CORES if core != "nano")}

SINGLE_PASS = 0b111
"""Both high halves, and the first pass of its product: how an operand of few bits goes through a core with fp32."""


class PEBench(wiring.Component):
    """A PE whose operands are bit patterns in their own format; ports that a core does not need do nothing.

    ``moving`` and ``weight`` hold the row's first element in the low bits and, in pairs, the second in the next eight.
    ``raw_weight`` and ``raw_sum`` make plain bits of weight and sum, ``integer`` of the moving operand. ``o`` is the sum
    as binary32, ``raw_o`` its bits; ``echo`` says that the moving operand came out on the right a cycle after it went in.
    """

    def __init__(self, core):
        self.core = core
        self.pe = PE(core)
        super().__init__({
            "moving": In(32), "moving_format": In(4), "swap": In(1), "paired": In(1), "integer": In(1), "transpose": In(1),
            "selected": In(1), "step": In(3),
            "weight": In(32), "weight_format": In(4), "raw_weight": In(1), "load": In(1),
            "sum": In(32), "raw_sum": In(1),
            "o": Out(32), "raw_o": Out(32), "echo": Out(1), "swap_o": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.pe = pe = self.pe
        shapes, moving, weight = pe.shapes, pe.moving_i, pe.weight_i

        first, second = self._recoded(m, "moving")
        if first is not None:
            main = moving.operand.numbers.main
            m.d.comb += [main.sign.eq(first.sign), main.exponent.eq(first.exponent)]
            if shapes.has_quarter:
                high = Cat(first.fraction[CHUNK_BITS:], ~shapes.main.is_zero(first))
                m.d.comb += main.chunk.eq(Mux(moving.control.step.a_high, high, first.fraction[:CHUNK_BITS]))
            else:
                m.d.comb += main.fraction.eq(first.fraction)
        if second is not None:
            m.d.comb += moving.operand.numbers.second.eq(second)
        if shapes.has_integer:
            with m.If(self.integer):
                m.d.comb += moving.operand.raw.eq(self.moving)
        for name, _ in moving.control.shape():
            m.d.comb += moving.control[name].eq(getattr(self, name))

        first, second = self._recoded(m, "weight")
        if first is not None:
            m.d.comb += weight.numbers.main.eq(first)
        if second is not None:
            m.d.comb += weight.numbers.second.eq(second)
        if shapes.raw_bits:
            with m.If(self.raw_weight):
                m.d.comb += weight.raw.eq(self.weight)

        m.d.comb += [pe.load.eq(self.load), self.o.eq(pack(pe.sum_o)), self.raw_o.eq(pe.sum_o.as_value()[:32])]
        with m.If(self.raw_sum):
            m.d.comb += pe.sum_i.as_value().eq(self.sum)
        with m.Else():
            m.d.comb += unpack(pe.sum_i, self.sum)

        went_in = Signal.like(moving)
        m.d.sync += went_in.eq(moving)
        m.d.comb += [self.echo.eq(went_in.as_value() == pe.moving_o.as_value()), self.swap_o.eq(pe.moving_o.control.swap)]
        return m

    def _recoded(self, m, port):
        """The first and second element of ``port`` as numbers; None where the core has no such numbers."""
        shapes, slot, code = self.pe.shapes, getattr(self, port), getattr(self, f"{port}_format")
        first = second = None
        if shapes.main:
            m.submodules[f"recode_{port}"] = recode = Recode(shapes.float_formats, shapes.main)
            m.d.comb += [recode.bits.eq(slot), recode.format.eq(code)]
            first = recode.o
        if shapes.second:
            formats = [name for name in self.core.pair_formats if name != "int8"]
            m.submodules[f"recode_{port}_second"] = recode = Recode(formats, shapes.second)
            m.d.comb += [recode.bits.eq(slot[8:]), recode.format.eq(code)]
            second = recode.o
        return first, second


class Element:
    """Drives one :class:`PEBench`.

    Parameters
    ----------
    block : tests.arith_bench.Block
    """

    outputs = ("o", "raw_o", "echo", "swap_o")

    def __init__(self, block):
        self.block, self.pe = block, block.component.pe

    def multiply(self, matmul, moving, weight, sums):
        """Result of every row; ``matmul`` is a ``spec.tensor.Matmul``, the operands are as the ports hold them."""
        integer = matmul.is_integer
        outputs = self.rows(
            {"moving": moving, "moving_format": FORMAT_CODES[matmul.moving], "paired": matmul.paired, "integer": integer},
            {"weight": weight, "weight_format": FORMAT_CODES[matmul.stationary], "raw_weight": integer},
            {"sum": sums, "raw_sum": integer}, matmul.passes)
        return outputs["raw_o" if integer else "o"]

    def rows(self, moving, weight, sums, passes=1):
        """Outputs that belong to each row of operands; a row takes ``passes`` cycles.

        Every row has a weight of its own, which is loaded while the row before it computes. Wherever a port does not
        belong to a row, it carries noise.

        Parameters
        ----------
        moving, weight, sums : dict
            Arrays, or one value for all rows, by port: those that go with the moving operand, with the weight, and with
            the running sum.
        """
        rows = max(np.size(values) for ports in (moving, weight, sums) for values in ports.values())
        product_latency, adder_stages = self.pe.shapes.product_latency, self.pe.shapes.adder_stages
        begin = np.arange(rows) * passes + 1  # the moving operand's first cycle; its weight is loaded in the one before
        last = begin + passes - 1
        cycles = rows * passes + 1 + product_latency + adder_stages
        rng = np.random.default_rng(rows)
        driven = {}
        for ports, places in ((moving, None), (weight, begin - 1), (sums, last + product_latency)):
            for port, values in ports.items():
                width = len(getattr(self.block.component, port))
                noise = rng.integers(0, 1 << width, cycles, np.uint32)
                if places is None:
                    noise[1:1 + rows * passes] = np.repeat(np.broadcast_to(values, rows), passes)
                else:
                    noise[places] = values
                driven[port] = noise
        load, swap, step = np.zeros(cycles, bool), np.zeros(cycles, bool), np.full(cycles, SINGLE_PASS)
        load[begin - 1] = swap[begin] = True
        if passes > 1:
            step[1:1 + rows * passes] = np.tile([constant.as_bits() for constant in PASSES], rows)
        read = self.block.cycles(self.outputs, load=load, swap=swap, step=step, **driven)
        assert read["echo"][1:].all(), "a moving operand did not come out after one cycle"
        assert (read["swap_o"][1:] == swap[:-1]).all(), "a swap did not come out after one cycle"
        return {port: values[last + product_latency + adder_stages] for port, values in read.items()}


def slot(first, second):
    """Two 8-bit elements in one row."""
    return first.astype(np.uint32) | second.astype(np.uint32) << np.uint32(8)


@functools.cache
def _blocks(model):
    return SideBySide(model, {core: PEBench(CORES[core]) for core in _MODELS[model]}).blocks()


def element(core):
    """The :class:`Element` of a core of :data:`~tests.pe_cases.CORES`, after reset; several cores share a model."""
    model = next(model for model, cores in _MODELS.items() if core in cores)
    block = _blocks(model)[core]
    block.reset()
    return Element(block)
