"""The partial-sum buffer: a column of banks under each column of the array, with the adder that accumulates."""

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..arith.add import Add
from ..arith.layouts import pack, partial_sum_layout
from ..emit import place
from .crossbar import group_size
from .local_access import access_port
from .lockstep import lockstep_psum
from .parity import buffer_memory, connect_partition, connect_report, partition_members, report_members

__all__ = ["PartialSumColumn", "PartialSumBuffer", "ACCUMULATE_DISTANCE", "destination_layout", "read_layout"]

ACCUMULATE_DISTANCE = 3
"""Cycles between a sum and the next accumulation onto the same word."""

WORD_BITS = 32
RAW_BITS = slice(0, WORD_BITS)


def destination_layout(core):
    """Where a column of sums goes: the first ``columns`` partitions, word ``offset`` of ``bank``.

    ``commit`` says that there is a sum at all, which is not so for the first three passes of an fp32 column and for a
    cycle without a wave; ``last`` that it ends an instruction. With ``integer`` or ``transpose``
    the sum is 32 raw bits; integers accumulate modulo 2**32, transposes never do. ``count_special``: count it where it is
    NaN or infinite and not raw.
    """
    return data.StructLayout({
        "commit": 1, "last": 1, "accumulate": 1, "integer": 1, "transpose": 1, "count_special": 1,
        "columns": core.cols.bit_length(),
        **_word_fields(core),
    })


def read_layout(core):
    """One word to read in every partition."""
    return data.StructLayout({"enable": 1, **_word_fields(core)})


def _word_fields(core):
    return {"bank": (core.psum_banks - 1).bit_length(), "offset": (core.psum_bank_words - 1).bit_length()}


class PartialSumColumn(wiring.Component):
    """One partition: ``psum_banks`` memories of ``psum_bank_bytes``, zero at the start, and a binary32 adder.

    A sum overwrites its word or is added to it, old + new (rule N3). The word can be read, and accumulated onto,
    :data:`ACCUMULATE_DISTANCE` cycles later. A read must not name a bank on which sums are on their way; whoever issues
    both keeps them apart. An access is a read that need not be kept apart: it waits where the old word of a sum is fetched from
    its bank, and finds sums that are on their way or does not.

    Latency: read and access 1 cycle. Throughput: one sum a cycle, and one read or access a cycle from another bank.

    Parameters
    ----------
    core : spec.config.CoreConfig

    Members
    -------
    column : In
        Number of this column.
    sum : In(partial_sum_layout)
    destination : In(destination_layout)
    read : In(read_layout)
    read_data : Out(32)
        Held until the next read or access.
    access : In(read_layout), access_ready : Out(1)
        Whether the access is made in this cycle.
    vector_read : In(read_layout)
        As an access, and before it; whoever issues it keeps it apart from fetches of old words.
    vector_write : In(read_layout), vector_data : In(32)
        A word of another engine, kept apart from sums that are stored in the same bank.
    special_i, special_o : In, Out
        Running count along the columns of results that are counted, a cycle from column to column.
    inject, parity_error
        With parity only; see :mod:`hdl.memory.parity`.
    """

    module_name = "onc_psum_column"

    def __init__(self, core):
        self._core = core
        super().__init__({
            "column": In(max(1, (core.cols - 1).bit_length())),
            "sum": In(partial_sum_layout), "destination": In(destination_layout(core)),
            "read": In(read_layout(core)), "read_data": Out(WORD_BITS),
            "access": In(read_layout(core)), "access_ready": Out(1),
            "vector_read": In(read_layout(core)), "vector_write": In(read_layout(core)), "vector_data": In(WORD_BITS),
            "special_i": In(core.cols.bit_length()), "special_o": Out(core.cols.bit_length()), **partition_members(core),
        })

    def elaborate(self, platform):
        m = Module()
        destination, access = self.destination, self.access
        writes = Signal()
        m.d.comb += writes.eq(destination.commit & (self.column < destination.columns))

        # First cycle: the old word is fetched. Second: it meets the sum in the adder. Third: rounded and written.
        adding, storing = Signal.like(destination), Signal.like(destination)
        adds, stores = Signal(), Signal()
        m.d.sync += [adding.eq(destination), storing.eq(adding), adds.eq(writes), stores.eq(adds)]
        new, result, raw = Signal(WORD_BITS), Signal(WORD_BITS), Signal()
        is_raw = destination.integer | destination.transpose
        m.d.sync += new.eq(Mux(is_raw, self.sum.as_value()[RAW_BITS], pack(self.sum)))

        fetching = Signal()
        vector = self.vector_read
        m.d.comb += [fetching.eq(writes & destination.accumulate),
                     self.access_ready.eq(~self.read.enable & ~vector.enable
                                          & ~(fetching & (destination.bank == access.bank)))]
        accesses, vectors = access.enable & self.access_ready, vector.enable
        banks = []
        for index in range(self._core.psum_banks):
            bank = buffer_memory(self._core, WORD_BITS, self._core.psum_bank_words)
            m.submodules[f"bank_{index}"] = place(platform, bank)
            banks.append(bank)
            fetches = fetching & (destination.bank == index)
            m.d.comb += [
                bank.read_enable.eq(fetches | (self.read.enable & (self.read.bank == index))
                                    | (vectors & (vector.bank == index)) | (accesses & (access.bank == index))),
                bank.read_address.eq(Mux(fetches, destination.offset, Mux(
                    self.read.enable, self.read.offset, Mux(vectors, vector.offset, access.offset)))),
                bank.write_enable.eq(stores & (storing.bank == index)),
                bank.write_address.eq(storing.offset),
                bank.write_data.eq(result),
            ]
            with m.If(self.vector_write.enable & (self.vector_write.bank == index)):
                m.d.comb += [bank.write_enable.eq(1), bank.write_address.eq(self.vector_write.offset),
                             bank.write_data.eq(self.vector_data)]
        connect_partition(m, self._core, self, banks)
        words = Array(bank.read_data for bank in banks)
        old = words[adding.bank]

        m.submodules.add = add = Add()
        m.d.comb += [add.a.eq(old), add.b.eq(new)]
        kept = Signal(WORD_BITS)
        m.d.sync += [
            kept.eq(Mux(adding.accumulate & adding.integer, old + new, new)),
            raw.eq(~adding.accumulate | adding.integer),
        ]
        m.d.comb += result.eq(Mux(raw, kept, add.o))

        shown = Signal.like(self.read.bank)
        with m.If(self.read.enable):
            m.d.sync += shown.eq(self.read.bank)
        with m.Elif(vectors):
            m.d.sync += shown.eq(vector.bank)
        with m.Elif(accesses):
            m.d.sync += shown.eq(access.bank)
        m.d.comb += self.read_data.eq(words[shown])

        counted = Signal()
        m.d.comb += counted.eq(stores & storing.count_special & ~storing.integer & ~storing.transpose & result[23:31].all())
        m.d.sync += self.special_o.eq(self.special_i + counted)
        return m


class PartialSumBuffer(wiring.Component):
    """A :class:`PartialSumColumn` for each column of the array; the destination travels along with the wavefront.

    Latency: a destination reaches column j after j cycles; a read gives all partitions' words after 1 cycle;
    ``retired`` comes when the word of the last column is stored, ``cols + 2`` cycles after the destination.
    Throughput: one column of sums and one read a cycle; an access a cycle and group.

    Parameters
    ----------
    core : spec.config.CoreConfig

    Members
    -------
    groups : dma_engines x In(access_port)
        Columns stand in as many groups; an access's partition is one of the group's columns. Writes do nothing.
    vector : In(lockstep_psum)
        Waits for sums on their way to the same bank where it must: reads for the fetch of an old word, writes for a store.
    sums : In, cols x partial_sum_layout
        Column j's sum j cycles after its destination.
    destination : In(destination_layout)
    read : In(read_layout)
    read_data : Out(32 * cols)
    retired : Out(1)
        High for a cycle when the last sum of an instruction is stored everywhere.
    special : Out
        How many results of a column of sums that left the buffer's last stage were NaN or infinite, of those to count.
    inject, parity
        With parity only; see :mod:`hdl.memory.parity`.
    """

    module_name = "onc_psum"

    def __init__(self, core):
        self._core = core
        super().__init__({
            "sums": In(core.cols * partial_sum_layout.size),
            "destination": In(destination_layout(core)),
            "read": In(read_layout(core)), "read_data": Out(WORD_BITS * core.cols),
            "retired": Out(1), "special": Out(core.cols.bit_length()),
            "groups": In(access_port()).array(core.dma_engines), "vector": In(lockstep_psum(core)),
            **report_members(core, core.cols),
        })

    def elaborate(self, platform):
        m = Module()
        columns, special = [], 0
        destination = self.destination
        destinations = [destination]
        for index in range(self._core.cols):
            column = PartialSumColumn(self._core)
            m.submodules[f"column_{index}"] = place(platform, column)
            columns.append(column)
            m.d.comb += [column.column.eq(index), column.sum.eq(self.sums.word_select(index, partial_sum_layout.size)),
                         column.destination.eq(destination), column.read.eq(self.read), column.special_i.eq(special)]
            special = column.special_o
            onward = Signal.like(destination, name=f"destination_{index + 1}")
            m.d.sync += onward.eq(destination)
            destination = onward
            destinations.append(destination)
        m.d.comb += [self.read_data.eq(Cat(column.read_data for column in columns)), self.special.eq(special)]
        self._access(m, columns)
        self._vector(m, columns, destinations)
        connect_report(m, self._core, self, columns)

        # The last column's word is written at the end of the second cycle after its destination.
        ends = Signal(ACCUMULATE_DISTANCE - 1)
        m.d.sync += ends.eq(Cat(destination.commit & destination.last, ends))
        m.d.comb += self.retired.eq(ends[-1])
        return m

    def _vector(self, m, columns, destinations):
        """Reads and writes go to all columns in one cycle, when every column can."""
        vector = self.vector
        behind = Signal.like(destinations[-1], name="destination_behind")
        m.d.sync += behind.eq(destinations[-1])
        bank = {name: getattr(vector, f"{name}_address")[len(self.read.offset):] for name in ("read", "write")}
        fetched = Cat(sums.commit & sums.accumulate & (sums.columns > index) & (sums.bank == bank["read"])
                      for index, sums in enumerate(destinations[:-1]))
        # A sum is stored two cycles after its destination, which then is two columns on.
        stored = Cat(sums.commit & (sums.columns > index) & (sums.bank == bank["write"])
                     for index, sums in enumerate([*destinations, behind][ACCUMULATE_DISTANCE - 1:]))
        m.d.comb += [vector.read_ready.eq(~self.read.enable & ~fetched.any()), vector.write_ready.eq(~stored.any()),
                     vector.read_data.eq(self.read_data)]
        for index, column in enumerate(columns):
            m.d.comb += [
                Cat(column.vector_read.offset, column.vector_read.bank).eq(vector.read_address),
                column.vector_read.enable.eq(vector.read & vector.read_ready),
                Cat(column.vector_write.offset, column.vector_write.bank).eq(vector.write_address),
                column.vector_write.enable.eq(vector.write & vector.write_ready & vector.mask[index]),
                column.vector_data.eq(vector.write_data.word_select(index, WORD_BITS))]

    def _access(self, m, columns):
        """Each group's access goes to one of its columns; the word stands in both halves of the answer."""
        core = self._core
        each = group_size(core, core.cols)
        for index, group in enumerate(self.groups):
            access, own = group.access, columns[index * each:(index + 1) * each]
            place_in_group = Signal(range(max(2, each)), name=f"place_{index}")
            shown = Signal.like(place_in_group, name=f"shown_{index}")
            m.d.comb += place_in_group.eq(access.partition - index * each)
            m.d.sync += shown.eq(place_in_group)
            word = Cat(self.read.offset, self.read.bank)
            place = access.offset[WORD_BITS.bit_length() - 4:][:len(word)]
            for number, column in enumerate(own):
                m.d.comb += [Cat(column.access.offset, column.access.bank).eq(place),
                             column.access.enable.eq(group.valid & ~access.write & (place_in_group == number))]
            if own:
                m.d.comb += [group.ready.eq(access.write | Array(column.access_ready for column in own)[place_in_group]),
                             group.data.eq(Array(column.read_data for column in own)[shown].replicate(2))]
            else:
                m.d.comb += group.ready.eq(1)
