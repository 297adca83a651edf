"""Binary32 addition."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .align_add import AlignAdd
from .layouts import SUM_FRACTION_BITS, connect_term, pack, partial_sum_layout, unpack
from .normalize_round import NormalizeRound

__all__ = ["Add"]


class Add(wiring.Component):
    """``o = a + b`` in binary32, rounded to nearest even (N3, N6), NaN canonical (N0).

    Latency: 1 cycle. Throughput: one a cycle. The inputs and ``o`` are not registered.

    Members
    -------
    a, b : In(32)
    o : Out(32)
        Binary32 patterns.
    """

    module_name = "onc_add"
    latency = 1
    a: In(32)
    b: In(32)
    o: Out(32)

    @property
    def facts(self):
        """Latency for the manifest."""
        return {"latency_cycles": self.latency}

    def elaborate(self, platform):
        m = Module()
        m.submodules.align = align = AlignAdd(SUM_FRACTION_BITS, SUM_FRACTION_BITS)
        m.submodules.round = rounding = NormalizeRound(align.window)
        for bits, term, name in ((self.a, align.x, "a_unpacked"), (self.b, align.y, "b_unpacked")):
            unpacked = Signal(partial_sum_layout, name=name)
            m.d.comb += [*unpack(unpacked, bits), *connect_term(term, unpacked)]
        exact = Signal.like(align.o, reset_less=True)
        m.d.sync += exact.eq(align.o)
        m.d.comb += [rounding.i.eq(exact), self.o.eq(pack(rounding.o))]
        return m
