# amaranth: UnusedElaboratable=no
"""hdl/dma/cast.py against golden formats: elements of a chunk one by one, whole chunks where nothing is cast, with stalls."""

import numpy as np
import pytest

from golden.formats import convert
from hdl.dma.cast import Cast
from spec.formats import FORMATS
from tests.simulate import receive, send, simulate, stalling

NAMES = list(FORMATS)


def chunks_of(rng, name, count):
    """Chunks of whole elements of a format, with random patterns; and an error now and then."""
    size = FORMATS[name].width // 8
    made = []
    for _ in range(count):
        number = int(rng.integers(1, 8 // size + 1))
        made.append({"data": int.from_bytes(rng.bytes(size * number), "little"), "bytes": size * number,
                     "error": int(rng.random() < 0.1)})
    return made


def elements(chunks, size):
    for chunk in chunks:
        for place in range(0, chunk["bytes"], size):
            yield chunk["data"] >> 8 * place & (1 << 8 * size) - 1, chunk["error"]


@pytest.mark.parametrize("source, target", [("fp32", "bf16"), ("bf16", "fp32"), ("fp8_e4m3", "fp16"), ("int8", "fp32"),
                                            ("fp32", "int8"), ("fp16", "int16")])
def test_casts(rng, source, target):
    unit, chunks = Cast(), chunks_of(rng, source, 60)
    size, saturate = FORMATS[source].width // 8, int(rng.integers(2))
    bits, errors = zip(*elements(chunks, size))
    expected = convert(np.array(bits, dtype=f"u{size}"), source, target, saturate=bool(saturate))

    async def feed(ctx):
        for name, value in (("source", NAMES.index(source)), ("target", NAMES.index(target)), ("saturate", saturate),
                            ("source_size", size.bit_length() - 1), ("target_size", (FORMATS[target].width // 8).bit_length() - 1)):
            ctx.set(getattr(unit, name), value)
        await send(ctx, unit.i, chunks, stalling(rng, 0.3))

    async def sink(ctx):
        got = await receive(ctx, unit.o, len(bits), stalling(rng, 0.3))
        mask = (1 << FORMATS[target].width) - 1
        assert [chunk.data & mask for chunk in got] == [int(word) for word in expected]
        assert [chunk.error for chunk in got] == list(errors)
        assert {chunk.bytes for chunk in got} == {FORMATS[target].width // 8}

    simulate(unit, feed, sink)


def test_nothing_to_cast_passes_at_once(rng):
    unit, chunks = Cast(), chunks_of(rng, "bf16", 20)

    async def bench(ctx):
        ctx.set(unit.source, NAMES.index("bf16"))
        ctx.set(unit.target, NAMES.index("bf16"))
        ctx.set(unit.o.ready, 1)
        for chunk in chunks:
            ctx.set(unit.i.payload, chunk)
            ctx.set(unit.i.valid, 1)
            out = ctx.get(unit.o.payload)
            assert ctx.get(unit.o.valid) and ctx.get(unit.i.ready) and (out.data, out.bytes) == (chunk["data"], chunk["bytes"])
            await ctx.tick()

    simulate(unit, bench)


def test_an_element_a_cycle_after_two():
    unit, seen = Cast(), []

    async def bench(ctx):
        ctx.set(unit.source, NAMES.index("bf16"))
        ctx.set(unit.target, NAMES.index("fp32"))
        ctx.set(unit.source_size, 1)
        ctx.set(unit.target_size, 2)
        ctx.set(unit.o.ready, 1)
        ctx.set(unit.i.payload, {"data": 0x3F80_4000_4040_4080, "bytes": 8, "error": 0})
        ctx.set(unit.i.valid, 1)
        for _ in range(22):
            seen.append(ctx.get(unit.o.valid))
            await ctx.tick()

    simulate(unit, bench)
    assert seen == [0, 0] + [1] * 20
