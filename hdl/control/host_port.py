"""The host's way in: an AXI4 subordinate in front of the registers."""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from spec.registers import WINDOW_BITS

from ..axi import BURST_FIXED, BURST_WRAP, RESP_OKAY, RESP_SLVERR, axi_signature

__all__ = ["HOST_ID_BITS", "HostPort", "register_bus"]

HOST_ID_BITS = 4
_WORD_SIZE = 2


def register_bus():
    """One access to a register: ``read`` or ``write`` holds until ``ready``, when a read's ``value`` is there."""
    return wiring.Signature({"read": Out(1), "write": Out(1), "address": Out(WINDOW_BITS), "data": Out(32), "value": In(32),
                             "ready": In(1)})


class HostPort(wiring.Component):
    """An AXI4 subordinate of 32 bits: one burst at a time, writes first, types INCR and FIXED.

    A beat that is not a whole word, whether by its size or by its strobes, and a burst of type WRAP, have no effect and are
    answered with SLVERR.

    Latency: 3 cycles from address to data or answer, where the register is ready. Throughput: a beat in 2 cycles.

    Members
    -------
    memory : In(axi_signature)
    bus : Out(register_bus)
    """

    module_name = "onc_host_port"

    def __init__(self):
        super().__init__({"memory": In(axi_signature(WINDOW_BITS, 32, HOST_ID_BITS)), "bus": Out(register_bus())})

    def elaborate(self, platform):
        m = Module()
        memory, bus = self.memory, self.bus
        number, left, fixed, refused = Signal(HOST_ID_BITS), Signal(8), Signal(), Signal()
        response, address = Signal(2), Signal(WINDOW_BITS)
        m.d.comb += [memory.rid.eq(number), memory.bid.eq(number), memory.rlast.eq(left == 0), bus.address.eq(address),
                     bus.data.eq(memory.wdata)]

        def begin(channel, state):
            at, size, burst = (getattr(memory, f"{channel}{name}") for name in ("addr", "size", "burst"))
            m.d.comb += getattr(memory, f"{channel}ready").eq(1)
            m.d.sync += [number.eq(getattr(memory, f"{channel}id")), left.eq(getattr(memory, f"{channel}len")),
                         address.eq(at & -4), fixed.eq(burst == BURST_FIXED), response.eq(RESP_OKAY),
                         refused.eq((size != _WORD_SIZE) | (burst >= BURST_WRAP))]
            m.next = state

        with m.FSM():
            with m.State("idle"):
                with m.If(memory.awvalid):
                    begin("aw", "write")
                with m.Elif(memory.arvalid):
                    begin("ar", "read")
            with m.State("write"):
                allowed = ~refused & memory.wstrb.all()
                m.d.comb += [bus.write.eq(memory.wvalid & allowed), memory.wready.eq(bus.ready | ~allowed)]
                with m.If(memory.wvalid & memory.wready):
                    m.d.sync += address.eq(address + Mux(fixed, 0, 4))
                    with m.If(~allowed):
                        m.d.sync += response.eq(RESP_SLVERR)
                    with m.If(memory.wlast):
                        m.next = "answer"
            with m.State("answer"):
                m.d.comb += [memory.bvalid.eq(1), memory.bresp.eq(response)]
                with m.If(memory.bready):
                    m.next = "idle"
            with m.State("read"):
                m.d.comb += bus.read.eq(~refused)
                with m.If(bus.ready | refused):
                    m.d.sync += [memory.rdata.eq(Mux(refused, 0, bus.value)),
                                 memory.rresp.eq(Mux(refused, RESP_SLVERR, RESP_OKAY))]
                    m.next = "data"
            with m.State("data"):
                m.d.comb += memory.rvalid.eq(1)
                with m.If(memory.rready):
                    m.d.sync += [address.eq(address + Mux(fixed, 0, 4)), left.eq(left - 1)]
                    m.next = "read"
                    with m.If(left == 0):
                        m.next = "idle"
        return m
