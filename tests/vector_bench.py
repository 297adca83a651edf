"""The vector engine of a core beside the golden core: both run the same instructions on the same memories, and must agree."""

import functools

import numpy as np

from golden.core import Core
from sim.core import CoreDriver, build_core
from spec.dma import Side, Transfer, encode_transfer
from spec.formats import FORMATS
from spec.isa import OPCODES, Access, Instruction, encode
from spec.memory import local_address
from spec.presets import configure
from spec.vector import OPERATORS
from tests.corners import random_bits

__all__ = ["CORE", "VectorBench", "bench", "instruction"]

CORE = configure("nano").chip.core
_PROGRAM, _DATA = 0x400, 0x8000
_PART = 1024
"""Bytes of a partition for each operand: data, operand, result, and a fourth for scalars and what is reduced."""


def instruction(name, formats, count, partitions=CORE.rows, dims=None, count_special=False, **fields):
    """An instruction whose operands lie side by side in the state buffer; operators and comparisons by name.

    Parameters
    ----------
    formats : dict of str to str
        Of each role.
    count : int
        Elements of each operand.
    dims : dict of str to tuple
        (step, count) pairs of those that are not one run.
    """
    opcode, accesses = OPCODES[name], {}
    for role in opcode.accesses:
        place = {"data": 0, "operand": 1, "predicate": 1, "values": 1, "result": 2, "reduced": 3}[role]
        pairs = (dims or {}).get(role, ((1, 1 if role == "reduced" else count),))
        accesses[role] = Access("sbuf", formats[role], 0, partitions, _PART * place, pairs)
    fields = {key: OPERATORS.index(value) if value in OPERATORS else value for key, value in fields.items()}
    return Instruction(name, accesses, fields, count_special=count_special)


class VectorBench:
    """Both cores; contents of the memories stay from one run to the next.

    Attributes
    ----------
    golden : golden.core.Core
    driver : sim.core.CoreDriver
    """

    def __init__(self):
        self._model = build_core(CORE)
        self._memory = _DATA + CORE.rows * CORE.sbuf_bytes + (1 << 17)
        self.golden = Core(CORE, bytearray(self._memory))
        self._reset()

    def _reset(self):
        self.driver = CoreDriver(CORE, self._memory, model=self._model)
        self.golden.reset()

    def fill(self, rng, formats):
        """Random numbers, many of them corner cases, for data, operand and result; random bits for the rest."""
        sbuf = rng.integers(0, 256, (CORE.rows, CORE.sbuf_bytes), np.uint8)
        for place, name in enumerate(formats):
            size = FORMATS[name].width // 8
            bits = random_bits(rng, name, CORE.rows * _PART // size)
            sbuf[:, _PART * place:_PART * (place + 1)] = bits.view(np.uint8).reshape(CORE.rows, _PART)
        self.write(sbuf)

    def write(self, sbuf):
        """Put contents into the state buffer of both; uint8 ``[rows, bytes]``."""
        self._reset()
        self.golden.memories.sbuf[:] = sbuf
        driver, length = self.driver, CORE.sbuf_bytes
        driver.memory[_DATA:_DATA + sbuf.size] = sbuf.reshape(-1)
        source = Side("memory", "fp8_e4m3", _DATA, ((1, length // 2), (length // 2, 2), (length, CORE.rows)))
        target = Side("sbuf", "fp8_e4m3", 0, ((1, length // 2), (length // 2, 2), (local_address(1, 0), CORE.rows)))
        driver.memory[:128] = np.frombuffer(encode_transfer(Transfer(source, target)), np.uint8)
        driver.set_ring(0, 0, 1)
        driver.ring_doorbell(0, 1)
        driver.run()

    def run(self, *instructions, stream="vector"):
        """Run instructions on both, and compare all that they leave behind; gives the cycles that the RTL took."""
        program = b"".join(map(encode, (*instructions, Instruction("halt"))))
        for machine in (self.golden, self.driver):
            content = program if machine is self.golden else np.frombuffer(program, np.uint8)
            machine.memory[_PROGRAM:_PROGRAM + len(program)] = content
            machine.start(stream, _PROGRAM)
        before = self.golden.special, self.driver.counters["special"]
        self.golden.run()
        began = self.driver.model.cycle
        self.driver.run()
        cycles = self.driver.model.cycle - began
        causes = [{name: (failure.cause, failure.address) for name, failure in machine.failures.items()}
                  for machine in (self.golden, self.driver)]
        assert causes[0] == causes[1]
        banks = np.flatnonzero(self.golden.memories.written).tolist()
        sbuf, psum = self.driver.dump(_DATA, banks)
        assert np.array_equal(sbuf, self.golden.memories.sbuf)
        words = CORE.psum_bank_words
        for bank in banks:
            where = slice(bank * words, (bank + 1) * words)
            assert np.array_equal(psum[:, where], self.golden.memories.psum[:, where])
        assert self.driver.counters["special"] - before[1] == self.golden.special - before[0]
        return cycles

    def run_timed(self, one, stream="vector"):
        """Cycles from the start of a stream to its halt, of one instruction; results are compared."""
        self.run(one, stream=stream)
        program = encode(one) + encode(Instruction("halt"))
        self.driver.memory[_PROGRAM:_PROGRAM + len(program)] = np.frombuffer(program, np.uint8)
        self.driver.start(stream, _PROGRAM)
        began = self.driver.model.cycle
        self.driver.model.run_until("irq", 20_000)
        taken = self.driver.model.cycle - began
        self.driver.run()
        return taken


@functools.cache
def bench():
    """The bench that all tests of a process share."""
    return VectorBench()
