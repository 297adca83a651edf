"""Small designs for the tests of ``sim``, right and wrong ones."""

from amaranth import Module, Signal
from amaranth.lib import fifo, stream, wiring
from amaranth.lib.wiring import In, Out


class Adder(wiring.Component):
    """``total`` is ``a + b``, a cycle later; ``inverse`` is the wide port ``wide`` inverted, as late."""

    module_name = "sim_adder"

    def __init__(self):
        super().__init__({"a": In(16), "b": In(16), "wide": In(100), "the__total": Out(17), "inverse": Out(100)})

    def elaborate(self, platform):
        m = Module()
        m.d.sync += [self.the__total.eq(self.a + self.b), self.inverse.eq(~self.wide)]
        return m


class Xor(wiring.Component):
    """A purely combinational exclusive or: no clock, no reset."""

    module_name = "sim_xor"

    def __init__(self):
        super().__init__({"a": In(8), "b": In(8), "y": Out(8)})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.y.eq(self.a ^ self.b)
        return m


class Doubler(wiring.Component):
    """A stream doubled, through a FIFO."""

    module_name = "sim_doubler"

    def __init__(self):
        super().__init__({"i": In(stream.Signature(16)), "o": Out(stream.Signature(17))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = queue = fifo.SyncFIFOBuffered(width=17, depth=4)
        m.d.comb += [
            queue.w_data.eq(self.i.payload << 1), queue.w_en.eq(self.i.valid), self.i.ready.eq(queue.w_rdy),
            self.o.payload.eq(queue.r_data), self.o.valid.eq(queue.r_rdy), queue.r_en.eq(self.o.ready),
        ]
        return m


class Rogue(wiring.Component):
    """A stream doubled without a register, or misbehaving as the port ``fault`` says, for whoever must notice.

    ``WRONG`` forgets the top bit, ``DROPS`` takes ``valid`` back and ``CHANGES`` alters the payload after it waited for
    three cycles, ``STOPS`` accepts three payloads and then no more, ``PEEKS`` takes the payload of the cycle before.
    """

    NONE, WRONG, DROPS, CHANGES, STOPS, PEEKS = range(6)
    module_name = "sim_rogue"

    def __init__(self):
        super().__init__({"i": In(stream.Signature(16)), "o": Out(stream.Signature(17)), "fault": In(3)})

    def elaborate(self, platform):
        m = Module()
        waited, taken, early = Signal(2), Signal(2), Signal(16)
        late = waited == 3
        transfer = self.i.valid & self.i.ready
        m.d.sync += [early.eq(self.i.payload), waited.eq(waited + (self.o.valid & ~self.o.ready & ~late)),
                     taken.eq(taken + (transfer & (taken != 3)))]
        m.d.comb += [self.o.payload.eq(self.i.payload << 1), self.o.valid.eq(self.i.valid),
                     self.i.ready.eq(self.o.ready)]
        with m.Switch(self.fault):
            with m.Case(self.WRONG):
                m.d.comb += self.o.payload.eq((self.i.payload << 1)[:16])
            with m.Case(self.DROPS):
                m.d.comb += self.o.valid.eq(self.i.valid & ~late)
            with m.Case(self.CHANGES):
                m.d.comb += self.o.payload.eq((self.i.payload << 1) ^ late)
            with m.Case(self.STOPS):
                m.d.comb += [self.i.ready.eq(taken != 3), self.o.valid.eq(0)]
            with m.Case(self.PEEKS):
                m.d.comb += self.o.payload.eq(early << 1)
        return m
