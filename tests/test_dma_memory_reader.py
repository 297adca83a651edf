# amaranth: UnusedElaboratable=no
"""hdl/dma/memory_reader.py: bytes in order from answers in any order; whole words asked for, as few as there are."""

import pytest

from hdl.dma.memory_reader import SLOTS, MemoryReader
from tests.simulate import receive, send, simulate, stalling


def word_at(address):
    return bytes((address + lane) * 5 & 0xFF for lane in range(8))


def is_bad(address):
    return address // 8 % 17 == 3


def memory(unit, rng, rate, over, asked):
    """Takes bursts now and then, and answers a random one's next word."""
    async def bench(ctx):
        waiting = []
        while not over():
            ready = not rng.random() < rate
            ctx.set(unit.address.ready, ready)
            chosen = waiting[int(rng.integers(len(waiting)))] if waiting and not rng.random() < rate else None
            ctx.set(unit.response_valid, chosen is not None)
            if chosen:
                number, address, left = chosen
                ctx.set(unit.response, {"data": int.from_bytes(word_at(address), "little"), "id": number,
                                        "error": int(is_bad(address))})
                chosen[1:] = address + 8, left - 1
                waiting = [entry for entry in waiting if entry[2]]
            _, _, valid, burst = await ctx.tick().sample(unit.address.valid, unit.address.payload)
            if ready and valid:
                assert burst.address % 8 == 0 and burst.id not in [entry[0] for entry in waiting]
                waiting.append([burst.id, burst.address, burst.length + 1])
                asked.append((burst.address, burst.length + 1))
                assert len(waiting) <= SLOTS
    return bench


@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_runs(rng, rate):
    unit, over, asked, runs = MemoryReader(), False, [], []
    for _ in range(80):
        address = int(rng.integers(1 << 30))
        runs.append((address, int(rng.integers(1, 129 - address % 128))))

    async def feed(ctx):
        await send(ctx, unit.i, [{"address": address, "bytes": length, "last": 0} for address, length in runs],
                   stalling(rng, rate))

    async def sink(ctx):
        nonlocal over
        for address, length in runs:
            place = address
            while place < address + length:
                (chunk,) = await receive(ctx, unit.o, 1, stalling(rng, rate))
                lane = place % 8
                assert chunk.bytes == min(8 - lane, address + length - place) and chunk.error == is_bad(place)
                assert chunk.data.to_bytes(8, "little")[:chunk.bytes] == word_at(place - lane)[lane:lane + chunk.bytes]
                place += chunk.bytes
        over = True

    simulate(unit, feed, memory(unit, rng, rate, lambda: over, asked), sink)
    assert asked == [(address & -8, (address + length - 1) // 8 - address // 8 + 1) for address, length in runs]


def test_latency_and_a_word_a_cycle():
    unit = MemoryReader()

    async def bench(ctx):
        ctx.set(unit.address.ready, 1)
        ctx.set(unit.o.ready, 1)
        await send(ctx, unit.i, [{"address": 0, "bytes": 128, "last": 0}])
        assert ctx.get(unit.address.valid)  # a cycle after the run
        ctx.set(unit.response_valid, 1)
        for cycle in range(16):
            ctx.set(unit.response, {"data": cycle, "id": 0, "error": 0})
            assert ctx.get(unit.o.valid) == (cycle >= 2) and (cycle < 2 or ctx.get(unit.o.payload.data) == cycle - 2)
            await ctx.tick()

    simulate(unit, bench)
