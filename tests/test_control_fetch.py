# amaranth: UnusedElaboratable=no
"""hdl/control/fetch.py: one burst for each request, streams in turn, answers to whom they belong, in any order."""

from hdl.axi import BURST_INCR, RESP_OKAY, RESP_SLVERR
from hdl.control.fetch import InstructionFetch
from hdl.control.layouts import BEATS
from tests.simulate import send, simulate, stalling

STREAMS = 3


def test_bursts_and_answers(rng):
    unit, bursts = InstructionFetch(STREAMS), []
    wanted = [[int(rng.integers(1 << 33)) * 128 for _ in range(12)] for _ in range(STREAMS)]
    got = [[] for _ in range(STREAMS)]
    memory = unit.memory

    def source(index):
        async def bench(ctx):
            await send(ctx, unit.request[index], wanted[index], stalling(rng, 0.5))
        return bench

    def sink(index):
        async def bench(ctx):
            ctx.set(unit.response[index].ready, 1)
            while len(got[index]) < len(wanted[index]) * BEATS:
                _, _, valid, beat = await ctx.tick().sample(unit.response[index].valid, unit.response[index].payload)
                if valid:
                    got[index].append((beat.data, beat.error))
        return bench

    async def addresses(ctx):
        while len(bursts) < STREAMS * 12:
            ready = bool(rng.random() < 0.5)
            ctx.set(memory.arready, ready)
            _, _, valid, number, address, length, size, burst = await ctx.tick().sample(
                memory.arvalid, memory.arid, memory.araddr, memory.arlen, memory.arsize, memory.arburst)
            if ready and valid:
                assert (length, size, burst) == (BEATS - 1, 3, BURST_INCR)
                bursts.append((number, address))

    async def answers(ctx):
        answered, open_bursts = 0, []
        while answered < STREAMS * 12 * BEATS:
            # The oldest burst of any stream may send its next word.
            open_bursts += [[number, address, 0] for number, address in bursts[len(open_bursts):]]
            oldest = {number: entry for entry in reversed(open_bursts) if entry[2] < BEATS for number in [entry[0]]}
            sends = bool(oldest) and rng.random() < 0.8
            ctx.set(memory.rvalid, sends)
            if sends:
                entry = list(oldest.values())[int(rng.integers(len(oldest)))]
                ctx.set(memory.rid, entry[0])
                ctx.set(memory.rdata, entry[1] + entry[2])
                ctx.set(memory.rresp, RESP_SLVERR if entry[2] == 5 else RESP_OKAY)
                ctx.set(memory.rlast, entry[2] == BEATS - 1)
                entry[2] += 1
                answered += 1
            await ctx.tick()

    simulate(unit, *(make(index) for make in (source, sink) for index in range(STREAMS)), addresses, answers)
    assert {number: [address for own, address in bursts if own == number] for number in range(STREAMS)} == dict(enumerate(wanted))
    for index, addresses_of in enumerate(wanted):
        assert got[index] == [(address + beat, int(beat == 5)) for address in addresses_of for beat in range(BEATS)]


def test_streams_in_turn_a_burst_a_cycle():
    unit, order = InstructionFetch(STREAMS), []

    async def bench(ctx):
        for index in range(STREAMS):
            ctx.set(unit.request[index].payload, 128 * (index + 1))
            ctx.set(unit.request[index].valid, 1)
        ctx.set(unit.memory.arready, 1)
        assert not ctx.get(unit.memory.arvalid)
        for _ in range(12):
            await ctx.tick()
            assert ctx.get(unit.memory.arvalid)
            order.append(ctx.get(unit.memory.arid))

    simulate(unit, bench)
    assert order == [0, 1, 2] * 4
