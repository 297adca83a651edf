"""From "multiply these two matrices in memory" to a program: instructions, descriptors and where all of it stands."""

from dataclasses import dataclass

import numpy as np

from spec.assembly import assemble
from spec.dma import DESCRIPTOR_BYTES, RINGS, Side, Transfer, encode_transfer
from spec.errors import SpecError
from spec.formats import FORMATS
from spec.isa import Update
from spec.memory import local_address
from spec.tensor import Matmul, check_matmul

__all__ = ["MatmulProgram"]

_FULL, _FREE, _READY, _STORED, _DONE = range(5)
"""Semaphores: descriptors of operands done; slots of the state buffer free; blocks computed; descriptors of results done that
free half the partial-sum buffer, and of the last two blocks."""

_ALIGN = 128
_SHORTEST = 128
"""Columns of ``moving`` in a block, where the result has so many: long enough to hide an instruction's issue."""


def _pieces(length, step):
    return [(start, min(step, length - start)) for start in range(0, length, step)]


def _aligned(position, step=_ALIGN):
    return -(-position // step) * step


def _shares(length, parts):
    """``length`` rows in so many nearly equal runs: first and number of each."""
    ends = [length * part // parts for part in range(parts + 1)]
    return [(first, end - first) for first, end in zip(ends, ends[1:])]


@dataclass(frozen=True)
class _Block:
    """A block of the result that is computed in half the partial-sum buffer: tiles of M, one run of N."""

    tiles: list
    column: int
    columns: int
    half: int


class MatmulProgram:
    """``result[M, N] = stationary[K, M]^T . moving[K, N]``, all three in memory, row after row, the result in binary32.

    The result is computed in blocks, each in half the partial-sum buffer while the other half is stored. For each tile of
    K both operands of a block are brought into a slot of the state buffer; there are as many slots as fit, up to 16, so that DMA
    runs ahead. Three streams: ``tensor`` computes, ``sync`` starts the loads, ``gpsimd`` the stores. Loops keep the
    program small: its length does not depend on K.

    Parameters
    ----------
    core : spec.config.CoreConfig
    m, n, k : int
    format_name : str
        Of both operands; not one that goes in pairs only.
    base : int
        Where in memory it begins, a multiple of 128.

    Attributes
    ----------
    program, descriptors : bytes
    program_address, descriptors_address, stationary_address, moving_address, result_address : int
    starts : dict of str to int
        Where each stream starts.
    rings : dict of int to (int, int)
        Base and size of each ring.
    end : int
        Of the memory that is used.
    macs : int

    Raises
    ------
    SpecError
        A product that the core does not compute, a size below 1, or a core whose state buffer is too small.
    """

    def __init__(self, core, m, n, k, format_name, base=0):
        for name, value in (("M", m), ("N", n), ("K", k)):
            if value < 1:
                raise SpecError(name, value, "a whole number from 1")
        check_matmul(core, Matmul(format_name, format_name))
        self._core, self._m, self._n, self._k, self._format = core, m, n, k, format_name
        self._bytes = FORMATS[format_name].width // 8
        self.macs = m * n * k
        self._choose_shape()
        engines = core.dma_engines
        last_rows = self._tiles_of_k[-1][1]
        stores = engines if 2 * engines <= RINGS else RINGS // 4
        loads = min(engines if 2 * engines <= RINGS else RINGS - stores, last_rows)
        last_columns = (m - 1) % core.cols + 1
        self._load_rings = list(range(loads))
        self._store_rings = list(range(RINGS - stores, RINGS - stores + min(stores, last_columns)))
        self._blocks = self._make_blocks()

        text, labels = self._text()
        self.program = assemble(text)
        self.program_address = base
        self.starts = {stream: base + at for stream, at in labels.items()}
        self.descriptors_address = _aligned(base + len(self.program))
        loads, stores = self._load_counts(), self._store_counts()
        at, self.rings = self.descriptors_address, {}
        for ring, count in {**loads, **stores}.items():
            self.rings[ring] = at, count
            at += count * DESCRIPTOR_BYTES
        self.stationary_address = at
        self.moving_address = _aligned(self.stationary_address + k * m * self._bytes)
        self.result_address = _aligned(self.moving_address + k * n * self._bytes)
        self.end = _aligned(self.result_address + 4 * m * n)
        self.descriptors = self._make_descriptors()

    def _choose_shape(self):
        """Length of a run of N, and how many tiles of M: what asks memory for least, of what the state buffer can hold."""
        core = self._core
        passes = Matmul(self._format, self._format).passes
        best = None
        shortest = min(core.psum_bank_words, max(_SHORTEST, 2 * core.cols) // passes, self._n)
        for share in (1, 2, 4, 8, 16):
            columns = min(core.psum_bank_words // share, self._n)
            per_bank = core.psum_bank_words // columns
            tiles = min(core.psum_banks // 2 * per_bank, -(-self._m // core.cols))
            part = _aligned(min(tiles * core.cols, self._m) * self._bytes, 8)
            slot = part + _aligned(columns * self._bytes, 8)
            if columns < shortest and best or core.sbuf_bytes < 2 * slot:
                continue
            asked = slot / (tiles * columns)
            if best is None or asked < best[0]:
                best = asked, columns, tiles, part, slot
        if best is None:
            raise SpecError("sbuf_kib", core.sbuf_kib, "room for two slots of operands")
        _, self._columns, self._tiles, self._moving_offset, self._slot = best
        self._slots = min(16, core.sbuf_bytes // self._slot)
        self._tiles_of_k = _pieces(self._k, core.rows)

    def _make_blocks(self):
        tiles = _pieces(self._m, self._core.cols)
        groups = [tiles[first:first + self._tiles] for first in range(0, len(tiles), self._tiles)]
        blocks = [(group, column, columns) for column, columns in _pieces(self._n, self._columns) for group in groups]
        return [_Block(group, column, columns, index % 2) for index, (group, column, columns) in enumerate(blocks)]

    def _place(self, block, tile):
        """Byte offset of a tile's words in the partial-sum buffer."""
        core = self._core
        per_bank = core.psum_bank_words // self._columns
        bank = block.half * (core.psum_banks // 2) + tile // per_bank
        return bank * core.psum_bank_bytes + tile % per_bank * self._columns * 4

    # -- the program --

    def _text(self):
        """Assembly of all three streams, and at which byte each starts."""
        streams = {"tensor": self._tensor_lines(), "sync": self._load_lines(), "gpsimd": self._store_lines()}
        starts, lines = {}, []
        for stream, own in streams.items():
            starts[stream] = 128 * len(lines)
            lines += own
        return "\n".join(lines), starts

    def _tensor_lines(self):
        lines = ["move r1, 0"]
        tiles, stored = self._tiles_of_k, self._stored_by_block()
        for number, block in enumerate(self._blocks):
            free = stored[number - 2] if number >= 2 else 0
            last = len(tiles) - 1
            lines += self._chunk_lines(block, tiles[0][1], accumulate=0, free=free, ends=last == 0)
            if last > 1:
                body = self._chunk_lines(block, tiles[1][1], accumulate=1)
                lines += [f"move r2, {last - 1}", *body, "add r2, r2, -1", f"branch r2 > 0, {-len(body) - 1}"]
            if last:
                lines += self._chunk_lines(block, tiles[last][1], accumulate=1, ends=True)
        return [*lines, "halt"]

    def _chunk_lines(self, block, rows, *, accumulate, free=0, ends=False):
        """One tile of K: every tile of M against the run of N; then on to the next slot."""
        asked = 2 * len(self._load_rings)
        lines = []
        for tile, (_, width) in enumerate(block.tiles):
            load = (f"load_stationary stationary=sbuf[0+{rows}, {tile * self._core.cols * self._bytes}+r1, {self._format}, "
                    f"1*{width}]")
            if tile == 0:
                load += f" ; wait s{_FULL}>={asked}" + (f", s{_STORED}>={free}" if free else "")
                load += f" ; then s{_FULL}-={asked}" + (f", s{_STORED}-={free}" if free else "")
            multiply = (f"multiply_moving moving=sbuf[0+{rows}, {self._moving_offset}+r1, {self._format}, 1*{block.columns}] "
                        f"result=psum[0+{width}, {self._place(block, tile)}, fp32, 1*{block.columns}] accumulate={accumulate}")
            if tile == len(block.tiles) - 1:
                multiply += f" ; then s{_FREE}+=1" + (f", s{_READY}+=1" if ends else "")
            lines += [load, multiply]
        return [*lines, f"add r1, r1, {self._slot}", f"branch r1 < {self._slot * self._slots}, 2", "move r1, 0"]

    def _load_lines(self):
        first, *others = [f"dma_start ring={ring} descriptors=2" for ring in self._load_rings]
        body = [f"{first} ; wait s{_FREE}>=1 ; then s{_FREE}-=1", *others]
        chunks = len(self._blocks) * len(self._tiles_of_k)
        return [f"nop ; then s{_FREE}={self._slots}", f"move r1, {chunks}", *body, "add r1, r1, -1",
                f"branch r1 > 0, {-len(body) - 1}", "halt"]

    def _store_lines(self):
        lines = []
        for block in self._blocks:
            for ring in self._store_rings:
                line = f"dma_start ring={ring} descriptors={len(block.tiles)}"
                if ring == self._store_rings[0]:
                    line += f" ; wait s{_READY}>=1 ; then s{_READY}-=1"
                lines.append(line)
        return [*lines, f"halt ; wait s{_DONE}=={sum(self._stored_by_block()[-2:])} ; notify"]

    # -- the descriptors --

    def _load_counts(self):
        return {ring: 2 * len(self._blocks) * len(self._tiles_of_k) for ring in self._load_rings}

    def _store_counts(self):
        return {ring: sum(len(block.tiles) for block in self._blocks) for ring in self._store_rings}

    def _stored_by_block(self):
        return [len(block.tiles) * len(self._store_rings) for block in self._blocks]

    def _make_descriptors(self):
        lists = {ring: [] for ring in self.rings}
        slot = 0
        for number, block in enumerate(self._blocks):
            first, width = block.tiles[0][0], sum(width for _, width in block.tiles)
            for row, rows in self._tiles_of_k:
                for ring, (skip, count) in zip(self._load_rings, _shares(rows, len(self._load_rings))):
                    lists[ring] += [
                        self._load(self.stationary_address, self._m, row, first, skip, count, width, slot * self._slot),
                        self._load(self.moving_address, self._n, row, block.column, skip, count, block.columns,
                                   slot * self._slot + self._moving_offset)]
                slot = (slot + 1) % self._slots
            done = _DONE if number >= len(self._blocks) - 2 else _STORED
            for tile, (column, width) in enumerate(block.tiles):
                for ring, (skip, count) in zip(self._store_rings, _shares(width, len(self._store_rings))):
                    lists[ring].append(self._store(block, tile, column, skip, count, done))
        return b"".join(encode_transfer(transfer) for own in lists.values() for transfer in own)

    def _load(self, matrix, width, row, column, skip, rows, columns, offset):
        size = self._bytes
        source = Side("memory", self._format, matrix + ((row + skip) * width + column) * size,
                      ((size, columns), (size * width, rows)))
        target = Side("sbuf", self._format, local_address(skip, offset), ((size, columns), (local_address(1, 0), rows)))
        return Transfer(source, target, update=Update(_FULL, "+=", 1))

    def _store(self, block, tile, row, skip, rows, done):
        source = Side("psum", "fp32", local_address(skip, self._place(block, tile)),
                      ((4, block.columns), (local_address(1, 0), rows)))
        target = Side("memory", "fp32", self.result_address + 4 * ((row + skip) * self._n + block.column),
                      ((4, block.columns), (4 * self._n, rows)))
        return Transfer(source, target, update=Update(done, "+=", 1))

    # -- on a machine --

    def load(self, machine, stationary, moving):
        """Write program, descriptors and operands (bit patterns ``[K, M]`` and ``[K, N]``) into a machine's memory, and set
        its rings; ``machine`` is a :class:`golden.core.Core` or a :class:`sim.core.CoreDriver`."""
        memory = np.frombuffer(machine.memory, np.uint8) if isinstance(machine.memory, bytearray) else machine.memory
        for at, content in ((self.program_address, np.frombuffer(self.program, np.uint8)),
                            (self.descriptors_address, np.frombuffer(self.descriptors, np.uint8)),
                            (self.stationary_address, np.ascontiguousarray(stationary).reshape(-1).view(np.uint8)),
                            (self.moving_address, np.ascontiguousarray(moving).reshape(-1).view(np.uint8))):
            memory[at:at + len(content)] = content
        for ring, (base, size) in self.rings.items():
            machine.set_ring(ring, base, size)

    def start(self, machine):
        """Start its streams."""
        for stream, address in self.starts.items():
            machine.start(stream, address)

    def result(self, machine):
        """The result, uint32 patterns ``[M, N]``."""
        first = self.result_address
        content = np.frombuffer(machine.memory, np.uint8)[first:first + 4 * self._m * self._n]
        return content.view(np.uint32).reshape(self._m, self._n).copy()
