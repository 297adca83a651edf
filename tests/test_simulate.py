"""tests/simulate.py: what hangs ends with a message, and a stalling stream loses nothing."""

import pytest
from amaranth.lib import fifo

from tests.simulate import receive, send, simulate, stalling


class Streams:
    """A queue's two ends as streams."""

    def __init__(self, queue):
        self.i, self.o = queue.w_stream, queue.r_stream


def test_all_arrives_in_order(rng):
    queue = fifo.SyncFIFO(width=16, depth=3)
    ends, numbers = Streams(queue), [int(number) for number in rng.integers(1 << 16, size=200)]

    async def source(ctx):
        await send(ctx, ends.i, numbers, stalling(rng, 0.4))

    async def sink(ctx):
        assert await receive(ctx, ends.o, len(numbers), stalling(rng, 0.4)) == numbers

    simulate(queue, source, sink)


def test_a_part_that_hangs_is_reported():
    queue = fifo.SyncFIFO(width=16, depth=3)

    async def sink(ctx):
        await receive(ctx, queue.r_stream, 1)

    with pytest.raises(AssertionError, match="^Not at its end after 100 cycles"):
        simulate(queue, sink, cycles=100)
