# amaranth: UnusedElaboratable=no
"""hdl/control/host_registers.py: every register of the map, by its kind of access; the interrupt; the semaphores."""

import pytest

from hdl.control.host_registers import HostRegisters
from spec.isa import UPDATES
from spec.presets import configure
from spec.registers import IDENTITY, REGISTER_MAP, WINDOW_BITS, find_register
from tests.simulate import simulate

CORE = configure("nano").chip.core
CONSTANTS = {"identity": IDENTITY, "rows": CORE.rows, "cols": CORE.cols, "sbuf_bytes": CORE.sbuf_bytes,
             "psum_banks": CORE.psum_banks, "dma_engines": CORE.dma_engines}
PLAIN = [register for register in REGISTER_MAP
         if register.name not in CONSTANTS and not register.name.startswith(("semaphore", "interrupt"))]


def member(unit, name, index, count):
    return getattr(unit, name)[index] if count > 1 else getattr(unit, name)


async def write(ctx, unit, address, data):
    ctx.set(unit.bus.address, address)
    ctx.set(unit.bus.data, data)
    ctx.set(unit.bus.write, 1)
    assert ctx.get(unit.bus.ready)
    await ctx.tick()
    ctx.set(unit.bus.write, 0)


def read(ctx, unit, address):
    """What is there in the same cycle."""
    ctx.set(unit.bus.address, address)
    ctx.set(unit.bus.read, 1)
    assert ctx.get(unit.bus.ready)
    value = ctx.get(unit.bus.value)
    ctx.set(unit.bus.read, 0)
    return value


@pytest.mark.parametrize("access", ["r", "rw", "w"])
def test_every_register(rng, access):
    unit = HostRegisters(CORE)
    registers = [register for register in PLAIN if register.access == access]

    async def bench(ctx):
        for register in registers:
            for index in range(register.count):
                address, value = register.address(index), int(rng.integers(1 << 32))
                if access == "r":
                    ctx.set(member(unit, register.name, index, register.count), value)
                    assert read(ctx, unit, address) == value
                    await write(ctx, unit, address, 1)
                    assert read(ctx, unit, address) == value
                elif access == "rw":
                    written = member(unit, f"{register.name}_written", index, register.count)
                    await write(ctx, unit, address, value)
                    assert ctx.get(written) and ctx.get(member(unit, register.name, index, register.count)) == value
                    await ctx.tick()
                    assert not ctx.get(written) and read(ctx, unit, address) == value
                else:
                    written = member(unit, f"{register.name}_written", index, register.count)
                    ctx.set(unit.bus.address, address)
                    ctx.set(unit.bus.data, value)
                    assert not ctx.get(written)
                    ctx.set(unit.bus.write, 1)
                    assert ctx.get(written) and ctx.get(getattr(unit, register.name)) == value
                    ctx.set(unit.bus.write, 0)
                    assert read(ctx, unit, address) == 0

    assert registers
    simulate(unit, bench)


def test_constants_and_holes():
    unit = HostRegisters(CORE)
    taken = {register.address(index) for register in REGISTER_MAP for index in range(register.count)}

    async def bench(ctx):
        for name, value in CONSTANTS.items():
            assert read(ctx, unit, find_register(name).offset) == value
        for address in set(range(0, 1 << WINDOW_BITS, 4)) - taken:
            assert read(ctx, unit, address) == 0
            await write(ctx, unit, address, 0xFFFF_FFFF)
            assert not ctx.get(unit.update.valid) and not ctx.get(unit.interrupt)

    simulate(unit, bench)


def test_interrupt():
    unit, status, enable = HostRegisters(CORE), *(find_register(f"interrupt_{name}").offset for name in ("status", "enable"))

    async def bench(ctx):
        ctx.set(unit.event, 0b101)
        await ctx.tick()
        ctx.set(unit.event, 0)
        assert read(ctx, unit, status) == 0b101 and not ctx.get(unit.interrupt)
        await write(ctx, unit, enable, 0b100)
        assert read(ctx, unit, enable) == 0b100 and ctx.get(unit.interrupt)
        await write(ctx, unit, status, 0b001)
        assert read(ctx, unit, status) == 0b100 and ctx.get(unit.interrupt)
        # What happens in the cycle in which the bit is cleared is not lost.
        ctx.set(unit.event, 0b100)
        await write(ctx, unit, status, 0b100)
        ctx.set(unit.event, 0)
        assert ctx.get(unit.interrupt)
        await write(ctx, unit, status, 0b100)
        assert not ctx.get(unit.interrupt) and read(ctx, unit, status) == 0

    simulate(unit, bench)


@pytest.mark.parametrize("name, kind", [("semaphore", "="), ("semaphore_add", "+="), ("semaphore_subtract", "-=")])
def test_semaphores_wait_their_turn(rng, name, kind):
    unit, register = HostRegisters(CORE), find_register(name)

    async def bench(ctx):
        for index in (0, 1, 200, 255):
            value = int(rng.integers(1 << 16))
            ctx.set(unit.semaphore_value, value)
            assert read(ctx, unit, register.address(index)) == (value if name == "semaphore" else 0)
            assert ctx.get(unit.semaphore_number) == index and not ctx.get(unit.update.valid)
            ctx.set(unit.bus.data, value)
            ctx.set(unit.bus.write, 1)
            for turn in (0, 0, 1):
                ctx.set(unit.update.ready, turn)
                change = ctx.get(unit.update.payload)
                assert ctx.get(unit.update.valid) and ctx.get(unit.bus.ready) == turn
                assert (change.semaphore, UPDATES[change.kind], change.value) == (index, kind, value)
                await ctx.tick()
            ctx.set(unit.bus.write, 0)

    simulate(unit, bench)
