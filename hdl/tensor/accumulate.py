"""The second half of a processing element: the running sum plus a row's term."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..arith.align_add import AlignAdd
from ..arith.layouts import SUM_FRACTION_BITS, connect_term, partial_sum_layout, unrounded_layout
from ..arith.normalize_round import NormalizeRound

__all__ = ["Accumulator"]

RAW_BITS = 32


class Accumulator(wiring.Component):
    """``sum_o = sum_i + term``, one rounding to binary32 (N1); int32 that wraps (N13); or raw bits passed on (N14).

    Latency: 2 cycles from ``sum_i``, which belongs to the term of the next cycle; 1 from ``term``. ``sum_o`` is not
    registered: the row below registers it on entry. Throughput: one a cycle.

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

        views = {}
        if shapes.main:
            m.submodules.align = align = AlignAdd(len(value.product.significand) - 2, SUM_FRACTION_BITS)
            m.d.comb += [align.x.eq(value.product), *connect_term(align.y, running)]
            views["unrounded"] = unrounded_layout(align.window)
        raw, is_raw = self._raw(value, control, running.as_value()[:RAW_BITS])
        if raw is not None:
            views["raw"] = RAW_BITS

        total = Signal(data.UnionLayout(views), reset_less=True)
        if shapes.main:
            m.d.sync += total.unrounded.eq(align.o)
            m.submodules.round = rounding = NormalizeRound(align.window)
            m.d.comb += [rounding.i.eq(total.unrounded), self.sum_o.eq(rounding.o)]
            if raw is not None:
                total_is_raw = Signal(reset_less=True)
                m.d.sync += total_is_raw.eq(is_raw)
                with m.If(is_raw):
                    m.d.sync += total.raw.eq(raw)
                with m.If(total_is_raw):
                    m.d.comb += self.sum_o.as_value()[:RAW_BITS].eq(total.raw)
        else:
            m.d.sync += total.raw.eq(raw)
            m.d.comb += self.sum_o.as_value()[:RAW_BITS].eq(total.raw)
        return m

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
