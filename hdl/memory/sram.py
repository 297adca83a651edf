"""The memory macro: one read port, one write port, a module of its own so that a hard macro can take its place."""

from amaranth import Module
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["SRAM"]


class SRAM(wiring.Component):
    """Synchronous memory of ``depth`` words of ``width`` bits, zero at the start; reset leaves its contents.

    Latency: ``read_data`` one cycle after ``read_enable``, then held until the next. A read in the cycle of a write to
    the same word gives the old word. Throughput: one read and one write a cycle.

    Parameters
    ----------
    width, depth : int
    lanes : int
        Equal parts of a word that can be written each by itself.

    Members
    -------
    read_enable, read_address : In
    read_data : Out(width)
    write_enable : In(lanes)
    write_address, write_data : In
    """

    def __init__(self, width, depth, lanes=1):
        if width < 1 or depth < 2:
            raise ValueError(f"A memory needs a width of at least 1 and a depth of at least 2, not {width} and {depth}")
        if lanes < 1 or width % lanes:
            raise ValueError(f"Lanes must divide the width, {width}, not {lanes}")
        self.width, self.depth, self.lanes = width, depth, lanes
        address_bits = (depth - 1).bit_length()
        super().__init__({
            "read_enable": In(1), "read_address": In(address_bits), "read_data": Out(width),
            "write_enable": In(lanes), "write_address": In(address_bits), "write_data": In(width),
        })

    @property
    def module_name(self):
        lane = f"w{self.width // self.lanes}" if self.lanes > 1 else ""
        return f"onc_sram_{self.depth}x{self.width}{lane}"

    def elaborate(self, platform):
        m = Module()
        m.submodules.words = words = memory.Memory(shape=self.width, depth=self.depth, init=[])
        write, read = words.write_port(granularity=self.width // self.lanes), words.read_port()
        m.d.comb += [
            write.en.eq(self.write_enable), write.addr.eq(self.write_address), write.data.eq(self.write_data),
            read.en.eq(self.read_enable), read.addr.eq(self.read_address), self.read_data.eq(read.data),
        ]
        return m
