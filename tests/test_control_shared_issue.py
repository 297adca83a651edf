# amaranth: UnusedElaboratable=no
"""hdl/control/shared_issue.py: every stream's instructions reach the engine in order, and answers go back to who asked."""

from spec.isa import Cause

from hdl.control.shared_issue import SharedIssue
from tests.simulate import simulate

STREAMS, EACH = 2, 40


def test_answers_go_back(rng):
    unit, executed = SharedIssue(STREAMS), []
    fates = [[int(rng.choice([0, int(Cause.ILLEGAL_FIELD)], p=[0.8, 0.2])) for _ in range(EACH)] for _ in range(STREAMS)]
    answers, dones = [[] for _ in range(STREAMS)], [0] * STREAMS

    def source(index):
        port = unit.streams[index]

        async def bench(ctx):
            for number in range(EACH):
                while rng.random() < 0.3:
                    await ctx.tick()
                ctx.set(port.issue.payload.own, index << 16 | number)
                ctx.set(port.offsets[1], 3 * number + index)
                ctx.set(port.issue.valid, 1)
                while not (ctx.get(port.accepted) or ctx.get(port.refused)):
                    taken = ctx.get(port.issue.ready)
                    await ctx.tick()
                    if taken:
                        ctx.set(port.issue.valid, 0)
                answers[index].append(ctx.get(port.refused))
                await ctx.tick()
        return bench

    async def engine(ctx):
        port, under_way = unit.engine, None
        while len(executed) < STREAMS * EACH:
            while rng.random() < 0.3:
                await ctx.tick()
            ctx.set(port.issue.ready, 1)
            (own,) = await ctx.tick().sample(port.issue.payload.own).until(port.issue.valid)
            ctx.set(port.issue.ready, 0)
            index, number = own >> 16, own & 0xFFFF
            await ctx.tick().repeat(int(rng.integers(1, 4)))
            assert ctx.get(port.offsets[1]) == 3 * number + index
            executed.append((index, number))
            cause = fates[index][number]
            # The engine is done with an instruction before it answers for the next.
            if under_way is not None:
                ctx.set(port.done, 1)
                await ctx.tick()
                ctx.set(port.done, 0)
                under_way = None
            ctx.set(port.refused, cause)
            ctx.set(port.accepted, not cause)
            await ctx.tick()
            ctx.set(port.refused, 0)
            ctx.set(port.accepted, 0)
            under_way = None if cause else index
        if under_way is not None:
            ctx.set(port.done, 1)
            await ctx.tick()
            ctx.set(port.done, 0)
        await ctx.tick()

    def count(index):
        async def bench(ctx):
            while len(executed) < STREAMS * EACH or dones[index] < fates[index].count(0):
                _, _, done = await ctx.tick().sample(unit.streams[index].done)
                dones[index] += done
        return bench

    simulate(unit, *(source(index) for index in range(STREAMS)), engine, *(count(index) for index in range(STREAMS)))
    for index in range(STREAMS):
        assert [number for own, number in executed if own == index] == list(range(EACH))
        assert answers[index] == fates[index] and dones[index] == fates[index].count(0)


def test_latency():
    unit = SharedIssue(1)

    async def bench(ctx):
        ctx.set(unit.streams[0].issue.valid, 1)
        assert not ctx.get(unit.engine.issue.valid)
        await ctx.tick()
        assert ctx.get(unit.engine.issue.valid)

    simulate(unit, bench)
