# amaranth: UnusedElaboratable=no
"""hdl/control/prefetch.py: the words of the latest target, whatever was on its way when it jumped."""

import collections

import pytest

from hdl.control.layouts import BEATS
from hdl.control.prefetch import Prefetch
from spec.isa import INSTRUCTION_BYTES
from tests.simulate import simulate


def word(address, beat):
    """What memory holds, as data and error."""
    return (address // INSTRUCTION_BYTES * 1000 + beat) * 7919, (address // INSTRUCTION_BYTES + beat) % 11 == 0


async def memory(ctx, unit, answers, until, stalls):
    """Answers each request in order, now and then not at all for a while."""
    while not until():
        go = not stalls()
        ctx.set(unit.request.ready, go)
        sends = bool(answers) and not stalls()
        if sends:
            data, error = word(*answers.popleft())
            ctx.set(unit.response.payload, {"data": data, "error": error})
        ctx.set(unit.response.valid, sends)
        _, _, valid, address = await ctx.tick().sample(unit.request.valid, unit.request.payload)
        if go and valid:
            answers.extend((address, beat) for beat in range(BEATS))


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_jumps(rng, rate):
    unit, answers, over = Prefetch(), collections.deque(), False

    async def sequencer(ctx):
        nonlocal over
        for _ in range(40):
            target = int(rng.integers(1000)) * INSTRUCTION_BYTES
            ctx.set(unit.target, target)
            ctx.set(unit.jump, 1)
            ctx.set(unit.beats.ready, 0)
            await ctx.tick()
            ctx.set(unit.jump, 0)
            taken, wanted = 0, int(rng.integers(0, 8 * BEATS))
            while taken < wanted:
                ready = not rng.random() < rate
                ctx.set(unit.beats.ready, ready)
                _, _, valid, beat = await ctx.tick().sample(unit.beats.valid, unit.beats.payload)
                if ready and valid:
                    place = target + taken // BEATS * INSTRUCTION_BYTES
                    assert (beat.data, bool(beat.error)) == word(place, taken % BEATS)
                    taken += 1
        over = True

    simulate(unit, sequencer, lambda ctx: memory(ctx, unit, answers, lambda: over, lambda: rng.random() < rate))


def test_latency_and_throughput():
    unit, answers, over = Prefetch(), collections.deque(), False

    async def sequencer(ctx):
        nonlocal over
        ctx.set(unit.jump, 1)
        await ctx.tick()
        ctx.set(unit.jump, 0)
        ctx.set(unit.beats.ready, 1)
        asked = came = cycle = 0
        while not ctx.get(unit.beats.valid):
            await ctx.tick()
            cycle += 1
            asked = asked or (cycle if ctx.get(unit.request.valid) else 0)
            came = came or (cycle if ctx.get(unit.response.valid) else 0)
        assert asked == 1 and cycle == came + 2
        for _ in range(20 * BEATS):
            assert ctx.get(unit.beats.valid)
            await ctx.tick()
        over = True

    simulate(unit, lambda ctx: memory(ctx, unit, answers, lambda: over, lambda: False), sequencer)
