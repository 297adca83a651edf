"""AXI4 managers for tests: one whose channels are streams, right or wrong as a test sends them, and a copy engine."""

from dataclasses import dataclass

import numpy as np
from amaranth import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.axi import BURST_INCR, axi_read_signature, axi_signature
from sim import rows

__all__ = ["MANAGERS", "Burst", "Channels", "Copier", "ManagerShape", "lanes", "pack", "unpack"]

_MOST = 64  # bursts outstanding


@dataclass(frozen=True)
class ManagerShape:
    """Widths of a manager's ports, and whether it has the write channels."""

    address_bits: int
    data_bits: int
    id_bits: int
    writes: bool = True

    @property
    def bytes(self):
        return self.data_bits // 8

    @property
    def layouts(self):
        """Fields and bits of each channel's payload, the lowest first."""
        address = {"id": self.id_bits, "addr": self.address_bits, "len": 8, "size": 3, "burst": 2}
        read = {"ar": address, "r": {"id": self.id_bits, "data": self.data_bits, "resp": 2, "last": 1}}
        write = {"aw": address, "w": {"data": self.data_bits, "strb": self.bytes, "last": 1},
                 "b": {"id": self.id_bits, "resp": 2}}
        return read | write if self.writes else read


MANAGERS = {"byte": ManagerShape(64, 8, 1), "core": ManagerShape(40, 64, 4), "wide": ManagerShape(64, 512, 16),
            "reader": ManagerShape(32, 32, 3, writes=False)}


@dataclass(frozen=True)
class Burst:
    """A burst as an address channel has it: ``len`` is one less than its beats, ``size`` a power of two of bytes."""

    id: int
    addr: int
    len: int
    size: int
    burst: int = BURST_INCR

    def place(self, beat):
        """Address of the bytes that a beat is about."""
        return (self.addr >> self.size << self.size) + (beat << self.size)


def lanes(burst, beat, width):
    """First and end of a beat's byte lanes in a word of ``width`` bytes."""
    first = burst.place(beat) % width
    return max(first, burst.addr % width if beat == 0 else 0), first + (1 << burst.size)


def pack(layout, items):
    """Payloads of a channel, one for each item with the layout's fields, as ``Model.streams`` takes them."""
    width, values = sum(layout.values()), []
    for item in items:
        value = place = 0
        for name, bits in layout.items():
            field = item[name] if isinstance(item, dict) else getattr(item, name)
            value |= field << place
            place += bits
        values.append(value)
    size = rows.row_bytes(width)
    matrix = np.frombuffer(b"".join(value.to_bytes(size, "little") for value in values), np.uint8)
    return rows.from_bytes(width, matrix.reshape(len(values), size))


def unpack(layout, payloads):
    """Dictionaries of a channel's fields, one for each payload that ``Model.streams`` collected."""
    items = []
    for row in rows.to_bytes(payloads):
        value, item = int.from_bytes(row.tobytes(), "little"), {}
        for name, bits in layout.items():
            item[name], value = value & (1 << bits) - 1, value >> bits
        items.append(item)
    return items


class Channels(wiring.Component):
    """The managers of ``MANAGERS``, whose channels are streams: ``<manager>_ar`` and so on. What is sent goes out as it is,
    but an address waits while 64 bursts are outstanding, unless ``unlimited``."""

    module_name = "test_axi_channels"

    def __init__(self):
        members = {"unlimited": In(1)}
        for name, shape in MANAGERS.items():
            signature = axi_signature if shape.writes else axi_read_signature
            members[name] = Out(signature(shape.address_bits, shape.data_bits, shape.id_bits))
            for channel, layout in shape.layouts.items():
                flow = Out if channel in ("r", "b") else In
                members[f"{name}_{channel}"] = flow(stream.Signature(data.StructLayout(layout)))
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        for name, shape in MANAGERS.items():
            bus = getattr(self, name)
            for channel, layout in shape.layouts.items():
                port = getattr(self, f"{name}_{channel}")
                valid, ready = getattr(bus, f"{channel}valid"), getattr(bus, f"{channel}ready")
                fields = [(getattr(port.payload, field), getattr(bus, f"{channel}{field}")) for field in layout]
                if channel in ("r", "b"):
                    m.d.comb += [port.valid.eq(valid), ready.eq(port.ready), *(inner.eq(outer) for inner, outer in fields)]
                else:
                    m.d.comb += [valid.eq(port.valid), port.ready.eq(ready), *(outer.eq(inner) for inner, outer in fields)]
            self._limit(m, f"{name}_ar", bus.arvalid, bus.arready, bus.rvalid & bus.rready & bus.rlast)
            if shape.writes:
                self._limit(m, f"{name}_aw", bus.awvalid, bus.awready, bus.bvalid & bus.bready)
        return m

    def _limit(self, m, name, valid, ready, answered):
        port, outstanding = getattr(self, name), Signal(range(2 * _MOST), name=f"{name}_outstanding")
        m.d.sync += outstanding.eq(outstanding + (valid & ready) - answered)
        with m.If((outstanding >= _MOST) & ~self.unlimited):
            m.d.comb += [valid.eq(0), port.ready.eq(0)]


class Copier(wiring.Component):
    """Copies ``blocks`` blocks of 64 bytes from one address to another, one after the other; ``done`` stays high.

    ``reckless`` writes over the end of a page, which no manager may.
    """

    module_name = "test_axi_copier"
    BEATS = 8

    def __init__(self):
        super().__init__({"start": In(1), "source": In(40), "target": In(40), "blocks": In(8), "reckless": In(1),
                          "done": Out(1), "failed": Out(1), "m": Out(axi_signature(40, 64, 4))})

    def elaborate(self, platform):
        m = Module()
        bus, block, beat = self.m, Signal(8), Signal(range(self.BEATS))
        words = Signal(data.ArrayLayout(64, self.BEATS))
        m.d.comb += [
            bus.araddr.eq(self.source + (block << 6)), bus.awaddr.eq((self.target + (block << 6)) | (self.reckless * 0xFF8)),
            bus.arlen.eq(self.BEATS - 1), bus.awlen.eq(self.BEATS - 1), bus.arsize.eq(3), bus.awsize.eq(3),
            bus.arburst.eq(BURST_INCR), bus.awburst.eq(BURST_INCR), bus.arid.eq(block), bus.awid.eq(block),
            bus.wdata.eq(words[beat]), bus.wstrb.eq(0xFF), bus.wlast.eq(beat == self.BEATS - 1),
        ]
        with m.If((bus.rvalid & bus.rready & (bus.rresp != 0)) | (bus.bvalid & bus.bready & (bus.bresp != 0))):
            m.d.sync += self.failed.eq(1)
        with m.FSM():
            with m.State("idle"):
                with m.If(self.start):
                    m.next = "ask"
            with m.State("ask"):
                m.d.comb += bus.arvalid.eq(1)
                with m.If(bus.arready):
                    m.next = "read"
            with m.State("read"):
                m.d.comb += bus.rready.eq(1)
                with m.If(bus.rvalid):
                    m.d.sync += [words[beat].eq(bus.rdata), beat.eq(beat + 1)]
                    with m.If(bus.rlast):
                        m.next = "announce"
            with m.State("announce"):
                m.d.comb += bus.awvalid.eq(1)
                with m.If(bus.awready):
                    m.next = "write"
            with m.State("write"):
                m.d.comb += bus.wvalid.eq(1)
                with m.If(bus.wready):
                    m.d.sync += beat.eq(beat + 1)
                    with m.If(bus.wlast):
                        m.next = "settle"
            with m.State("settle"):
                m.d.comb += bus.bready.eq(1)
                with m.If(bus.bvalid):
                    m.d.sync += block.eq(block + 1)
                    m.next = "ask"
                    with m.If(block + 1 == self.blocks):
                        m.next = "done"
            with m.State("done"):
                m.d.comb += self.done.eq(1)
        return m
