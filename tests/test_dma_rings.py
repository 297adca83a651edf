# amaranth: UnusedElaboratable=no
"""hdl/dma/rings.py: against rings in Python: turns, doorbells, failures and restarts in any order."""

from hdl.dma.rings import Rings
from spec.dma import DESCRIPTOR_BYTES, MOST_PENDING
from spec.isa import Cause
from tests.simulate import simulate

RINGS = 3


class Ring:
    """One ring as the host believes it to be."""

    def __init__(self):
        self.base = self.size = self.position = self.pending = 0
        self.cause = Cause.NONE

    @property
    def works(self):
        return self.size != 0 and self.cause == Cause.NONE


def test_random_events(rng):
    unit, rings, taken, failures = Rings(RINGS), [Ring() for _ in range(RINGS)], [], 0

    async def bench(ctx):
        nonlocal failures
        current, order = None, list(range(RINGS))
        for _ in range(3000):
            events = [rng.choice(["none", "doorbell", "restart"], p=[0.8, 0.19, 0.01]) for _ in rings]
            amounts = [int(rng.choice([1, 2, 5, 60_000], p=[0.5, 0.3, 0.19, 0.01])) for _ in rings]
            for index, (ring, port) in enumerate(zip(rings, unit.ring)):
                if events[index] == "restart" and index != current:
                    ring.base, ring.size = DESCRIPTOR_BYTES * int(rng.integers(1 << 20)), int(rng.integers(5))
                    ctx.set(port.base, ring.base)
                    ctx.set(port.size, ring.size)
                elif events[index] == "restart":
                    events[index] = "none"
                ctx.set(port.restart, events[index] == "restart")
                ctx.set(port.doorbell, events[index] == "doorbell")
                ctx.set(port.descriptors, amounts[index])
                assert (ctx.get(port.pending), ctx.get(port.cause)) == (ring.pending, ring.cause)
                assert ctx.get(port.address) == ring.base + ring.position * DESCRIPTOR_BYTES
            ready = [index for index in order if rings[index].works and rings[index].pending]
            assert ctx.get(unit.valid) == bool(ready)
            takes = bool(ready) and current is None and rng.random() < 0.5
            if ready:
                assert ctx.get(unit.address) == ctx.get(unit.ring[ready[0]].address)
            ctx.set(unit.take, takes)
            ends = current is not None and rng.random() < 0.5
            cause = Cause.ADDRESS_RANGE if ends and rng.random() < 0.02 else Cause.NONE
            ctx.set(unit.done, ends)
            ctx.set(unit.cause, int(cause))
            assert ctx.get(unit.failed) == (cause != Cause.NONE)
            await ctx.tick()
            for index, ring in enumerate(rings):
                added = amounts[index] if events[index] == "doorbell" and ring.works else 0
                finished = ends and index == current and cause == Cause.NONE
                ring.pending = min(MOST_PENDING, ring.pending + added - (finished and ring.pending > 0))
                if ends and index == current:
                    ring.cause = cause
                if finished:
                    ring.position = (ring.position + 1) % ring.size
                if events[index] == "restart":
                    ring.position, ring.pending, ring.cause = 0, 0, Cause.NONE
            failures += cause != Cause.NONE
            if ends:
                current = None
            if takes:
                current = ready[0]
                taken.append(current)
                order = order[order.index(current) + 1:] + order[:order.index(current) + 1]

    simulate(unit, bench)
    assert failures > 3 and all(taken.count(index) > 100 for index in range(RINGS))
