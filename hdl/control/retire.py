"""Instructions that were issued and are not done: their updates, made in order."""

from amaranth import Array, Cat, Module, Signal
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from spec.isa import UPDATES_EACH

from .layouts import update_layout

__all__ = ["IN_FLIGHT", "Retire", "Unit", "retire_layout"]

IN_FLIGHT = 8
"""Instructions of a stream that can be under way at once."""


class Unit(enum.Enum, shape=2):
    """What an instruction waits for to be done."""

    NONE = 0
    LOAD = 1
    MULTIPLY = 2
    VECTOR = 3


retire_layout = data.StructLayout({
    "unit": Unit, "notify": 1,
    "updates": data.ArrayLayout(data.StructLayout({"used": 1, "change": update_layout}), UPDATES_EACH)})
"""What remains to be done for an instruction when its unit is done."""


class Retire(wiring.Component):
    """Holds up to :data:`IN_FLIGHT` instructions; makes the updates of the oldest when its unit is done, then notifies.

    Latency: done to update 1 cycle. Throughput: an instruction a cycle, and a cycle more for each update.

    Members
    -------
    i : In(stream of retire_layout)
    load_done, multiply_done, vector_done : In(1)
        A unit is done with its oldest instruction.
    update : Out(stream of update_layout)
    notify : Out(1)
        For one cycle.
    empty : Out(1)
        Nothing is under way.
    semaphore : In(8), pending : Out(1)
        Whether an instruction under way will still change this semaphore.
    """

    module_name = "onc_retire"

    def __init__(self):
        super().__init__({
            "i": In(stream.Signature(retire_layout)), "load_done": In(1), "multiply_done": In(1), "vector_done": In(1),
            "update": Out(stream.Signature(update_layout)), "notify": Out(1), "empty": Out(1),
            "semaphore": In(8), "pending": Out(1)})

    def elaborate(self, platform):
        m = Module()
        entries = Array(Signal(retire_layout, name=f"entry_{index}") for index in range(IN_FLIGHT))
        first, last = Signal(range(IN_FLIGHT)), Signal(range(IN_FLIGHT))
        level = Signal(range(IN_FLIGHT + 1))
        credits = {Unit.LOAD: Signal(range(IN_FLIGHT + 1), name="loads_done"),
                   Unit.MULTIPLY: Signal(range(IN_FLIGHT + 1), name="multiplies_done"),
                   Unit.VECTOR: Signal(range(IN_FLIGHT + 1), name="vectors_done")}
        enters, leaves, done = Signal(), Signal(), Signal()
        oldest = entries[first]
        m.d.comb += [self.i.ready.eq(level != IN_FLIGHT), enters.eq(self.i.valid & self.i.ready), self.empty.eq(level == 0)]
        with m.If(enters):
            m.d.sync += [entries[last].eq(self.i.payload), last.eq(last + 1)]
        m.d.sync += level.eq(level + enters - leaves)

        with m.Switch(oldest.unit):
            for unit, credit in credits.items():
                with m.Case(unit):
                    m.d.comb += done.eq(credit != 0)
            with m.Default():
                m.d.comb += done.eq(1)
        for unit, arrives in ((Unit.LOAD, self.load_done), (Unit.MULTIPLY, self.multiply_done), (Unit.VECTOR, self.vector_done)):
            m.d.sync += credits[unit].eq(credits[unit] + arrives - (leaves & (oldest.unit == unit)))

        with m.If((level != 0) & done):
            # The next update goes out and is crossed off; without one left the instruction goes.
            m.d.comb += leaves.eq(1)
            for index in reversed(range(UPDATES_EACH)):
                with m.If(oldest.updates[index].used):
                    m.d.comb += [leaves.eq(0), self.update.valid.eq(1),
                                 self.update.payload.eq(oldest.updates[index].change)]
            with m.If(~leaves & self.update.ready):
                with m.If(oldest.updates[0].used):
                    m.d.sync += oldest.updates[0].used.eq(0)
                with m.Else():
                    m.d.sync += oldest.updates[1].used.eq(0)
            with m.If(leaves):
                m.d.comb += self.notify.eq(oldest.notify)
                m.d.sync += first.eq(first + 1)
        with m.If(leaves):
            for index in range(IN_FLIGHT):
                with m.If(first == index):
                    m.d.sync += Cat(update.used for update in entries[index].updates).eq(0)
        m.d.comb += self.pending.eq(Cat(
            update.used & (update.change.semaphore == self.semaphore) for entry in entries for update in entry.updates).any())
        return m
