"""The tensor engine under cocotb: every stream driven and monitored with random stalls, results held against golden."""

import random

import cocotb
import numpy as np

from golden.tensor import matmul_tiled, transpose
from hdl.tensor.engine import TensorEngine
from sim.cocotb_streams import Scoreboard, StreamDriver, StreamMonitor, pack, start
from sim.tensor import Program
from spec.presets import configure
from spec.tensor import Matmul

CORE = configure("nano", "formats=bf16,int8").chip.core
HIERARCHICAL = ("onc_pe",)
MAX_CYCLES = 20_000


def design():
    return TensorEngine(CORE)


def program_and_results(products):
    """Random products of ragged shapes, a transpose after each, and the words that they must give."""
    rng = np.random.default_rng(random.getrandbits(64))
    program, results = Program(CORE), []
    for index in range(products):
        form, dtype = ((Matmul("bf16", "bf16"), np.uint16), (Matmul("int8", "int8", True), np.uint8))[index % 2]
        contraction, outputs, columns = rng.integers(1, 12), rng.integers(1, 9), rng.integers(1, 20)
        stationary = rng.integers(0, np.iinfo(dtype).max, (contraction, outputs), dtype, endpoint=True)
        moving = rng.integers(0, np.iinfo(dtype).max, (contraction, columns), dtype, endpoint=True)
        program.matmul(stationary, moving, form)
        results.append(matmul_tiled(CORE, stationary, moving, form))
        program.transpose(stationary, form.stationary)
        results.append(transpose(stationary))
    # Words in the order in which they are read: the partitions that hold a result, lowest first.
    words = [results[product][m, column] for product, m, n in program.placements for column in range(n.start, n.stop)]
    return program, words


async def run(dut, program, words, stall):
    """Send all of a program and compare every word as it comes."""
    expected = iter(words)
    scoreboard = Scoreboard(lambda word: [pack(word)])

    def received(payload):
        word = next(expected)
        scoreboard.sent(word)
        scoreboard.received(payload & (1 << 32 * len(word)) - 1)  # partitions beyond the result hold what they held

    streams = {"command": program.commands, "stationary": map(pack, np.concatenate(program.stationary)),
               "moving": map(pack, np.concatenate(program.moving))}
    sending = [cocotb.start_soon(StreamDriver(dut, name, stall=stall).send(payloads))
               for name, payloads in streams.items()]
    monitor = StreamMonitor(dut, "results", stall=stall, on_transfer=received)
    await monitor.receive(len(words), MAX_CYCLES)
    for task in sending:
        await task
    scoreboard.finish()


def clear(dut):
    dut.counters_clear.value = 0


@cocotb.test()
@cocotb.parametrize(stall=(0.0, 0.5))
async def products(dut, stall):
    """Products and transposes, without stalls and with."""
    clear(dut)
    await start(dut)
    await run(dut, *program_and_results(6), stall)


@cocotb.test()
async def reset_in_mid_run(dut):
    """Whatever was under way, after reset the next program gives its own results and nothing of the last."""
    clear(dut)
    await start(dut)
    for cycles in (3, 17, 40, 90):
        program, _ = program_and_results(4)
        streams = {"command": program.commands, "stationary": map(pack, np.concatenate(program.stationary)),
                   "moving": map(pack, np.concatenate(program.moving))}
        drivers = {name: StreamDriver(dut, name) for name in streams}
        sending = [cocotb.start_soon(drivers[name].send(payloads)) for name, payloads in streams.items()]
        await cocotb.triggers.ClockCycles(dut.clk, cycles)
        for task in sending:
            task.cancel()
        dut.rst.value = 1
        await cocotb.triggers.RisingEdge(dut.clk)
        for name in streams:
            StreamDriver(dut, name)  # takes its valid back
        dut.rst.value = 0
        await run(dut, *program_and_results(2), stall=0.2)


@cocotb.test()
async def a_wrong_bit(dut):
    """The checker can fail: one bit of one expected word is wrong, and the run must not pass."""
    clear(dut)
    await start(dut)
    program, words = program_and_results(2)
    words[-1] = words[-1] ^ np.uint32([1] + [0] * (len(words[-1]) - 1))
    try:
        await run(dut, program, words, stall=0.0)
    except AssertionError:
        return
    raise AssertionError("A wrong bit was not noticed")
