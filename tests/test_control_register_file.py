# amaranth: UnusedElaboratable=no
"""hdl/control/register_file.py: against an array, zero after every reset, all reads in the cycle of their address."""

import pytest

from hdl.control.register_file import RegisterFile
from tests.simulate import simulate


@pytest.mark.parametrize("width, depth, reads", [(32, 64, 3), (16, 256, 1), (8, 5, 2)])
def test_random_accesses(rng, width, depth, reads):
    unit, words = RegisterFile(width, depth, reads), [0] * depth

    async def bench(ctx, reset):
        for number in range(1500):
            resets = number % 500 == 400
            address, data, enable = int(rng.integers(depth)), int(rng.integers(1 << width)), bool(rng.random() < 0.5)
            ctx.set(unit.write_address, address)
            ctx.set(unit.write_data, data)
            ctx.set(unit.write_enable, enable and not resets)
            ctx.set(reset, resets)
            for read in unit.read:
                place = address if rng.random() < 0.3 else int(rng.integers(depth))
                ctx.set(read.address, place)
                assert ctx.get(read.data) == words[place]
            await ctx.tick()
            if resets:
                words[:] = [0] * depth
            elif enable:
                words[address] = data

    simulate(unit, bench, reset=True)
    assert any(words)
