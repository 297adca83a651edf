# amaranth: UnusedElaboratable=no
"""hdl/memory/odometer.py: against counting loops; an element a cycle, from one pattern to the next."""

import itertools

from hdl.memory.odometer import Odometer
from tests.simulate import simulate, stalling


def places(first, dims, bits):
    """The place of every element, and which pairs end there."""
    for indices in itertools.product(*(range(count) for _, count in reversed(dims))):
        indices = indices[::-1]
        at = first + sum(index * step for index, (step, _) in zip(indices, dims))
        yield at % (1 << bits), sum((index + 1 == count) << pair for pair, (index, (_, count)) in enumerate(zip(indices, dims)))


def test_patterns(rng):
    bits, stalls = 10, stalling(rng, 0.3)
    unit = Odometer(bits)

    async def bench(ctx):
        for _ in range(60):
            dims = [(int(rng.integers(-300, 300)), int(rng.integers(1, 6))) for _ in range(4)]
            first = int(rng.integers(1 << bits))
            ctx.set(unit.first, first)
            ctx.set(unit.start, 1)
            await ctx.tick()
            ctx.set(unit.start, 0)
            ctx.set(unit.steps, [step for step, _ in dims])
            ctx.set(unit.counts, [count for _, count in dims])
            for place in places(first, dims, bits):
                while stalls():
                    await ctx.tick()
                assert (ctx.get(unit.at), ctx.get(unit.ends)) == place
                ctx.set(unit.advance, 1)
                await ctx.tick()
                ctx.set(unit.advance, 0)

    simulate(unit, bench)
