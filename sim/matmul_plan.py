"""How a core computes one product of matrices in memory: instructions of each stream, and descriptors of each ring."""

from dataclasses import dataclass

from spec.dma import RINGS, Side, Transfer, encode_transfer
from spec.errors import SpecError
from spec.formats import FORMATS
from spec.isa import Update
from spec.memory import local_address
from spec.tensor import Matmul, check_matmul, contraction_tiles

__all__ = ["OVER", "MatmulPlan", "Product", "aligned"]

_FULL, _FREE, _READY, _STORED, _DONE, OVER = range(6)
"""Semaphores: descriptors of operands done; slots of the state buffer free; blocks computed; descriptors of results done that
free half the partial-sum buffer, and of the last two blocks; products whose results are in memory. All but ``OVER`` are 0
between products."""

_SHORTEST = 128
"""Columns of ``moving`` in a block, where the result has so many: long enough to hide an instruction's issue."""
_MOST_SLOTS = 16


@dataclass(frozen=True)
class Product:
    """``result[M, N] = stationary[K, M]^T . moving[K, N]``, each row after row in memory, the result in 32-bit words.

    Parameters
    ----------
    m, n, k : int
        From 1; another value is a :class:`SpecError`.
    form : spec.tensor.Matmul
    """

    m: int
    n: int
    k: int
    form: Matmul

    def __post_init__(self):
        for name, value in (("M", self.m), ("N", self.n), ("K", self.k)):
            if value < 1:
                raise SpecError(name, value, "a whole number from 1")

    @property
    def macs(self):
        """Multiply-accumulates that it asks for."""
        return self.m * self.n * self.k

    @property
    def bytes(self):
        """Bytes of ``stationary``, ``moving`` and the result."""
        stationary, moving = (FORMATS[name].width // 8 for name in (self.form.stationary, self.form.moving))
        return self.k * self.m * stationary, self.k * self.n * moving, 4 * self.m * self.n


def aligned(position, step):
    """The first multiple of ``step`` from ``position`` on."""
    return -(-position // step) * step


def _pieces(length, step):
    return [(start, min(step, length - start)) for start in range(0, length, step)]


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


@dataclass(frozen=True)
class _Operand:
    """Where one operand's tile lies in a slot, and how."""

    format: str
    size: int
    paired: bool
    offset: int = 0

    def bytes(self, columns):
        """Of a row of so many columns in the state buffer."""
        return aligned(columns * self.size * (2 if self.paired else 1), 8)

    def access(self, rows, column, columns):
        """Assembly of the access pattern; in pairs an element lies beside its partner."""
        step, pair = (2, f", 0*1, 0*1, 1*2") if self.paired else (1, "")
        at = self.offset + column * step * self.size
        return f"sbuf[0+{rows}, {at}+r1, {self.format}, {step}*{columns}{pair}]"


class MatmulPlan:
    """One product's part of a program.

    The result is computed in blocks, each in half the partial-sum buffer while the other half is stored. For each tile of
    K both operands of a block are brought into a slot of the state buffer; there are as many slots as fit, up to 16, so that DMA
    runs ahead. Three streams: ``tensor`` computes, ``sync`` starts the loads, ``gpsimd`` the stores. Loops keep the
    program small: its length does not depend on K.

    Parameters
    ----------
    core : spec.config.CoreConfig
    product : Product

    Raises
    ------
    SpecError
        A product that the core does not compute, or a core whose state buffer is too small.
    """

    def __init__(self, core, product):
        form = product.form
        check_matmul(core, form)
        self._core, self._product = core, product
        self._tiles_of_k = [(tile.start, tile.stop - tile.start) for tile in contraction_tiles(core.rows, product.k, form.paired)]
        self._result_format = "int32" if form.is_integer else "fp32"
        self._choose_shape()
        self._blocks = self._make_blocks()
        engines = core.dma_engines
        stores = engines if 2 * engines <= RINGS else RINGS // 4
        loads = min(engines if 2 * engines <= RINGS else RINGS - stores, self._held(self._tiles_of_k[-1][1]))
        last_columns = (product.m - 1) % core.cols + 1
        self._load_rings = list(range(loads))
        self._store_rings = list(range(RINGS - stores, RINGS - stores + min(stores, last_columns)))
        self._loads_each = 4 if form.paired else 2

    def _held(self, contraction):
        """Partitions that so many elements of the contraction take."""
        return -(-contraction // 2) if self._product.form.paired else contraction

    def _choose_shape(self):
        """Length of a run of N, and how many tiles of M: what asks memory for least, of what the state buffer can hold."""
        core, product, form = self._core, self._product, self._product.form
        stationary, moving = (_Operand(name, FORMATS[name].width // 8, form.paired) for name in (form.stationary, form.moving))
        best = None
        shortest = min(core.psum_bank_words, max(_SHORTEST, 2 * core.cols) // form.passes, product.n)
        for share in (1, 2, 4, 8, 16):
            columns = min(core.psum_bank_words // share, product.n)
            per_bank = core.psum_bank_words // columns
            tiles = min(core.psum_banks // 2 * per_bank, -(-product.m // core.cols))
            offset = stationary.bytes(min(tiles * core.cols, product.m))
            slot = offset + moving.bytes(columns)
            if columns < shortest and best or core.sbuf_bytes < 2 * slot:
                continue
            asked = slot / (tiles * columns)
            if best is None or asked < best[0]:
                best = asked, columns, tiles, _Operand(moving.format, moving.size, moving.paired, offset), slot
        if best is None:
            raise SpecError("sbuf_kib", core.sbuf_kib, "room for two slots of operands")
        _, self._columns, self._tiles, self._moving, self._slot = best
        self._stationary = stationary
        self._slots = min(_MOST_SLOTS, core.sbuf_bytes // self._slot)

    def _make_blocks(self):
        tiles = _pieces(self._product.m, self._core.cols)
        groups = [tiles[first:first + self._tiles] for first in range(0, len(tiles), self._tiles)]
        blocks = [(group, column, columns) for column, columns in _pieces(self._product.n, self._columns) for group in groups]
        return [_Block(group, column, columns, index % 2) for index, (group, column, columns) in enumerate(blocks)]

    @property
    def waves(self):
        """Cycles that the array is busy."""
        columns = sum(len(block.tiles) * block.columns for block in self._blocks)
        return columns * len(self._tiles_of_k) * self._product.form.passes

    def _place(self, block, tile):
        """Byte offset of a tile's words in the partial-sum buffer."""
        core = self._core
        per_bank = core.psum_bank_words // self._columns
        bank = block.half * (core.psum_banks // 2) + tile // per_bank
        return bank * core.psum_bank_bytes + tile % per_bank * self._columns * 4

    # -- the program, as assembly; branches are relative --

    def tensor_lines(self):
        """What the ``tensor`` stream does."""
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
        return lines

    def _chunk_lines(self, block, contraction, *, accumulate, free=0, ends=False):
        """One tile of K: every tile of M against the run of N; then on to the next slot."""
        asked, rows, cols = self._loads_each * len(self._load_rings), self._held(contraction), self._core.cols
        pairs = f" paired=1 odd={contraction % 2}" if self._product.form.paired else ""
        lines = []
        for tile, (_, width) in enumerate(block.tiles):
            load = f"load_stationary stationary={self._stationary.access(rows, tile * cols, width)}{pairs}"
            if tile == 0:
                load += f" ; wait s{_FULL}>={asked}" + (f", s{_STORED}>={free}" if free else "")
                load += f" ; then s{_FULL}-={asked}" + (f", s{_STORED}-={free}" if free else "")
            result = f"psum[0+{width}, {self._place(block, tile)}, {self._result_format}, 1*{block.columns}]"
            multiply = (f"multiply_moving moving={self._moving.access(rows, 0, block.columns)} result={result} "
                        f"accumulate={accumulate}")
            if tile == len(block.tiles) - 1:
                multiply += f" ; then s{_FREE}+=1" + (f", s{_READY}+=1" if ends else "")
            lines += [load, multiply]
        return [*lines, f"add r1, r1, {self._slot}", f"branch r1 < {self._slot * self._slots}, 2", "move r1, 0"]

    def load_lines(self):
        """What the ``sync`` stream does."""
        first, *others = [f"dma_start ring={ring} descriptors={self._loads_each}" for ring in self._load_rings]
        body = [f"{first} ; wait s{_FREE}>=1 ; then s{_FREE}-=1", *others]
        chunks = len(self._blocks) * len(self._tiles_of_k)
        return [f"nop ; then s{_FREE}={self._slots}", f"move r1, {chunks}", *body, "add r1, r1, -1",
                f"branch r1 > 0, {-len(body) - 1}", f"nop ; wait s{_FREE}>={self._slots} ; then s{_FREE}=0"]

    def store_lines(self):
        """What the ``gpsimd`` stream does; its last instruction notifies, when all of the result is in memory."""
        lines = []
        for block in self._blocks:
            for ring in self._store_rings:
                line = f"dma_start ring={ring} descriptors={len(block.tiles)}"
                if ring == self._store_rings[0]:
                    line += f" ; wait s{_READY}>=1 ; then s{_READY}-=1"
                lines.append(line)
        return [*lines, f"nop ; wait s{_DONE}=={sum(self._stored_by_block()[-2:])} ; then s{_DONE}=0, s{OVER}+=1 ; notify"]

    # -- the descriptors --

    def _stored_by_block(self):
        return [len(block.tiles) * len(self._store_rings) for block in self._blocks]

    def descriptors(self, stationary, moving, result):
        """Descriptors by ring, as bytes, for operands and a result at these addresses."""
        lists = {ring: [] for ring in (*self._load_rings, *self._store_rings)}
        slot = 0
        for number, block in enumerate(self._blocks):
            first, width = block.tiles[0][0], sum(width for _, width in block.tiles)
            for row, contraction in self._tiles_of_k:
                shares = _shares(self._held(contraction), len(self._load_rings))
                for ring, share in zip(self._load_rings, shares):
                    at = slot * self._slot
                    lists[ring] += self._loads(self._stationary, stationary, self._product.m, row, contraction, share, first,
                                               width, at)
                    lists[ring] += self._loads(self._moving, moving, self._product.n, row, contraction, share, block.column,
                                               block.columns, at)
                slot = (slot + 1) % self._slots
            done = _DONE if number >= len(self._blocks) - 2 else _STORED
            for tile, (column, width) in enumerate(block.tiles):
                for ring, (skip, count) in zip(self._store_rings, _shares(width, len(self._store_rings))):
                    lists[ring].append(self._store(block, tile, result, column, skip, count, done))
        return {ring: b"".join(map(encode_transfer, own)) for ring, own in lists.items()}

    def _loads(self, operand, matrix, width, row, contraction, share, column, columns, at):
        """A share of an operand's rows of a tile; in pairs the partners too, each beside its element."""
        skip, rows = share
        runs = [(0, row + skip, rows)]
        if operand.paired:
            held = self._held(contraction)
            partners = min(rows, contraction - held - skip)
            # Every share has as many descriptors: where the partners of an odd contraction are none, the elements come again.
            runs.append((1, row + held + skip, partners) if partners else runs[0])
        size, step = operand.size, operand.size * (2 if operand.paired else 1)
        for place, first, count in runs:
            source = Side("memory", operand.format, matrix + (first * width + column) * size,
                          ((size, columns), (size * width, count)))
            target = Side("sbuf", operand.format, local_address(skip, at + operand.offset + place * size),
                          ((step, columns), (local_address(1, 0), count)))
            yield Transfer(source, target, update=Update(_FULL, "+=", 1))

    def _store(self, block, tile, result, row, skip, rows, done):
        name = self._result_format
        source = Side("psum", name, local_address(skip, self._place(block, tile)),
                      ((4, block.columns), (local_address(1, 0), rows)))
        target = Side("memory", name, result + 4 * ((row + skip) * self._product.n + block.column),
                      ((4, block.columns), (4 * self._product.n, rows)))
        return Transfer(source, target, update=Update(done, "+=", 1))
