# amaranth: UnusedElaboratable=no
"""hdl/memory/psum.py: sums along the wavefront, DMA reads and the vector engine's, against an array and numpy's binary32 sum."""

import numpy as np

from hdl.arith.layouts import partial_sum_layout
from hdl.memory.psum import ACCUMULATE_DISTANCE, PartialSumBuffer
from spec.presets import configure
from tests.simulate import simulate

CORE = configure("nano").chip.core
COLS, BANKS, WORDS = CORE.cols, CORE.psum_banks, 4
SUM_BITS = partial_sum_layout.size
NOTHING = {"commit": 0}


def partial_sum(value):
    """A normal number as column 0's partial sum: binary32's own bits, and the hidden one."""
    return int(value.view(np.uint32)) | 1 << 32


class Bench:
    """The tensor engine's sums go to banks of the lower half, the vector engine's writes to the upper half."""

    def __init__(self, unit, rng):
        self.unit, self.rng = unit, rng
        self.memory = np.zeros((COLS, BANKS, 1 << (CORE.psum_bank_words - 1).bit_length()), np.uint32)
        self.history = []  # per cycle: None or (destination, words)

    def destination(self, last):
        rng = self.rng
        entry = {"commit": 1, "last": int(last), "accumulate": int(rng.random() < 0.5), "integer": 1, "transpose": 0,
                 "count_special": 0, "columns": int(rng.integers(1, COLS + 1)), "bank": int(rng.integers(BANKS // 2)),
                 "offset": int(rng.integers(WORDS))}
        recent = [(made[0]["bank"], made[0]["offset"]) for made in self.history[-ACCUMULATE_DISTANCE + 1:] if made]
        return None if (entry["bank"], entry["offset"]) in recent else entry

    def drive(self, ctx, active):
        """A destination goes in, and column j's sum of the destination j cycles ago."""
        entry = self.destination(self.rng.random() < 0.3) if active and self.rng.random() < 0.8 else None
        words = self.rng.integers(1 << 32, size=COLS, dtype=np.uint32) if entry else None
        self.history.append((entry, words) if entry else None)
        ctx.set(self.unit.destination, entry or NOTHING)
        sums = 0
        for column in range(COLS):
            made = self.history[-1 - column] if len(self.history) > column else None
            if made:
                sums |= int(made[1][column]) << SUM_BITS * column
        ctx.set(self.unit.sums, sums)

    def store(self):
        """What is stored at the end of this cycle: column j's sums of j + 2 cycles ago."""
        for column in range(COLS):
            place = len(self.history) - 1 - column - (ACCUMULATE_DISTANCE - 1)
            if place >= 0 and self.history[place]:
                entry, words = self.history[place]
                if column < entry["columns"]:
                    at = (column, entry["bank"], entry["offset"])
                    self.memory[at] = (int(words[column]) + entry["accumulate"] * int(self.memory[at])) % (1 << 32)


def test_sums_accesses_and_vector(rng):
    """Reads of DMA and vector engine find a bank as it is in their cycle; integer sums are exact modulo 2**32."""
    unit, seen = PartialSumBuffer(CORE), {"access": 0, "read": 0, "write": 0, "retired": 0, "waits": 0}
    offset_bits = (CORE.psum_bank_words - 1).bit_length()

    async def run(ctx):
        bench = Bench(unit, rng)
        due, vector_due, access, vector_read, vector_write = None, None, None, None, None
        retire_at = []
        for cycle in range(1500):
            bench.drive(ctx, cycle < 1450)
            if bench.history[-1] and bench.history[-1][0]["last"]:
                retire_at.append(cycle + COLS + 2)
            if due is not None:
                assert ctx.get(unit.groups[0].data) == due * ((1 << 32) + 1)
            if vector_due is not None:
                assert ctx.get(unit.vector.read_data) == vector_due
            assert ctx.get(unit.retired) == (cycle in retire_at)
            seen["retired"] += ctx.get(unit.retired)
            if access is None and rng.random() < 0.4:
                access = (int(rng.integers(COLS)), int(rng.integers(BANKS)), int(rng.integers(WORDS)))
                ctx.set(unit.groups[0].access, {"psum": 1, "partition": access[0],
                                                "offset": 4 * (access[1] << offset_bits | access[2])})
            ctx.set(unit.groups[0].valid, access is not None)
            if vector_read is None and rng.random() < 0.4:
                vector_read = (int(rng.integers(BANKS)), int(rng.integers(WORDS)))
                ctx.set(unit.vector.read_address, vector_read[0] << offset_bits | vector_read[1])
            ctx.set(unit.vector.read, vector_read is not None)
            if vector_write is None and rng.random() < 0.4:
                vector_write = (int(rng.integers(BANKS // 2, BANKS)), int(rng.integers(WORDS)), rng.integers(
                    1 << 32, size=COLS, dtype=np.uint32), int(rng.integers(1 << COLS)))
                ctx.set(unit.vector.write_address, vector_write[0] << offset_bits | vector_write[1])
                ctx.set(unit.vector.write_data, int.from_bytes(vector_write[2].tobytes(), "little"))
                ctx.set(unit.vector.mask, vector_write[3])
            ctx.set(unit.vector.write, vector_write is not None)
            due = vector_due = None
            if access and ctx.get(unit.groups[0].ready):
                due, access = int(bench.memory[access]), None
                seen["access"] += 1
            seen["waits"] += bool(access) + bool(vector_read and not ctx.get(unit.vector.read_ready))
            if vector_read and ctx.get(unit.vector.read_ready):
                vector_due = int.from_bytes(bench.memory[:, vector_read[0], vector_read[1]].tobytes(), "little")
                vector_read, seen["read"] = None, seen["read"] + 1
            written = vector_write if vector_write and ctx.get(unit.vector.write_ready) else None
            bench.store()
            if written:
                bank, offset, words, mask = written
                for column in range(COLS):
                    if mask >> column & 1:
                        bench.memory[column, bank, offset] = words[column]
                vector_write, seen["write"] = None, seen["write"] + 1
            await ctx.tick()

    simulate(unit, run)
    assert all(count > 50 for count in seen.values()), seen


def test_float_sums_are_rounded_once(rng):
    """old + new as numpy has it, where both are binary32; one after the other on the same word at the stated distance."""
    unit = PartialSumBuffer(CORE)
    values = rng.standard_normal(60).astype(np.float32) * np.float32(2.0) ** rng.integers(-30, 30, size=60).astype(np.float32)

    async def run(ctx):
        total = np.float32(0)
        for number, value in enumerate(values):
            ctx.set(unit.destination, {"commit": 1, "accumulate": int(number > 0), "columns": 1, "bank": 1, "offset": 2})
            ctx.set(unit.sums, partial_sum(value))
            await ctx.tick()
            ctx.set(unit.destination, NOTHING)
            await ctx.tick().repeat(ACCUMULATE_DISTANCE - 1)
            total = value if number == 0 else total + value
            ctx.set(unit.read, {"enable": 1, "bank": 1, "offset": 2})
            await ctx.tick()
            ctx.set(unit.read, {"enable": 0})
            assert ctx.get(unit.read_data) & 0xFFFF_FFFF == int(total.view(np.uint32))

    simulate(unit, run)
