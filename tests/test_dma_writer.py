# amaranth: UnusedElaboratable=no
"""hdl/dma/writer.py: runs into memory and the state buffer, whole and added; what is dry; the cycles of an accumulation."""

import numpy as np
import pytest

from hdl.dma.writer import OLD_ID, Writer
from spec.memory import OFFSET_BITS
from tests.simulate import send, simulate, stalling

SPAN = 1 << 12


class Around:
    """The queue before the writer, and memory or buffer behind it, a step a cycle."""

    def __init__(self, unit, rng, content, rate, local):
        self.unit, self.rng, self.rate, self.local = unit, rng, rate, local
        self.memory = np.frombuffer(rng.bytes(SPAN), np.uint8).copy()
        self.first = self.memory.copy()
        self.queue, self.bursts, self.words, self.answers, self.old = bytearray(content), [], [], 0, []
        self.finished, self.cycles, self.read_data = 0, 0, None

    def stalls(self):
        return bool(self.rng.random() < self.rate)

    def put(self, place, data, strobe):
        for lane in range(8):
            if strobe >> lane & 1:
                self.memory[(place & -8) + lane] = data >> 8 * lane & 0xFF

    def word(self, place):
        return int.from_bytes(self.memory[place & -8:][:8].tobytes(), "little")

    async def step(self, ctx):
        unit = self.unit
        level = min(len(self.queue), int(self.rng.integers(0, 17)) if self.stalls() else 16)
        ctx.set(unit.level, level)
        ctx.set(unit.data, int.from_bytes(self.queue[:8], "little"))
        for port in (unit.address, unit.word, unit.old_address, unit.port):
            ctx.set(port.ready, not self.stalls())
        ctx.set(unit.port.data, self.read_data if self.read_data is not None else int(self.rng.integers(1 << 62)))
        ctx.set(unit.old_valid, bool(self.old) and not self.stalls())
        if self.old:
            ctx.set(unit.old, self.word(self.old[0]))
        answers = self.answers > 0 and not self.stalls()
        ctx.set(unit.answered, answers)
        take, finished = ctx.get(unit.take), ctx.get(unit.finished)
        assert take <= level
        self.read_data = None
        if ctx.get(unit.old_valid):
            self.old.pop(0)
        self._memory(ctx)
        if ctx.get(unit.port.valid) and ctx.get(unit.port.ready):
            access = ctx.get(unit.port.access)
            place = access.partition << OFFSET_BITS | access.offset
            if access.write:
                self.put(place, access.data, access.strobe)
            else:
                self.read_data = self.word(place)
        self.answers -= answers
        del self.queue[:take]
        self.finished += finished
        self.cycles += 1
        await ctx.tick()

    def _memory(self, ctx):
        unit = self.unit
        if ctx.get(unit.old_address.valid) and ctx.get(unit.old_address.ready):
            assert ctx.get(unit.old_address.payload.id) == OLD_ID and ctx.get(unit.old_address.payload.length) == 0
            self.old.append(ctx.get(unit.old_address.payload.address))
        if ctx.get(unit.address.valid) and ctx.get(unit.address.ready):
            self.bursts.append((ctx.get(unit.address.payload.address), ctx.get(unit.address.payload.length) + 1))
        if ctx.get(unit.word.valid) and ctx.get(unit.word.ready):
            self.words.append(ctx.get(unit.word.payload))
        # Words belong to the bursts in order; a burst is answered when its last word is there.
        while self.bursts and len(self.words) >= self.bursts[0][1]:
            place, length = self.bursts.pop(0)
            assert [word.last for word in self.words[:length]] == [0] * (length - 1) + [1]
            for beat, word in enumerate(self.words[:length]):
                self.put(place + 8 * beat, word.data, word.strobe)
            del self.words[:length]
            self.answers += 1


def write(rng, runs, content, rate, local, accumulate=0, dry=0):
    """What is around the writer when all runs are written and answered."""
    unit = Writer()
    around = Around(unit, rng, content, rate, local)

    async def feed(ctx):
        for name, value in (("local", local), ("accumulate", accumulate), ("dry", dry)):
            ctx.set(getattr(unit, name), value)
        await send(ctx, unit.i, [{"address": address, "bytes": length, "last": index == len(runs) - 1}
                                 for index, (address, length) in enumerate(runs)], stalling(rng, rate / 2))

    async def run(ctx):
        while not around.finished:
            await around.step(ctx)
        while not (ctx.get(unit.settled) and not around.bursts and not ctx.get(unit.word.valid)):
            await around.step(ctx)

    simulate(unit, feed, run)
    assert around.finished == 1 and not around.queue and not around.answers
    return around


def random_runs(rng, count, align=1):
    """Runs that do not overlap."""
    runs = []
    for block in rng.permutation(SPAN // 128)[:count]:
        offset = align * int(rng.integers(128 // align))
        runs.append((int(block) * 128 + offset, align * int(rng.integers(1, (128 - offset) // align + 1))))
    return runs


@pytest.mark.parametrize("local", [0, 1])
@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_bytes_in_place(rng, local, rate):
    runs = random_runs(rng, 20)
    content = rng.bytes(sum(length for _, length in runs))
    around, at = write(rng, runs, content, rate, local), 0
    for address, length in runs:
        around.first[address:address + length] = np.frombuffer(content[at:at + length], np.uint8)
        at += length
    assert (around.memory == around.first).all()


@pytest.mark.parametrize("local", [0, 1])
@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_accumulated_elements(rng, local, rate):
    runs = random_runs(rng, 6, 4)
    values = rng.standard_normal(sum(length for _, length in runs) // 4).astype(np.float32)
    around = write(rng, runs, values.tobytes(), rate, local, accumulate=1)
    at = 0
    for address, length in runs:
        old = around.first[address:address + length].view(np.float32)
        with np.errstate(all="ignore"):
            total = old + values[at:at + length // 4]
        got = around.memory[address:address + length].view(np.float32)
        whole = ~np.isnan(total)
        assert (got[whole].view(np.uint32) == total[whole].view(np.uint32)).all() and np.isnan(got[~whole]).all()
        around.first[address:address + length] = around.memory[address:address + length]
        at += length // 4
    assert (around.memory == around.first).all()


@pytest.mark.parametrize("local", [0, 1])
def test_what_is_dry_writes_nothing(rng, local):
    around = write(rng, [(8, 64), (300, 20)], rng.bytes(84), 0.2, local, dry=1)
    assert (around.memory == around.first).all()


@pytest.mark.parametrize("local, accumulate, most", [(1, 0, 1), (0, 0, 1), (1, 1, 6), (0, 1, 8)])
def test_cycles_a_word_or_an_element(rng, local, accumulate, most):
    """A word a cycle; an accumulated element in 6 cycles, and in memory in 8 where memory answers at once."""
    count = 32
    size = 4 if accumulate else 8
    runs = [(128 * index, 128) for index in range(count * size // 128)]
    values = np.ones(count * size // 4, np.float32)
    around = write(rng, runs, values.tobytes(), 0.0, local, accumulate)
    assert around.cycles <= most * count + 6
