# amaranth: UnusedElaboratable=no
"""hdl/dma/local_reader.py: the bytes of each run in order, from words that come one cycle after they are granted."""

import pytest

from hdl.dma.local_reader import LocalReader
from spec.memory import OFFSET_BITS
from tests.simulate import receive, send, simulate, stalling


def byte_at(partition, offset):
    return (partition * 31 + offset * 7) & 0xFF


def word_at(partition, offset, psum):
    """The word that holds a byte; a word of the partial-sum buffer stands in both halves."""
    first = offset & (-4 if psum else -8)
    word = bytes(byte_at(partition, first + lane) for lane in range(4 if psum else 8))
    return int.from_bytes(word * (2 if psum else 1), "little")


def buffer(unit, rng, rate, over):
    async def bench(ctx):
        while not over():
            ready = not rng.random() < rate
            ctx.set(unit.port.ready, ready)
            _, _, valid, access = await ctx.tick().sample(unit.port.valid, unit.port.access)
            # In any other cycle the data mean nothing.
            ctx.set(unit.port.data, word_at(access.partition, access.offset, access.psum) if valid and ready
                    else int(rng.integers(1 << 62)))
    return bench


@pytest.mark.parametrize("psum", [0, 1])
def test_runs(rng, psum):
    unit, over, runs = LocalReader(), False, []
    for number in range(60):
        align = 4 if psum else 1
        offset, length = align * int(rng.integers(1000)), align * int(rng.integers(1, 33))
        runs.append((int(rng.integers(64)), offset, min(length, 128 - offset % 128)))

    async def feed(ctx):
        ctx.set(unit.psum, psum)
        await send(ctx, unit.i, [{"address": partition << OFFSET_BITS | offset, "bytes": length, "last": 0}
                                 for partition, offset, length in runs], stalling(rng, 0.2))

    async def sink(ctx):
        nonlocal over
        for partition, offset, length in runs:
            content = b""
            while len(content) < length:
                (chunk,) = await receive(ctx, unit.o, 1, stalling(rng, 0.3))
                content += chunk.data.to_bytes(8, "little")[:chunk.bytes]
                assert not chunk.error
            assert content == bytes(byte_at(partition, offset + place) for place in range(length))
        over = True

    simulate(unit, feed, buffer(unit, rng, 0.3, lambda: over), sink)


def test_latency_and_a_word_a_cycle():
    unit, seen = LocalReader(), []

    async def bench(ctx):
        ctx.set(unit.port.ready, 1)
        ctx.set(unit.o.ready, 1)
        ctx.set(unit.i.payload, {"address": 0, "bytes": 128, "last": 0})
        ctx.set(unit.i.valid, 1)
        for _ in range(40):
            seen.append(ctx.get(unit.o.valid))
            await ctx.tick()

    simulate(unit, bench)
    assert seen == [0, 0, 0] + [1] * 37
