"""The registers of ``spec.registers``: those that hold what the host wrote, and the way to all others."""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from spec.isa import UPDATES
from spec.registers import IDENTITY, REGISTER_MAP, WINDOW_BITS, find_register

from .host_port import register_bus
from .layouts import update_layout

__all__ = ["HostRegisters"]

_BITS = 32
_SEMAPHORES = {"semaphore": "=", "semaphore_add": "+=", "semaphore_subtract": "-="}
_INTERRUPT = ("interrupt_status", "interrupt_enable")


def _constants(core):
    return {"identity": IDENTITY, "rows": core.rows, "cols": core.cols, "sbuf_bytes": core.sbuf_bytes,
            "psum_banks": core.psum_banks, "dma_engines": core.dma_engines}


class HostRegisters(wiring.Component):
    """Decodes the register window. Its members follow from the map: a register that is read is an input of that name, one
    that is written an output, with ``<name>_written`` high for the cycle in which a new value is there first; both are arrays
    where there are several. What a command register was written with is there in that cycle only, and shared by all of a
    row. Constants and the interrupt are made here, and semaphores are reached through a port.

    Latency: none, but for a write to a semaphore, which waits its turn. Throughput: an access a cycle.

    Parameters
    ----------
    core : spec.config.CoreConfig

    Members
    -------
    bus : In(register_bus)
    event : In
        A bit for each field of ``interrupt_status``: it has happened.
    interrupt : Out(1)
    semaphore_number : Out(8), semaphore_value : In(16)
    update : Out(stream of update_layout)
    """

    module_name = "onc_host_registers"

    def __init__(self, core):
        self._core = core
        self._plain = [register for register in REGISTER_MAP
                       if register.name not in {*_constants(core), *_SEMAPHORES, *_INTERRUPT}]
        members = {"bus": In(register_bus()), "event": In(len(find_register("interrupt_status").fields)), "interrupt": Out(1),
                   "semaphore_number": Out(8), "semaphore_value": In(16), "update": Out(stream.Signature(update_layout))}
        for register in self._plain:
            def several(member, count=register.count):
                return member.array(count) if count > 1 else member
            if register.access == "r":
                members[register.name] = several(In(_BITS))
            else:
                members[register.name] = Out(_BITS) if register.access == "w" else several(Out(_BITS))
                members[f"{register.name}_written"] = several(Out(1))
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        bus = self.bus
        is_semaphore, plain_write = Signal(), Signal()
        m.d.comb += [is_semaphore.eq(bus.address >= find_register("semaphore").offset),
                     plain_write.eq(bus.write & ~is_semaphore), bus.ready.eq((bus.read | bus.write) & ~is_semaphore)]
        for register in self._plain:
            if register.access == "rw":
                m.d.sync += [self._one(f"{register.name}_written", index, register.count).eq(0)
                             for index in range(register.count)]
        with m.Switch(bus.address):
            for name, value in _constants(self._core).items():
                with m.Case(find_register(name).offset):
                    m.d.comb += bus.value.eq(value)
            for register in self._plain:
                for index in range(register.count):
                    with m.Case(register.address(index)):
                        self._register(m, register, index, plain_write)
            status, enable, cleared = self._interrupt(m, plain_write)
        m.d.sync += status.eq(status & ~cleared | self.event)
        m.d.comb += self.interrupt.eq((status & enable) != 0)
        self._semaphores(m, is_semaphore)
        return m

    def _one(self, name, index, count):
        member = getattr(self, name)
        return member[index] if count > 1 else member

    def _register(self, m, register, index, write):
        member = self._one(register.name, 0 if register.access == "w" else index, 1 if register.access == "w" else register.count)
        if register.access == "r":
            m.d.comb += self.bus.value.eq(member)
            return
        written = self._one(f"{register.name}_written", index, register.count)
        if register.access == "w":
            m.d.comb += [member.eq(self.bus.data), written.eq(write)]
        else:
            m.d.comb += self.bus.value.eq(member)
            m.d.sync += written.eq(write)
            with m.If(write):
                m.d.sync += member.eq(self.bus.data)

    def _interrupt(self, m, write):
        status, enable = Signal.like(self.event), Signal.like(self.event)
        cleared = Signal.like(self.event)
        with m.Case(find_register("interrupt_status").offset):
            m.d.comb += [self.bus.value.eq(status), cleared.eq(Mux(write, self.bus.data, 0))]
        with m.Case(find_register("interrupt_enable").offset):
            m.d.comb += self.bus.value.eq(enable)
            with m.If(write):
                m.d.sync += enable.eq(self.bus.data)
        return status, enable, cleared

    def _semaphores(self, m, is_semaphore):
        bus, offset = self.bus, find_register("semaphore").offset
        first = {name: find_register(name).offset - offset >> 10 for name in _SEMAPHORES}
        kind = Signal(range((1 << WINDOW_BITS) >> 10))
        m.d.comb += [kind.eq((bus.address - offset) >> 10), self.semaphore_number.eq(bus.address[2:]),
                     self.update.payload.semaphore.eq(self.semaphore_number), self.update.payload.value.eq(bus.data)]
        known = Signal()
        for name, symbol in _SEMAPHORES.items():
            with m.If(kind == first[name]):
                m.d.comb += [known.eq(1), self.update.payload.kind.eq(UPDATES.index(symbol))]
        with m.If(is_semaphore):
            m.d.comb += [self.update.valid.eq(bus.write & known),
                         bus.ready.eq(Mux(bus.write & known, self.update.ready, bus.read | bus.write))]
            with m.If(kind == first["semaphore"]):
                m.d.comb += bus.value.eq(self.semaphore_value)
