# amaranth: UnusedElaboratable=no
"""hdl/memory/crossbar.py: every access reaches the group of its partition, its data come back, and engines take turns."""

from hdl.memory.crossbar import AccessCrossbar, group_size
from spec.presets import configure
from tests.simulate import simulate

CORE = configure("mini", "rows=32").chip.core


def test_random_accesses(rng):
    unit, served, worst = AccessCrossbar(CORE), 0, 0
    asks, waited = [None] * CORE.dma_engines, [0] * CORE.dma_engines
    due = [None] * CORE.dma_engines

    async def bench(ctx):
        nonlocal served, worst
        for _ in range(2000):
            for index, port in enumerate(unit.engines):
                if asks[index] is None and rng.random() < 0.7:
                    psum = int(rng.integers(2))
                    asks[index] = (psum, int(rng.integers(CORE.cols if psum else CORE.rows)), int(rng.integers(1 << 15)))
                    ctx.set(port.access, {"psum": asks[index][0], "partition": asks[index][1], "offset": asks[index][2],
                                          "write": int(rng.integers(2)), "data": index, "strobe": 255})
                    waited[index] = 0
                ctx.set(port.valid, asks[index] is not None)
            # A group answers with its number and what it was asked for in the cycle before.
            for port, word in zip(unit.engines, due):
                if word is not None:
                    assert ctx.get(port.data) == word
            reached, answers = [], {}
            for psum, groups, partitions in ((0, unit.sbuf, CORE.rows), (1, unit.psum, CORE.cols)):
                for number, group in enumerate(groups):
                    free = bool(rng.random() < 0.8)
                    ctx.set(group.ready, free)
                    if ctx.get(group.valid):
                        access = ctx.get(group.access)
                        assert access.psum == psum and access.partition // group_size(CORE, partitions) == number
                        assert asks[access.data] == (psum, access.partition, access.offset)
                        reached += [access.data] * free
                        answers[psum, number] = access.offset * 8 + number
            taken = [index for index, port in enumerate(unit.engines) if asks[index] and ctx.get(port.ready)]
            assert taken == sorted(reached)
            await ctx.tick()
            for (psum, number), word in answers.items():
                ctx.set((unit.psum if psum else unit.sbuf)[number].data, word)
            for index in range(len(asks)):
                due[index] = None
                if index in taken:
                    psum, partition, offset = asks[index]
                    due[index] = offset * 8 + partition // group_size(CORE, CORE.cols if psum else CORE.rows)
                    asks[index], served = None, served + 1

    simulate(unit, bench)
    assert served > 2000


def test_engines_of_one_group_take_turns():
    unit, order = AccessCrossbar(CORE), []

    async def bench(ctx):
        for port in unit.engines:
            ctx.set(port.valid, 1)
        ctx.set(unit.sbuf[0].ready, 1)
        for _ in range(8):
            order.append([index for index, port in enumerate(unit.engines) if ctx.get(port.ready)])
            await ctx.tick()

    simulate(unit, bench)
    assert order == [[0], [1], [2], [3]] * 2
