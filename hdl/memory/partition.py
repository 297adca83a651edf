"""One partition of the state buffer: banks of SRAM between which successive words alternate."""

from amaranth import Array, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from spec.dma import ENGINE_BYTES

from ..emit import place
from .local_access import WORD_BITS
from .lockstep import word_address_bits
from .parity import buffer_memory, connect_partition, partition_members

__all__ = ["READERS", "WRITERS", "Partition", "read_signature", "write_signature"]

READERS = ("moving", "stationary", "access", "vector")
"""Who reads: the two sides of the tensor engine, the DMA engines, the vector engine."""
WRITERS = ("access", "vector")


def read_signature(core):
    """A read as a partition takes it: no two of one cycle in one bank."""
    return wiring.Signature({"enable": Out(1), "address": Out(word_address_bits(core)), "data": In(WORD_BITS)})


def write_signature(core):
    """A write of the bytes that ``strobe`` names; no two of one cycle in one bank."""
    return wiring.Signature({"address": Out(word_address_bits(core)), "data": Out(WORD_BITS), "strobe": Out(ENGINE_BYTES)})


class Partition(wiring.Component):
    """``sbuf_kib`` KiB in words of 8 bytes, zero at the start; reset leaves its contents.

    Word w is in bank w modulo ``sbuf_banks``. Whoever issues reads, or writes, keeps those of one cycle in different banks.

    Latency: a read's data one cycle later, for one cycle. Throughput: a read a cycle for each of :data:`READERS`, a write a cycle
    for each of :data:`WRITERS`.

    Parameters
    ----------
    core : spec.config.CoreConfig

    Members
    -------
    moving, stationary, access, vector : In(read_signature)
    access_write, vector_write : In(write_signature)
    inject, parity_error
        With parity only; see :mod:`hdl.memory.parity`.
    """

    module_name = "onc_sbuf_partition"

    def __init__(self, core):
        self._core = core
        super().__init__({
            **{name: In(read_signature(core)) for name in READERS},
            **{f"{name}_write": In(write_signature(core)) for name in WRITERS},
            **partition_members(core)})

    def elaborate(self, platform):
        m = Module()
        banks = self._core.sbuf_banks
        bits = banks.bit_length() - 1
        memories = []
        for index in range(banks):
            bank = buffer_memory(self._core, WORD_BITS, self._core.sbuf_bytes // ENGINE_BYTES // banks, ENGINE_BYTES)
            m.submodules[f"bank_{index}"] = place(platform, bank)
            memories.append(bank)
            m.d.comb += [
                bank.write_address.eq(self.access_write.address[bits:]), bank.write_data.eq(self.access_write.data),
                bank.read_address.eq(self.access.address[bits:]),
            ]
            for name in WRITERS:
                write = getattr(self, f"{name}_write")
                with m.If((write.strobe != 0) & (write.address[:bits] == index)):
                    m.d.comb += [bank.write_address.eq(write.address[bits:]), bank.write_data.eq(write.data),
                                 bank.write_enable.eq(write.strobe)]
            for name in reversed(READERS):
                read = getattr(self, name)
                with m.If(read.enable & (read.address[:bits] == index)):
                    m.d.comb += [bank.read_enable.eq(1), bank.read_address.eq(read.address[bits:])]
        connect_partition(m, self._core, self, memories)
        words = [bank.read_data for bank in memories]
        for name in READERS:
            read, shown = getattr(self, name), Signal(max(1, bits), name=f"{name}_bank")
            m.d.sync += shown.eq(read.address[:bits])
            m.d.comb += read.data.eq(Array(words)[shown] if banks > 1 else words[0])
        return m
