# amaranth: UnusedElaboratable=no
"""hdl/control/retire.py: updates in the order of the instructions, none before its unit is done, none twice."""

from hdl.control.retire import IN_FLIGHT, Retire, Unit
from tests.simulate import receive, send, simulate, stalling

DONE = {Unit.LOAD: "load_done", Unit.MULTIPLY: "multiply_done", Unit.VECTOR: "vector_done"}


def entry(unit, updates=(), notify=0):
    """An instruction with (semaphore, value) updates."""
    slots = [{"used": 1, "change": {"semaphore": semaphore, "kind": 1, "value": value}} for semaphore, value in updates]
    slots += [{"used": 0, "change": {"semaphore": 0, "kind": 0, "value": 0}}] * (2 - len(updates))
    return {"unit": unit, "notify": notify, "updates": slots}


def test_order_and_units(rng):
    unit, entries, sent, seen = Retire(), [], [], []
    for number in range(300):
        updates = [(int(rng.integers(4)), 2 * number + index) for index in range(int(rng.integers(3)))]
        entries.append((Unit(int(rng.integers(4))), updates, int(rng.random() < 0.2)))
    done, notified = {kind: 0 for kind in DONE}, 0

    async def source(ctx):
        for kind, updates, notify in entries:
            await send(ctx, unit.i, [entry(kind, updates, notify)], stalling(rng, 0.2))
            sent.append((kind, updates, notify))

    async def units(ctx):
        while sum(done.values()) < sum(kind != Unit.NONE for kind, _, _ in entries):
            for kind, name in DONE.items():
                under_way = sum(own == kind for own, _, _ in sent) - done[kind]
                finishes = bool(under_way and rng.random() < 0.2)
                ctx.set(getattr(unit, name), finishes)
                done[kind] += finishes
            await ctx.tick()
            for name in DONE.values():
                ctx.set(getattr(unit, name), 0)

    async def sink(ctx):
        for kind, updates, _ in entries:
            for semaphore, value in updates:
                (got,) = await receive(ctx, unit.update, 1, stalling(rng, 0.3))
                assert (got.semaphore, got.kind, got.value) == (semaphore, 1, value)
                seen.append(value)
                # Its unit has been done so often: for it and all of its kind before it.
                instruction = value // 2
                assert kind == Unit.NONE or done[kind] >= sum(own == kind for own, _, _ in entries[:instruction + 1])

    async def notifications(ctx):
        nonlocal notified
        while notified < sum(notify for _, _, notify in entries):
            await ctx.tick()
            notified += ctx.get(unit.notify)

    simulate(unit, source, units, sink, notifications)
    assert len(seen) == sum(len(updates) for _, updates, _ in entries)


def test_latency_pending_and_room():
    unit = Retire()

    async def bench(ctx):
        assert ctx.get(unit.empty) and not ctx.get(unit.pending)
        ctx.set(unit.update.ready, 1)
        ctx.set(unit.semaphore, 9)
        await send(ctx, unit.i, [entry(Unit.VECTOR, [(9, 1), (7, 2)])])
        await send(ctx, unit.i, [entry(Unit.NONE)] * (IN_FLIGHT - 1))
        assert not ctx.get(unit.i.ready) and ctx.get(unit.pending) and not ctx.get(unit.update.valid)
        ctx.set(unit.vector_done, 1)
        await ctx.tick()
        ctx.set(unit.vector_done, 0)
        assert ctx.get(unit.update.valid) and ctx.get(unit.update.payload.semaphore) == 9
        await ctx.tick()
        assert ctx.get(unit.update.payload.semaphore) == 7 and not ctx.get(unit.pending)
        cycles = 1
        while not ctx.get(unit.empty):
            await ctx.tick()
            cycles += 1
        assert cycles == 2 + IN_FLIGHT  # a cycle for each instruction, and one for each update

    simulate(unit, bench)
