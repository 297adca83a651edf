"""The state buffer: all partitions, and who may read which bank in a cycle."""

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..emit import place
from .crossbar import group_size
from .local_access import LANE_BITS, WORD_BITS, access_port
from .parity import connect_report, report_members
from .partition import Partition, word_address_bits

__all__ = ["StateBuffer", "lockstep_read"]


def lockstep_read(core):
    """A read of one word in every partition: ``enable`` holds until ``ready``, ``data`` is there in the cycle after, the
    first partition's word lowest."""
    return wiring.Signature({"enable": Out(1), "address": Out(word_address_bits(core)), "ready": In(1),
                             "data": In(core.rows * WORD_BITS)})


class StateBuffer(wiring.Component):
    """``rows`` partitions, read in lockstep by the tensor engine and one by one by the DMA engines.

    Where a tensor read and a DMA read want one bank, they take turns; of the tensor engine's two reads ``moving`` goes
    first. Partitions stand in as many groups as there are DMA engines, each with a port, which any engine may use.
    Writes are never held up.

    Latency: a read's data one cycle after it is accepted. Throughput: both tensor reads each cycle where they name
    different banks; a read or a write a cycle and group.

    Parameters
    ----------
    core : spec.config.CoreConfig

    Members
    -------
    moving, stationary : In(lockstep_read)
    groups : dma_engines x In(access_port)
        An access's partition is one of the group's.
    inject, parity
        With parity only; see :mod:`hdl.memory.parity`.
    """

    module_name = "onc_sbuf"

    def __init__(self, core):
        self._core = core
        super().__init__({"moving": In(lockstep_read(core)), "stationary": In(lockstep_read(core)),
                          "groups": In(access_port()).array(core.dma_engines), **report_members(core, core.rows)})

    def elaborate(self, platform):
        m = Module()
        core, groups = self._core, self.groups
        bits = core.sbuf_banks.bit_length() - 1
        moving, stationary = self.moving, self.stationary
        reads = [Signal(name=f"reads_{index}") for index in range(len(groups))]
        m.d.comb += [read.eq(group.valid & ~group.access.write) for read, group in zip(reads, groups)]

        # Every other cycle the DMA engines' banks are closed to the tensor engine.
        turn, closed = Signal(), Signal(core.sbuf_banks)
        m.d.sync += turn.eq(~turn)
        bank_of = {index: group.access.offset[LANE_BITS:LANE_BITS + bits] for index, group in enumerate(groups)}
        m.d.comb += closed.eq(Cat(turn & Cat(read & (bank_of[index] == bank) for index, read in enumerate(reads)).any()
                                  for bank in range(core.sbuf_banks)))
        clash = moving.enable & (moving.address[:bits] == stationary.address[:bits])
        m.d.comb += [moving.ready.eq(~closed.bit_select(moving.address[:bits], 1)),
                     stationary.ready.eq(~closed.bit_select(stationary.address[:bits], 1) & ~clash)]
        taken = Signal(core.sbuf_banks)
        m.d.comb += taken.eq(Cat(
            Cat(side.enable & side.ready & (side.address[:bits] == bank) for side in (moving, stationary)).any()
            for bank in range(core.sbuf_banks)))

        each = group_size(core, core.rows)
        partitions, moving_data, stationary_data, access_data = [], [], [], []
        m.d.comb += [group.ready.eq(group.access.write | ~taken.bit_select(bank_of[index], 1))
                     for index, group in enumerate(groups)]
        for row in range(core.rows):
            group, read = groups[row // each], reads[row // each]
            partition = Partition(core)
            m.submodules[f"partition_{row}"] = place(platform, partition)
            partitions.append(partition)
            chosen = Signal(name=f"chosen_{row}")
            m.d.comb += [
                chosen.eq(group.access.partition == row),
                partition.moving.enable.eq(moving.enable & moving.ready), partition.moving.address.eq(moving.address),
                partition.stationary.enable.eq(stationary.enable & stationary.ready),
                partition.stationary.address.eq(stationary.address),
                partition.access.enable.eq(read & group.ready & chosen),
                partition.access.address.eq(group.access.offset[LANE_BITS:]),
                partition.write_address.eq(group.access.offset[LANE_BITS:]),
                partition.write_data.eq(group.access.data),
                partition.write_strobe.eq(Mux(group.valid & group.access.write & chosen, group.access.strobe, 0)),
            ]
            moving_data.append(partition.moving.data)
            stationary_data.append(partition.stationary.data)
            access_data.append(partition.access.data)
        connect_report(m, core, self, partitions)
        m.d.comb += [moving.data.eq(Cat(moving_data)), stationary.data.eq(Cat(stationary_data))]
        for index, group in enumerate(groups):
            words = access_data[index * each:(index + 1) * each]
            place_in_group = Signal(range(max(2, each)), name=f"place_{index}")
            m.d.sync += place_in_group.eq(group.access.partition - index * each)
            m.d.comb += group.data.eq(Array(words)[place_in_group] if words else 0)
        return m
