"""The state buffer: all partitions, and who may read which bank in a cycle."""

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..emit import place
from .crossbar import group_size
from .local_access import LANE_BITS, WORD_BITS, access_port
from .lockstep import lockstep_read, lockstep_write
from .parity import connect_report, report_members
from .partition import Partition

__all__ = ["StateBuffer"]


class StateBuffer(wiring.Component):
    """``rows`` partitions, read in lockstep by the tensor and the vector engine and one by one by the DMA engines.

    Where several want to read one bank they take turns: of four cycles two are first the DMA engines', one is the tensor
    engine's and one the vector engine's. Of the tensor engine's two reads ``moving`` goes first. Partitions stand in as many
    groups as there are DMA engines, each with a port, which any engine may use. A DMA engine's write waits where the vector
    engine writes to the same bank, which never waits.

    Latency: a read's data one cycle after it is accepted. Throughput: both tensor reads and the vector engine's each cycle where
    they name different banks; a read or a write a cycle and group; a vector write a cycle.

    Parameters
    ----------
    core : spec.config.CoreConfig

    Members
    -------
    moving, stationary, vector_read : In(lockstep_read)
    vector_write : In(lockstep_write)
    groups : dma_engines x In(access_port)
        An access's partition is one of the group's.
    inject, parity
        With parity only; see :mod:`hdl.memory.parity`.
    """

    module_name = "onc_sbuf"

    def __init__(self, core):
        self._core = core
        super().__init__({"moving": In(lockstep_read(core)), "stationary": In(lockstep_read(core)),
                          "vector_read": In(lockstep_read(core)), "vector_write": In(lockstep_write(core)),
                          "groups": In(access_port()).array(core.dma_engines), **report_members(core, core.rows)})

    def elaborate(self, platform):
        m = Module()
        core, groups = self._core, self.groups
        bits = core.sbuf_banks.bit_length() - 1
        moving, stationary = self.moving, self.stationary
        reads = [Signal(name=f"reads_{index}") for index in range(len(groups))]
        m.d.comb += [read.eq(group.valid & ~group.access.write) for read, group in zip(reads, groups)]

        vector, vector_write = self.vector_read, self.vector_write
        bank_of = {index: group.access.offset[LANE_BITS:LANE_BITS + bits] for index, group in enumerate(groups)}
        turn, wanted, vector_bank = Signal(2), Signal(core.sbuf_banks), vector.address[:bits]
        dma_turn, vector_turn = turn[0], turn == 2
        m.d.sync += turn.eq(turn + 1)
        m.d.comb += wanted.eq(Cat(Cat(read & (bank_of[index] == bank) for index, read in enumerate(reads)).any()
                                  for bank in range(core.sbuf_banks)))
        closed = Signal(core.sbuf_banks)
        m.d.comb += closed.eq(Cat((dma_turn & wanted[bank]) | (vector_turn & vector.enable & (vector_bank == bank))
                                  for bank in range(core.sbuf_banks)))
        clash = moving.enable & (moving.address[:bits] == stationary.address[:bits])
        m.d.comb += [moving.ready.eq(~closed.bit_select(moving.address[:bits], 1)),
                     stationary.ready.eq(~closed.bit_select(stationary.address[:bits], 1) & ~clash)]
        tensor_takes, vector_takes = Signal(core.sbuf_banks), Signal(core.sbuf_banks)
        m.d.comb += [
            tensor_takes.eq(Cat(
                Cat(side.enable & side.ready & (side.address[:bits] == bank) for side in (moving, stationary)).any()
                for bank in range(core.sbuf_banks))),
            vector.ready.eq(~tensor_takes.bit_select(vector_bank, 1) & ~(dma_turn & wanted.bit_select(vector_bank, 1))),
            vector_takes.eq(Cat(vector.enable & vector.ready & (vector_bank == bank) for bank in range(core.sbuf_banks))),
        ]

        each = group_size(core, core.rows)
        partitions, moving_data, stationary_data, access_data = [], [], [], []
        writes_here = [vector_write.enable & (vector_write.address[:bits] == bank_of[index]) for index in range(len(groups))]
        taken = tensor_takes | vector_takes
        m.d.comb += [group.ready.eq(Mux(group.access.write, ~held_up, ~taken.bit_select(bank_of[index], 1)))
                     for index, (group, held_up) in enumerate(zip(groups, writes_here))]
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
                partition.access_write.address.eq(group.access.offset[LANE_BITS:]),
                partition.access_write.data.eq(group.access.data),
                partition.access_write.strobe.eq(
                    Mux(group.valid & group.ready & group.access.write & chosen, group.access.strobe, 0)),
                partition.vector.enable.eq(vector.enable & vector.ready), partition.vector.address.eq(vector.address),
                partition.vector_write.address.eq(vector_write.address),
                partition.vector_write.data.eq(vector_write.data.word_select(row, WORD_BITS)),
                partition.vector_write.strobe.eq(Mux(vector_write.enable & vector_write.mask[row], vector_write.strobe, 0)),
            ]
            moving_data.append(partition.moving.data)
            stationary_data.append(partition.stationary.data)
            access_data.append(partition.access.data)
        connect_report(m, core, self, partitions)
        m.d.comb += [moving.data.eq(Cat(moving_data)), stationary.data.eq(Cat(stationary_data)),
                     vector.data.eq(Cat(partition.vector.data for partition in partitions))]
        for index, group in enumerate(groups):
            words = access_data[index * each:(index + 1) * each]
            place_in_group = Signal(range(max(2, each)), name=f"place_{index}")
            m.d.sync += place_in_group.eq(group.access.partition - index * each)
            m.d.comb += group.data.eq(Array(words)[place_in_group] if words else 0)
        return m
