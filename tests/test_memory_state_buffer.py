# amaranth: UnusedElaboratable=no
"""hdl/memory/state_buffer.py with its partitions: all users at once against an array, and how long each waits."""

import numpy as np
import pytest

from hdl.memory.state_buffer import StateBuffer
from spec.presets import configure
from tests.simulate import simulate

CORE = configure("nano", "rows=16 cols=4 tile=4 sbuf_kib=1").chip.core
ROWS, WORDS = CORE.rows, CORE.sbuf_bytes // 8
LOCKSTEP = ("moving", "stationary", "vector_read")
MOST_WAITED = {"moving": 3, "vector_read": 3, "groups": 1}
"""Cycles that a read waits at most, all others reading all the time; of four cycles two are the DMA engines'."""


def word_of(content):
    return int.from_bytes(content.tobytes(), "little")


class Bench:
    """One random cycle after another, each checked."""

    def __init__(self, unit, rng, words):
        self.unit, self.rng, self.words = unit, rng, words
        self.memory = np.zeros((ROWS, WORDS, 8), np.uint8)
        self.lockstep, self.groups = dict.fromkeys(LOCKSTEP), [None] * CORE.dma_engines
        self.due, self.waited, self.served = {}, {}, {}

    def ask(self, ctx, rate):
        unit, rng = self.unit, self.rng
        for name in LOCKSTEP:
            port = getattr(unit, name)
            if self.lockstep[name] is None and rng.random() < rate:
                self.lockstep[name] = int(rng.integers(self.words))
                ctx.set(port.address, self.lockstep[name])
                self.waited[name] = 0
            ctx.set(port.enable, self.lockstep[name] is not None)
        each = ROWS // CORE.dma_engines
        for index, port in enumerate(unit.groups):
            if self.groups[index] is None and rng.random() < rate:
                self.groups[index] = {
                    "write": int(rng.random() < 0.3), "partition": index * each + int(rng.integers(each)),
                    "offset": 8 * int(rng.integers(self.words)), "data": word_of(np.frombuffer(rng.bytes(8), np.uint8)),
                    "strobe": int(rng.integers(256))}
                ctx.set(port.access, self.groups[index])
                self.waited[index] = 0
            ctx.set(port.valid, self.groups[index] is not None)
        self.write = None
        if rng.random() < rate / 2:
            self.write = (int(rng.integers(self.words)), rng.bytes(8 * ROWS), int(rng.integers(256)), int(rng.integers(1 << ROWS)))
            for name, value in zip(("address", "data", "strobe", "mask"), self.write):
                ctx.set(getattr(unit.vector_write, name), int.from_bytes(value, "little") if name == "data" else value)
        ctx.set(unit.vector_write.enable, self.write is not None)

    def check(self, ctx):
        for key, expected in self.due.items():
            port = getattr(self.unit, key) if key in LOCKSTEP else self.unit.groups[key]
            assert ctx.get(port.data) == expected, key
        self.due = {}

    def take(self, ctx):
        """Who is served in this cycle; its data are what was there before the cycle."""
        writes = []
        for name, address in self.lockstep.items():
            if address is not None and ctx.get(getattr(self.unit, name).ready):
                self.due[name] = word_of(self.memory[:, address])
                self._done(name, name)
                self.lockstep[name] = None
        for index, access in enumerate(self.groups):
            if access is not None and ctx.get(self.unit.groups[index].ready):
                row, word = access["partition"], access["offset"] // 8
                if access["write"]:
                    data = np.frombuffer(access["data"].to_bytes(8, "little"), np.uint8)
                    writes.append((row, word, data, access["strobe"]))
                else:
                    self.due[index] = word_of(self.memory[row, word])
                    self._done("groups", index)
                self.groups[index] = None
        if self.write:
            word, content, strobe, mask = self.write
            data = np.frombuffer(content, np.uint8).reshape(ROWS, 8)
            writes += [(row, word, data[row], strobe) for row in range(ROWS) if mask >> row & 1]
        for row, word, data, strobe in writes:
            lanes = [lane for lane in range(8) if strobe >> lane & 1]
            self.memory[row, word, lanes] = data[lanes]
        for key in self.waited:
            self.waited[key] += 1

    def _done(self, kind, key):
        worst, count = self.served.get(kind, (0, 0))
        self.served[kind] = (max(worst, self.waited[key]), count + 1)


@pytest.mark.parametrize("rate, words", [(0.5, WORDS), (1.0, 2), (1.0, 8)])
def test_all_users(rng, rate, words):
    unit, bench = StateBuffer(CORE), None

    async def run(ctx):
        nonlocal bench
        bench = Bench(unit, rng, words)
        for _ in range(400):
            bench.ask(ctx, rate)
            bench.check(ctx)
            bench.take(ctx)
            await ctx.tick()

    simulate(unit, run)
    for name, most in MOST_WAITED.items():
        worst, count = bench.served[name]
        assert worst <= most and count > 60, (name, worst, count)


def test_three_readers_of_three_banks_a_word_each_cycle():
    unit = StateBuffer(CORE)

    async def run(ctx):
        for index, name in enumerate(LOCKSTEP):
            ctx.set(getattr(unit, name).enable, 1)
            ctx.set(getattr(unit, name).address, index)
        ctx.set(unit.vector_write.enable, 1)
        ctx.set(unit.vector_write.address, 3)
        for _ in range(20):
            assert all(ctx.get(getattr(unit, name).ready) for name in LOCKSTEP)
            await ctx.tick()

    simulate(unit, run)
    assert CORE.sbuf_banks >= 3
