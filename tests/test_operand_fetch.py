# amaranth: UnusedElaboratable=no
"""hdl/tensor/operand_fetch.py: the elements of a pattern in every row, in pairs or not, from a buffer that is busy now and then."""

import itertools

import numpy as np
import pytest

from hdl.tensor.operand_fetch import OperandFetch
from spec.presets import configure
from tests.simulate import receive, send, simulate, stalling

CORE = configure("nano").chip.core
ROWS, SLOT = CORE.rows, CORE.slot_bits


def walk(offset, dims, size, paired=0):
    """Steps in bytes; four pairs."""
    dims = dims + [(0, 1)] * (4 - len(dims))
    return {"size": size.bit_length() - 1, "paired": paired, "offset": offset,
            "steps": [step for step, _ in dims], "counts": [count for _, count in dims]}


def places(entry):
    dims = list(zip(entry["steps"], entry["counts"]))
    if entry["paired"]:
        dims = dims[:3]
    for indices in itertools.product(*(range(count) for _, count in reversed(dims))):
        yield entry["offset"] + sum(index * step for index, (step, _) in zip(reversed(indices), dims))


def buffer(unit, memory, rng, rate, over):
    async def bench(ctx):
        while not over():
            ready = not rng.random() < rate
            ctx.set(unit.read.ready, ready)
            _, _, enable, address = await ctx.tick().sample(unit.read.enable, unit.read.address)
            word = memory[:, 8 * address:8 * address + 8].tobytes() if enable and ready else rng.bytes(8 * ROWS)
            ctx.set(unit.read.data, int.from_bytes(word, "little"))
    return bench


@pytest.mark.parametrize("slots", [1, 2])
@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_patterns(rng, slots, rate):
    unit, over = OperandFetch(CORE, slots), False
    memory = np.frombuffer(rng.bytes(ROWS * 2048), np.uint8).reshape(ROWS, 2048)
    walks, words = [], 0
    for _ in range(40):
        paired = int(SLOT >= 16 and rng.random() < 0.4)
        size = 1 if paired else int(rng.choice([1, 2, 4])) if SLOT >= 32 else int(rng.integers(1, 3))
        dims = [(size * int(rng.integers(-9, 10)), int(rng.integers(1, 5))) for _ in range(3)]
        walks.append(walk(size * (1024 // size), dims + [(int(rng.integers(-200, 200)), 2)] * paired, size, paired))
        words += -(-sum(1 for _ in places(walks[-1])) // slots)

    async def feed(ctx):
        await send(ctx, unit.i, walks, stalling(rng, rate))

    async def sink(ctx):
        nonlocal over
        got = iter(await receive(ctx, unit.o, words, stalling(rng, rate)))
        for entry in walks:
            elements, size = list(places(entry)), 1 << entry["size"]
            for start in range(0, len(elements), slots):
                word = next(got)
                for slot, place in enumerate(elements[start:start + slots]):
                    for row in range(ROWS):
                        bits = word >> SLOT * (row * slots + slot) & (1 << SLOT) - 1
                        expected = int.from_bytes(memory[row, place:place + size].tobytes(), "little")
                        if entry["paired"]:
                            expected |= int(memory[row, place + entry["steps"][3]]) << 8
                        mask = (1 << (16 if entry["paired"] else 8 * size)) - 1
                        assert bits & mask == expected
        over = True

    simulate(unit, feed, buffer(unit, memory, rng, rate, lambda: over), sink)


def test_latency_and_no_gap_between_patterns():
    unit, seen = OperandFetch(CORE, 1), []

    async def bench(ctx):
        ctx.set(unit.read.ready, 1)
        ctx.set(unit.o.ready, 1)
        ctx.set(unit.i.payload, walk(0, [(2, 8)], 2))
        ctx.set(unit.i.valid, 1)
        for _ in range(34):
            seen.append(ctx.get(unit.o.valid))
            await ctx.tick()

    simulate(unit, bench)
    assert seen == [0, 0] + [1] * 32
