# amaranth: UnusedElaboratable=no
"""hdl/control/semaphores.py: against counters in Python; an update is seen in the next cycle, and none waits for more than all
other ports."""

import pytest

from hdl.control.semaphores import Semaphores
from spec.isa import UPDATES
from tests.simulate import simulate

WIDTH = 1 << 16
CHANGES = {"=": lambda old, value: value, "+=": lambda old, value: (old + value) % WIDTH,
           "-=": lambda old, value: (old - value) % WIDTH}


@pytest.mark.parametrize("ports, updaters", [(1, 0), (3, 2)])
def test_random_updates(rng, ports, updaters):
    unit, counts, users = Semaphores(ports, updaters), [0] * 256, ports + updaters
    asked, waited, worst = [None] * users, [0] * users, 0

    async def bench(ctx, reset):
        nonlocal worst
        for number in range(2000):
            resets = number % 700 == 600
            ctx.set(reset, resets)
            for index, port in enumerate(unit.update):
                if asked[index] is None and rng.random() < 0.6:
                    asked[index] = (int(rng.integers(8)), int(rng.integers(len(UPDATES))), int(rng.integers(WIDTH)))
                    semaphore, kind, value = asked[index]
                    ctx.set(port.payload, {"semaphore": semaphore, "kind": kind, "value": value})
                ctx.set(port.valid, asked[index] is not None)
            for read in unit.read:
                semaphore = int(rng.integers(8))
                ctx.set(read.semaphore, semaphore)
                assert ctx.get(read.value) == counts[semaphore]
            taken = [index for index, port in enumerate(unit.update) if asked[index] and ctx.get(port.ready)]
            assert len(taken) == any(entry is not None for entry in asked)
            await ctx.tick()
            for index in range(users):
                waited[index] = waited[index] + 1 if asked[index] else 0
            if resets:
                counts[:] = [0] * 256
                waited[:] = [0] * users
                continue
            for index in taken:
                semaphore, kind, value = asked[index]
                counts[semaphore] = CHANGES[UPDATES[kind]](counts[semaphore], value)
                worst, waited[index], asked[index] = max(worst, waited[index]), 0, None

    simulate(unit, bench, reset=True)
    assert worst == users


def test_nobody_to_read_is_rejected():
    with pytest.raises(ValueError, match="^Ports must be at least 1, not 0"):
        Semaphores(0)
