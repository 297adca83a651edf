# amaranth: UnusedElaboratable=no
"""hdl/memory/pattern_range.py: what a pattern reaches, against numpy; 4 cycles."""

import numpy as np

from hdl.memory.pattern_range import PatternRange
from tests.simulate import simulate


def reached(offset, dims, size):
    """Bytes of all elements' beginnings."""
    at = np.array([offset])
    for step, count in dims:
        at = (at[:, None] + step * (1 << size) * np.arange(count)).ravel()
    return at


def test_random_patterns(rng):
    unit, inside = PatternRange(), 0

    async def bench(ctx):
        nonlocal inside
        for _ in range(300):
            dims = [(int(rng.integers(-20, 21)), int(rng.integers(1, 8))) for _ in range(4)]
            size, paired, limit = int(rng.integers(3)), bool(rng.random() < 0.3), int(rng.choice([512, 4096, 1 << 15]))
            offset, pairs = int(rng.integers(-64, limit)), int(rng.integers(1, 4))
            if rng.random() < 0.8:
                offset &= -(1 << size)
            if paired:
                dims[3] = (dims[3][0], 2)
            ctx.set(unit.pattern, {f"step{index}": step for index, (step, _) in enumerate(dims)}
                    | {f"count{index}": count for index, (_, count) in enumerate(dims)})
            for name, value in (("offset", offset), ("size", size), ("paired", paired), ("limit", limit), ("inner_pairs", pairs)):
                ctx.set(getattr(unit, name), value)
            ctx.set(unit.start, 1)
            await ctx.tick()
            ctx.set(unit.start, 0)
            for _ in range(4):
                assert not ctx.get(unit.done)
                await ctx.tick()
            assert ctx.get(unit.done)
            at = reached(offset, dims, size)
            fits = at.min() >= 0 and at.max() + (1 << size) <= limit and offset % (1 << size) == 0
            inside += fits
            assert ctx.get(unit.in_range) == fits
            assert (ctx.get(unit.lowest), ctx.get(unit.highest)) == (at.min(), at.max())
            assert ctx.get(unit.elements) == len(at) // (2 if paired else 1) and not ctx.get(unit.too_many)
            assert ctx.get(unit.inner) == np.prod([count for _, count in dims[:pairs]])

    simulate(unit, bench)
    assert 30 < inside < 270


def test_too_many_elements():
    unit = PatternRange()

    async def bench(ctx):
        for counts, too_many in (((65535, 1, 1, 1), 0), ((256, 256, 1, 1), 1), ((65535, 65535, 65535, 65535), 1),
                                 ((255, 257, 1, 1), 0)):
            ctx.set(unit.pattern, {f"count{index}": count for index, count in enumerate(counts)})
            ctx.set(unit.start, 1)
            await ctx.tick()
            ctx.set(unit.start, 0)
            await ctx.tick().until(unit.done)
            assert ctx.get(unit.too_many) == too_many

    simulate(unit, bench)
