"""Memories with a parity bit in every lane, and the members by which the buffers report what they find."""

from amaranth import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..emit import place
from .sram import SRAM

__all__ = ["ParitySRAM", "buffer_memory", "connect_partition", "connect_report", "partition_members", "pass_report",
           "report_members"]


class ParitySRAM(wiring.Component):
    """An :class:`hdl.memory.sram.SRAM` whose lanes hold an even parity bit each, checked at every read.

    Latency, throughput: those of the memory. ``error`` comes with ``read_data``, for one cycle.

    Parameters
    ----------
    width, depth, lanes : int
        As of the memory; the parity bits come on top.

    Members
    -------
    read_enable, read_address, read_data, write_enable, write_address, write_data
        As of the memory.
    inject : In(1)
        Write the wrong parity, to see that it is found.
    error : Out(1)
        A lane of the word that was read has not the parity that it was written with.
    """

    def __init__(self, width, depth, lanes=1):
        self._width, self._depth, self._lanes = width, depth, lanes
        bits = (depth - 1).bit_length()
        super().__init__({
            "read_enable": In(1), "read_address": In(bits), "read_data": Out(width), "write_enable": In(lanes),
            "write_address": In(bits), "write_data": In(width), "inject": In(1), "error": Out(1)})

    @property
    def module_name(self):
        return f"onc_parity_sram_{self._depth}x{self._width}w{self._width // self._lanes}"

    def elaborate(self, platform):
        m = Module()
        m.submodules.words = place(platform, words := SRAM(self._width + self._lanes, self._depth, self._lanes))
        lane = self._width // self._lanes
        stored = [words.read_data.word_select(index, lane + 1) for index in range(self._lanes)]
        written = [self.write_data.word_select(index, lane) for index in range(self._lanes)]
        checks = Signal()
        m.d.sync += checks.eq(self.read_enable)
        m.d.comb += [
            words.read_enable.eq(self.read_enable), words.read_address.eq(self.read_address),
            words.write_enable.eq(self.write_enable), words.write_address.eq(self.write_address),
            words.write_data.eq(Cat(Cat(part, part.xor() ^ self.inject) for part in written)),
            self.read_data.eq(Cat(word[:lane] for word in stored)),
            self.error.eq(checks & Cat(word.xor() for word in stored).any()),
        ]
        return m


def buffer_memory(core, width, depth, lanes=1):
    """A buffer's memory, with parity where ``core`` has it."""
    return (ParitySRAM if core.parity else SRAM)(width, depth, lanes)


def partition_members(core):
    """Members of a partition: ``inject``, and ``parity_error`` a cycle after a memory's; none where ``core`` has no parity."""
    return {"inject": In(1), "parity_error": Out(1)} if core.parity else {}


def report_layout(partitions):
    """That a read found a wrong parity, and the first partition of those that did in that cycle."""
    return data.StructLayout({"error": 1, "partition": max(1, (partitions - 1).bit_length())})


def report_members(core, partitions):
    """Members of a buffer: ``inject``, and ``parity``, a :func:`report_layout`; none where ``core`` has no parity."""
    return {"inject": In(1), "parity": Out(report_layout(partitions))} if core.parity else {}


def connect_partition(m, core, partition, memories):
    """Connect a partition's members to those of its memories."""
    if core.parity:
        m.d.comb += [memory.inject.eq(partition.inject) for memory in memories]
        m.d.sync += partition.parity_error.eq(Cat(memory.error for memory in memories).any())


def connect_report(m, core, buffer, partitions):
    """Connect a buffer's members to those of its partitions; the report is a cycle late."""
    if core.parity:
        number = Signal(buffer.parity.partition.shape(), name="faulty_partition")
        for index, partition in reversed(list(enumerate(partitions))):
            m.d.comb += partition.inject.eq(buffer.inject)
            with m.If(partition.parity_error):
                m.d.comb += number.eq(index)
        m.d.sync += buffer.parity.eq(Cat(Cat(partition.parity_error for partition in partitions).any(), number))


def pass_report(m, core, outer, inner):
    """Connect a buffer's members to those of a component around it."""
    if core.parity:
        m.d.comb += [inner.inject.eq(outer.inject), outer.parity.eq(inner.parity)]
