"""Small parts in the Amaranth simulator, with streams that stall, and an end for what hangs."""

from amaranth import ResetInserter, Signal
from amaranth.sim import Simulator

__all__ = ["receive", "send", "simulate", "stalling"]


def simulate(unit, *benches, cycles=50_000, reset=False):
    """Runs ``unit`` until every bench has returned; AssertionError after so many cycles. With ``reset`` each bench gets a
    signal that resets the unit as its second argument."""
    signal = Signal(name="reset_part")

    async def deadline(ctx):
        for _ in range(cycles):
            await ctx.tick()
        raise AssertionError(f"Not at its end after {cycles} cycles")

    simulator = Simulator(ResetInserter(signal)(unit) if reset else unit)
    simulator.add_clock(1e-6)
    for bench in benches:
        async def run(ctx, bench=bench):
            await (bench(ctx, signal) if reset else bench(ctx))
        simulator.add_testbench(run)
    simulator.add_testbench(deadline, background=True)
    simulator.run()


def stalling(rng, rate):
    """A function that is true so often, as a side that stalls."""
    return lambda: bool(rng.random() < rate)


def never():
    return False


async def send(ctx, port, payloads, stalls=never):
    """Puts payloads into a stream, one after the other."""
    for payload in payloads:
        while stalls():
            await ctx.tick()
        ctx.set(port.payload, payload)
        ctx.set(port.valid, 1)
        await ctx.tick().until(port.ready)
        ctx.set(port.valid, 0)


async def receive(ctx, port, count, stalls=never):
    """The next ``count`` payloads of a stream."""
    got = []
    while len(got) < count:
        ready = not stalls()
        ctx.set(port.ready, ready)
        _, _, valid, payload = await ctx.tick().sample(port.valid, port.payload)
        if ready and valid:
            got.append(payload)
    ctx.set(port.ready, 0)
    return got
