"""sim/checked.py: what differs is counted, bit by bit."""

import numpy as np

from golden.tensor import matmul_tiled
from sim.checked import random_operands, run_checked
from sim.tensor import EngineRun
from spec.presets import PRESETS
from spec.tensor import Matmul

CORE = PRESETS["nano"].chip.core
FORM = Matmul("bf16", "fp16")


class WrongDriver:
    """Stands for an engine that gets three bits wrong."""

    core = CORE

    def __init__(self, operands):
        self.results = [matmul_tiled(CORE, *pair, FORM) for pair in operands]
        self.results[0][0, 0] ^= np.uint32(0x80000001)
        self.results[1][1, 2] ^= np.uint32(0x00000010)

    def run(self, program, progress):
        return EngineRun(self.results, cycles=1, counters={}, macs=program.macs)


def test_differing_bits_are_counted(rng):
    operands = [random_operands(rng, FORM, *shape) for shape in ((5, 2, 3), (4, 3, 4))]
    checked = run_checked(WrongDriver(operands), operands, FORM, "Products")
    assert checked.mismatches == 3
    assert checked.bits_compared == 32 * (2 * 3 + 3 * 4)
    assert checked.run.macs == 5 * 2 * 3 + 4 * 3 * 4


def test_random_operands_are_of_their_formats(rng):
    stationary, moving = random_operands(rng, Matmul("fp8_e4m3", "fp32"), 5, 2, 3)
    assert (stationary.shape, stationary.dtype) == ((5, 2), np.uint8)
    assert (moving.shape, moving.dtype) == ((5, 3), np.uint32)
