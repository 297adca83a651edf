"""The second half of a processing element: the running sum plus a row's term."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..arith.add_aligned import AddAligned
from ..arith.align import Align
from ..arith.layouts import SUM_FRACTION_BITS, connect_fields, connect_term, partial_sum_layout
from ..arith.magnitude import Magnitude
from ..arith.shift_round import ShiftRound

__all__ = ["Accumulator"]

RAW_BITS = 32


class Accumulator(wiring.Component):
    """``sum_o = sum_i + term``, one rounding to binary32 (N1); int32 that wraps (N13); or raw bits passed on (N14).

    Latency: ``shapes.adder_stages`` cycles from ``sum_i``, which belongs to the term of the next cycle. ``sum_o`` is not
    registered: the row below registers it on entry. Throughput: one a cycle. With two stages
    the first aligns and adds, the second normalises and rounds; with three the second adds and counts zeros.

    Parameters
    ----------
    shapes : OperandShapes

    Members
    -------
    term : In(shapes.term)
    sum_i : In(partial_sum_layout)
    sum_o : Out(partial_sum_layout)
    """

    def __init__(self, shapes):
        self._shapes = shapes
        super().__init__({"term": In(shapes.term), "sum_i": In(partial_sum_layout), "sum_o": Out(partial_sum_layout)})

    def elaborate(self, platform):
        m = Module()
        shapes, value, control = self._shapes, self.term.value, self.term.control

        running = Signal(partial_sum_layout, reset_less=True)
        m.d.sync += running.eq(self.sum_i)

        number, (raw, is_raw) = None, self._raw(value, control, running.as_value()[:RAW_BITS])
        stages = [[]] * shapes.adder_stages
        if shapes.main:
            m.submodules.align = align = Align(len(value.product.significand) - 2, SUM_FRACTION_BITS)
            m.submodules.add = add = AddAligned(align.window, is_fast=shapes.adder_stages == 3)
            m.submodules.magnitude = magnitude = Magnitude(align.window)
            m.submodules.round = rounding = ShiftRound(align.window)
            m.d.comb += [align.x.eq(value.product), *connect_term(align.y, running), self.sum_o.eq(rounding.o)]
            stages = {2: [[align, add], [magnitude, rounding]],
                      3: [[align], [add, magnitude], [rounding]]}[shapes.adder_stages]
        for index, blocks in enumerate(stages):
            if index:
                number, raw, is_raw = self._registered(m, f"stage_{index}", number, raw, is_raw)
            for block in blocks:
                if number is not None:
                    m.d.comb += connect_fields(block.i.signature.members, block.i, number)
                number = block.o
        if raw is not None:
            with m.If(is_raw):
                m.d.comb += self.sum_o.as_value()[:RAW_BITS].eq(raw)
        return m

    @staticmethod
    def _registered(m, name, number, raw, is_raw):
        """A number or raw bits one cycle later, in the same register; None for what is not configured."""
        views = {}
        if number is not None:
            fields = {field: member.shape for field, member in number.signature.members.items()}
            views["number"] = data.StructLayout(fields)
        if raw is not None:
            views["raw"] = RAW_BITS
        register = Signal(data.UnionLayout(views), name=name, reset_less=True)
        if number is None:
            m.d.sync += register.raw.eq(raw)
            return None, register.raw, 1
        m.d.sync += connect_fields(fields, register.number, number)
        if raw is None:
            return register.number, None, 0
        register_is_raw = Signal(name=f"{name}_is_raw", reset_less=True)
        m.d.sync += register_is_raw.eq(is_raw)
        with m.If(is_raw):
            m.d.sync += register.raw.eq(raw)
        return register.number, register.raw, register_is_raw

    def _raw(self, value, control, running):
        """What integers or a transpose make of the running bits, and whether they do; None where neither is configured."""
        shapes, raw, is_raw = self._shapes, None, 0
        if shapes.has_integer:
            raw, is_raw = running + value.integer.as_signed(), control.integer if shapes.main else 1
        if shapes.has_transpose:
            passed = Mux(control.selected, value.raw, running)
            raw = passed if raw is None else Mux(control.transpose, passed, raw)
            is_raw = control.transpose | is_raw
        return raw, is_raw
