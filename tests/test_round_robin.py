# amaranth: UnusedElaboratable=no
"""hdl/round_robin.py: against a queue in Python, and nobody waits for more than all others."""

import pytest
from amaranth.sim import Simulator

from hdl.round_robin import RoundRobin


@pytest.mark.parametrize("users", [1, 2, 5, 16])
def test_turns(rng, users):
    unit, asked = RoundRobin(users), [(int(rng.integers(1 << users)), bool(rng.random() < 0.7)) for _ in range(300)]
    granted = []

    async def bench(ctx):
        for requests, taken in asked:
            ctx.set(unit.requests, requests)
            ctx.set(unit.taken, taken)
            granted.append((ctx.get(unit.grants), ctx.get(unit.any), ctx.get(unit.chosen)))
            await ctx.tick()

    simulator = Simulator(unit)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    order = list(range(users))  # who comes first now
    for (requests, taken), (grants, anyone, chosen) in zip(asked, granted):
        waiting = [user for user in order if requests >> user & 1]
        assert anyone == bool(waiting) and grants == (1 << waiting[0] if waiting else 0)
        if waiting:
            assert chosen == waiting[0]
            if taken:
                order = order[order.index(waiting[0]) + 1:] + order[:order.index(waiting[0]) + 1]


def test_nobody_to_choose_from_is_rejected():
    with pytest.raises(ValueError, match="^Users must be at least 1, not 0"):
        RoundRobin(0)
