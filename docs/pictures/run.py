"""A short run of a real engine in Amaranth's own simulator: what its signals hold in every cycle."""

import bisect
import tempfile
from pathlib import Path

import numpy as np
import pywellen
from amaranth.sim import Simulator

from golden.engine import TensorEngine as GoldenEngine
from hdl.tensor.engine import TensorEngine
from spec.formats import FORMAT_CODES
from spec.presets import configure
from spec.tensor import Opcode, encode_command

__all__ = ["COMMANDS", "CORE", "COUNTS", "run_engine"]

CORE = configure("nano", "formats=bf16 transpose=no").chip.core
COMMANDS = ("LOAD", "MULT", "LOAD", "MULT", "LOAD", "MULT", "READ")
COUNTS = (6, 6, 3)
"""Columns of ``moving`` in each of the three products."""
CYCLES = 60


def _commands():
    """Three products; the second adds to the first, the third has three rows and columns only."""
    bf16 = FORMAT_CODES["bf16"]

    def load(size):
        return encode_command(CORE, opcode=Opcode.LOAD, format=bf16, contraction=size, columns=size)

    def multiply(count, **where):
        return encode_command(CORE, opcode=Opcode.MULTIPLY, format=bf16, count=count, **where)

    first, second, third = COUNTS
    return [load(4), multiply(first), load(4), multiply(second, accumulate=1), load(3), multiply(third, bank=1),
            encode_command(CORE, opcode=Opcode.READ, count=first)]


def run_engine():
    """Run three products on :data:`CORE`, and check the words that are read.

    Returns
    -------
    callable
        ``signal(name)`` gives the values of a signal below ``bench.top``, one a cycle, as they are before the clock's edge.
    """
    rng = np.random.default_rng(1)
    engine, commands = TensorEngine(CORE), _commands()
    slot_bytes = CORE.rows * CORE.slot_bits // 8
    # Numbers from 1 to 2, none of them zero: a wave can be told from nothing.
    stationary, moving = (rng.integers(0x3F80, 0x4000, (words, bytes_ // 2), "<u2").view(np.uint8)
                          for words, bytes_ in ((6, 2 * slot_bytes), (sum(COUNTS), slot_bytes)))
    expected = GoldenEngine(CORE).execute(commands, stationary, moving)
    given = []

    def sender(stream, payloads):
        async def send(ctx):
            ctx.set(stream.valid, 1)
            for payload in payloads:
                ctx.set(stream.payload, payload)
                await ctx.tick().until(stream.ready)
            ctx.set(stream.valid, 0)
        return send

    def words(rows):
        return [int.from_bytes(row.tobytes(), "little") for row in rows]

    async def receive(ctx):
        ctx.set(engine.results.ready, 1)
        for _ in range(CYCLES):
            _, _, valid, payload = await ctx.tick().sample(engine.results.valid, engine.results.payload)
            if valid:
                given.append(payload)

    simulator = Simulator(engine)
    simulator.add_clock(1e-9)
    as_command = engine.command.payload.shape().from_bits
    for stream, payloads in ((engine.command, map(as_command, commands)),
                             (engine.stationary, words(stationary)), (engine.moving, words(moving))):
        simulator.add_testbench(sender(stream, payloads), background=True)
    simulator.add_testbench(receive)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.vcd"
        with simulator.write_vcd(str(path)):
            simulator.run()
        trace = {variable.full_name.replace("\\", ""): variable.tv for variable in pywellen.Waveform(str(path)).all_vars()}
    if given != words(expected):
        raise AssertionError("the engine gave other words than the golden model")
    edges = [time for time, value in trace["bench.top.clk"] if value == 1]
    return lambda name: _values(trace[f"bench.top.{name}"], edges)


def _values(changes, edges):
    times = [time for time, _ in changes]
    return [changes[bisect.bisect_left(times, edge) - 1][1] for edge in edges]
