# amaranth: UnusedElaboratable=no
"""hdl/memory/sram.py: against an array; a read beside a write gives the old word, and holds until the next."""

import pytest

from hdl.memory.sram import SRAM
from tests.simulate import simulate


@pytest.mark.parametrize("width, depth, lanes", [(32, 16, 1), (64, 8, 8), (12, 5, 3)])
def test_random_accesses(rng, width, depth, lanes):
    unit, words, each = SRAM(width, depth, lanes), [0] * depth, width // lanes
    shown = 0

    async def bench(ctx, reset):
        nonlocal shown
        for number in range(1000):
            write, read, data = int(rng.integers(depth)), int(rng.integers(depth)), int(rng.integers(1 << width, dtype="uint64")
                                                                                        if width < 64 else rng.integers(1 << 63))
            enable, reads = int(rng.integers(1 << lanes)), bool(rng.random() < 0.6)
            for name, value in (("write_address", write), ("write_data", data), ("write_enable", enable),
                                ("read_address", read), ("read_enable", reads)):
                ctx.set(getattr(unit, name), value)
            ctx.set(reset, number % 300 == 250)  # contents stay
            shown = words[read] if reads else shown
            mask = sum((1 << each) - 1 << each * lane for lane in range(lanes) if enable >> lane & 1)
            words[write] = words[write] & ~mask | data & mask
            await ctx.tick()
            if number % 300 != 250:
                assert ctx.get(unit.read_data) == shown
            elif not reads:
                shown = ctx.get(unit.read_data)  # the word shown in a reset does not matter

    simulate(unit, bench, reset=True)


@pytest.mark.parametrize("parameters, message", [
    ((0, 8), "A memory needs a width of at least 1 and a depth of at least 2, not 0 and 8"),
    ((8, 1), "A memory needs a width of at least 1 and a depth of at least 2, not 8 and 1"),
    ((8, 8, 3), "Lanes must divide the width, 8, not 3")])
def test_sizes_that_cannot_be(parameters, message):
    with pytest.raises(ValueError, match=message):
        SRAM(*parameters)
