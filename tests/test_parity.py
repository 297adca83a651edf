# amaranth: UnusedElaboratable=no
"""hdl/memory/parity.py: a wrong parity is found and reported with its place, a right one never is, and data stay as they are."""

import functools

import numpy as np
import pytest
from amaranth.sim import Simulator

from hdl.memory.parity import ParitySRAM
from sim.checked import random_operands
from sim.core import CoreDriver, build_core
from sim.gemm import run_product
from sim.matmul_plan import Product
from sim.matmul_program import MatmulProgram
from spec.dma import Side, Transfer, encode_transfer
from spec.memory import local_address
from spec.presets import configure
from spec.registers import find_register
from spec.tensor import Matmul

CORE = configure("nano", "parity=yes").chip.core


@functools.cache
def model():
    return build_core(CORE)


def test_lanes_keep_their_own_parity(rng):
    """Random writes of some lanes, right and wrong ones: an error is seen exactly where a lane was last written wrong."""
    unit = ParitySRAM(32, 8, 4)
    contents, wrong = np.zeros((8, 4), np.uint8), np.zeros((8, 4), bool)

    async def bench(ctx):
        for _ in range(400):
            address, strobe, inject, data = int(rng.integers(8)), int(rng.integers(16)), int(rng.integers(2)), rng.bytes(4)
            ctx.set(unit.write_address, address)
            ctx.set(unit.write_enable, strobe)
            ctx.set(unit.inject, inject)
            ctx.set(unit.write_data, int.from_bytes(data, "little"))
            read = int(rng.integers(8))
            ctx.set(unit.read_address, read)
            ctx.set(unit.read_enable, 1)
            expected, faulty = contents[read].copy(), wrong[read].any()
            await ctx.tick()
            lanes = [lane for lane in range(4) if strobe >> lane & 1]
            contents[address, lanes], wrong[address, lanes] = np.frombuffer(data, np.uint8)[lanes], inject
            assert ctx.get(unit.read_data).to_bytes(4, "little") == expected.tobytes() and ctx.get(unit.error) == faulty
        ctx.set(unit.read_enable, 0)
        await ctx.tick()
        assert not ctx.get(unit.error)

    simulator = Simulator(unit)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert wrong.any() and not wrong.all()


def test_a_product_finds_nothing(rng):
    form = Matmul("bf16", "bf16")
    outcome = run_product(CORE, Product(9, 40, 13, form), random_operands(rng, form, 13, 9, 40), model=model())
    driver = CoreDriver(CORE, 1 << 12, model=model())
    assert outcome["mismatches"] == 0 and driver.parity_error is None


@pytest.mark.parametrize("partition", range(CORE.rows))
def test_a_wrong_byte_of_the_state_buffer_is_reported(rng, partition):
    driver = CoreDriver(CORE, 1 << 12, model=model())
    memory = Side("memory", "bf16", 0x400, ((2, 16),))
    local = Side("sbuf", "bf16", local_address(partition, 72), ((2, 16),))
    back = Side("memory", "bf16", 0x800, ((2, 16),))
    for index, move in enumerate((Transfer(memory, local), Transfer(local, back))):
        driver.memory[128 * index:128 * index + 128] = np.frombuffer(encode_transfer(move), np.uint8)
    driver.memory[0x400:0x420] = np.frombuffer(rng.bytes(32), np.uint8)
    driver.set_ring(0, 0, 2)
    driver.clear_counters()
    driver.host.write("parity_inject", 1)
    driver.ring_doorbell(0, 1)
    driver.run()
    assert driver.parity_error is None  # nothing was read yet
    driver.host.write("parity_inject", 0)
    events = [name for name, _, _ in find_register("interrupt_status").fields]
    driver.host.write("interrupt_enable", 1 << events.index("parity_error"))
    driver.ring_doorbell(0, 1)
    driver.model.run_until("irq", 1000)
    driver.run()
    assert driver.parity_error == ("sbuf", partition) and driver.counters["parity_errors"] == 4
    assert (driver.memory[0x800:0x820] == driver.memory[0x400:0x420]).all()


def test_a_wrong_word_of_the_partial_sum_buffer_is_reported(rng):
    """The reader of the result finds it, in the last partition that the DMA engine reads."""
    form = Matmul("bf16", "bf16")
    program = MatmulProgram(CORE, [Product(3, 8, 4, form)])
    driver = CoreDriver(CORE, program.end, model=model())
    driver.host.write("parity_inject", 2)
    program.load(driver)
    program.put(driver, 0, *random_operands(rng, form, 4, 3, 8))
    driver.clear_counters()
    program.start(driver)
    driver.run()
    assert driver.parity_error == ("psum", 2) and driver.counters["parity_errors"] == 3 * 8
