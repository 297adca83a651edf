"""Small memories that reset clears: registers and semaphores."""

from amaranth import Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["RegisterFile"]


class RegisterFile(wiring.Component):
    """``depth`` words of ``width`` bits, zero after reset, that can be read at several places at once.

    Latency: a read belongs to its address in the same cycle and gives what was written before it. Throughput: every
    read and one write a cycle.

    Parameters
    ----------
    width, depth, reads : int

    Members
    -------
    read : reads x {address : In, data : Out(width)}
    write_enable, write_address, write_data : In
    """

    def __init__(self, width, depth, reads):
        self._width, self._depth = width, depth
        address_bits = (depth - 1).bit_length()
        read = wiring.Signature({"address": Out(address_bits), "data": In(width)})
        super().__init__({"read": In(read).array(reads), "write_enable": In(1), "write_address": In(address_bits),
                          "write_data": In(width)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.words = words = memory.Memory(shape=self._width, depth=self._depth, init=[])
        # A memory cannot be cleared: a word that was not written since reset is zero.
        written = Signal(self._depth)
        write = words.write_port()
        m.d.comb += [write.en.eq(self.write_enable), write.addr.eq(self.write_address), write.data.eq(self.write_data)]
        with m.If(self.write_enable):
            m.d.sync += written.bit_select(self.write_address, 1).eq(1)
        for read in self.read:
            port = words.read_port(domain="comb")
            m.d.comb += [port.addr.eq(read.address),
                         read.data.eq(Mux(written.bit_select(read.address, 1), port.data, 0))]
        return m
