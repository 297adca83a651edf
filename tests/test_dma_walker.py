# amaranth: UnusedElaboratable=no
"""hdl/dma/walker.py: runs against counting loops, with stalls."""

import itertools

from amaranth.sim import Simulator

from hdl.dma.layouts import BURST_BYTES
from hdl.dma.walker import Walker


def elements(address, dims):
    """The address of every element, by counting loops."""
    for indices in itertools.product(*(range(count) for _, count in reversed(dims))):
        yield address + sum(index * step for index, (step, _) in zip(reversed(indices), dims))


def walk(sides, size, stalls):
    """The runs of each side, as (address, bytes, last), and the cycles that all took."""
    unit, runs, cycles = Walker(), [[] for _ in sides], 0

    async def bench(ctx):
        nonlocal cycles
        ctx.set(unit.size, size)
        for number, (address, dims) in enumerate(sides):
            ctx.set(unit.side.address, address)
            for index in range(4):
                step, count = dims[index] if index < len(dims) else (0, 1)
                ctx.set(unit.side.dims[index].step, step)
                ctx.set(unit.side.dims[index].count, count)
            ctx.set(unit.start, 1)
            await ctx.tick()
            ctx.set(unit.start, 0)
            while not runs[number] or not runs[number][-1][2]:
                ready = not next(stalls)
                ctx.set(unit.o.ready, ready)
                if ready and ctx.get(unit.o.valid):
                    run = unit.o.payload
                    runs[number].append((ctx.get(run.address), ctx.get(run.bytes), ctx.get(run.last)))
                cycles += 1
                await ctx.tick()
            ctx.set(unit.o.ready, 0)
            assert not ctx.get(unit.o.valid)

    simulator = Simulator(unit)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return runs, cycles


def test_every_element_in_order(rng):
    for size in range(3):
        width, sides = 1 << size, []
        for _ in range(25):
            dims = [(width if rng.random() < 0.6 else width * int(rng.integers(-50, 51)), int(rng.integers(1, 60)))]
            dims += [(width * int(rng.integers(-400, 401)), int(rng.integers(1, 4))) for _ in range(rng.integers(0, 4))]
            sides.append((1 << 20 | width * int(rng.integers(1000)), dims))
        runs, _ = walk(sides, size, (bool(rng.random() < 0.3) for _ in itertools.count()))
        for (address, dims), own in zip(sides, runs):
            got = [place for first, length, _ in own for place in range(first, first + length, width)]
            assert got == list(elements(address, dims))
            assert [last for _, _, last in own] == [0] * (len(own) - 1) + [1]
            for first, length, _ in own:
                assert first // BURST_BYTES == (first + length - 1) // BURST_BYTES


def test_a_run_a_cycle():
    runs, cycles = walk([(64, [(1, 1024), (2000, 3)])], 0, itertools.repeat(False))
    assert len(runs[0]) == cycles and max(length for _, length, _ in runs[0]) == BURST_BYTES
