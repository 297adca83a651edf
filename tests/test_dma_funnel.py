# amaranth: UnusedElaboratable=no
"""hdl/dma/funnel.py: bytes come out in the order they went in, whatever their portions; 8 a cycle."""

from amaranth.sim import Simulator

from hdl.dma.funnel import Funnel


def run(chunks, take):
    """All bytes that come out, and the cycles; ``take`` chooses how many of those that are there."""
    unit, out, cycles = Funnel(), bytearray(), 0
    total = sum(map(len, chunks))

    async def bench(ctx):
        nonlocal cycles
        sent = 0
        while len(out) < total:
            ctx.set(unit.i.valid, sent < len(chunks))
            if sent < len(chunks):
                # What is above the bytes of a chunk must not matter.
                ctx.set(unit.i.payload.data, int.from_bytes(chunks[sent] + b"\xAA" * (8 - len(chunks[sent])), "little"))
                ctx.set(unit.i.payload.bytes, len(chunks[sent]))
            amount = take(min(8, ctx.get(unit.level)))
            ctx.set(unit.take, amount)
            out.extend(ctx.get(unit.data).to_bytes(8, "little")[:amount])
            sent += sent < len(chunks) and ctx.get(unit.i.ready)
            cycles += 1
            await ctx.tick()

    simulator = Simulator(unit)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return bytes(out), cycles


def test_random_portions(rng):
    chunks = [rng.bytes(int(rng.integers(1, 9))) for _ in range(300)]
    assert run(chunks, lambda there: int(rng.integers(0, there + 1)))[0] == b"".join(chunks)


def test_a_word_a_cycle(rng):
    chunks = [rng.bytes(3), *(rng.bytes(8) for _ in range(100))]
    out, cycles = run(chunks, lambda there: there)
    assert out == b"".join(chunks) and cycles <= len(chunks) + 1


def test_whole_words_out_of_words_with_other_boundaries(rng):
    chunks = [rng.bytes(3), *(rng.bytes(8) for _ in range(100)), rng.bytes(5)]
    out, cycles = run(chunks, lambda there: there // 8 * 8)
    assert out == b"".join(chunks) and cycles <= len(chunks) + 2
