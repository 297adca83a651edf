# amaranth: UnusedElaboratable=no
"""hdl/control/host_port.py: bursts of every kind against a window in Python; what is refused changes nothing."""

import pytest

from hdl.axi import BURST_FIXED, BURST_INCR, BURST_WRAP, RESP_OKAY, RESP_SLVERR
from hdl.control.host_port import HostPort
from tests.simulate import simulate

WORDS = 64


async def window(ctx, unit, words, over, stalls):
    """The registers: ready now and then; what is written in a cycle without ``ready`` does not count."""
    bus = unit.bus
    while not over():
        ctx.set(bus.ready, not stalls())
        ctx.set(bus.value, words[ctx.get(bus.address) // 4 % WORDS])
        _, _, write, ready, address, data = await ctx.tick().sample(bus.write, bus.ready, bus.address, bus.data)
        if write and ready:
            words[address // 4 % WORDS] = data


def address_channel(ctx, memory, channel, number, address, beats, size, burst):
    for name, value in (("id", number), ("addr", address), ("len", beats - 1), ("size", size), ("burst", burst)):
        ctx.set(getattr(memory, f"{channel}{name}"), value)
    ctx.set(getattr(memory, f"{channel}valid"), 1)


@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_random_bursts(rng, rate):
    unit, words, over = HostPort(), [int(word) for word in rng.integers(1 << 32, size=WORDS)], False
    expected, memory = list(words), unit.memory

    async def host(ctx):
        nonlocal over
        for _ in range(120):
            beats, burst = int(rng.integers(1, 9)), int(rng.choice([BURST_INCR, BURST_FIXED, BURST_WRAP], p=[0.7, 0.2, 0.1]))
            address, number = 4 * int(rng.integers(WORDS - 8)), int(rng.integers(16))
            size = 2 if rng.random() < 0.9 else int(rng.integers(2))
            refused = size != 2 or burst == BURST_WRAP
            places = [address // 4 + (beat if burst == BURST_INCR else 0) for beat in range(beats)]
            channel = "aw" if rng.random() < 0.5 else "ar"
            address_channel(ctx, memory, channel, number, address, beats, size, burst)
            await ctx.tick().until(getattr(memory, f"{channel}ready"))
            ctx.set(getattr(memory, f"{channel}valid"), 0)
            if channel == "aw":
                partial = False
                for beat, place in enumerate(places):
                    while rng.random() < rate:
                        await ctx.tick()
                    data, strobe = int(rng.integers(1 << 32)), 15 if rng.random() < 0.9 else int(rng.integers(15))
                    ctx.set(memory.wdata, data)
                    ctx.set(memory.wstrb, strobe)
                    ctx.set(memory.wlast, beat == beats - 1)
                    ctx.set(memory.wvalid, 1)
                    await ctx.tick().until(memory.wready)
                    ctx.set(memory.wvalid, 0)
                    if strobe == 15 and not refused:
                        expected[place] = data
                    partial |= strobe != 15
                while rng.random() < rate:
                    await ctx.tick()
                ctx.set(memory.bready, 1)
                who, response = await ctx.tick().sample(memory.bid, memory.bresp).until(memory.bvalid)
                ctx.set(memory.bready, 0)
                assert (who, response) == (number, RESP_SLVERR if refused or partial else RESP_OKAY)
                assert words == expected
            else:
                for beat, place in enumerate(places):
                    while rng.random() < rate:
                        await ctx.tick()
                    ctx.set(memory.rready, 1)
                    who, data, response, last = await ctx.tick().sample(
                        memory.rid, memory.rdata, memory.rresp, memory.rlast).until(memory.rvalid)
                    ctx.set(memory.rready, 0)
                    assert (who, last) == (number, beat == beats - 1)
                    assert (data, response) == ((0, RESP_SLVERR) if refused else (expected[place], RESP_OKAY))
        over = True

    simulate(unit, host, lambda ctx: window(ctx, unit, words, lambda: over, lambda: rng.random() < rate))


def test_latency_and_throughput():
    """Address to data 3 cycles; a beat in 2 from there on. A write is answered 3 cycles after its address."""
    unit = HostPort()
    memory = unit.memory

    async def host(ctx):
        ctx.set(unit.bus.ready, 1)
        ctx.set(memory.rready, 1)
        address_channel(ctx, memory, "ar", 1, 0, 4, 2, BURST_INCR)
        seen = []
        for cycle in range(1, 12):
            _, _, valid = await ctx.tick().sample(memory.rvalid)
            ctx.set(memory.arvalid, 0)
            if valid:
                seen.append(cycle)
        assert seen == [3, 5, 7, 9]
        ctx.set(memory.bready, 1)
        address_channel(ctx, memory, "aw", 1, 0, 1, 2, BURST_INCR)
        for name, value in (("wvalid", 1), ("wstrb", 15), ("wlast", 1)):
            ctx.set(getattr(memory, name), value)
        for cycle in range(1, 5):
            _, _, valid = await ctx.tick().sample(memory.bvalid)
            ctx.set(memory.awvalid, 0)
            assert valid == (cycle == 3)

    simulate(unit, host)
