"""``python -m sim.softmax [CONFIG=…] [SET=…]``: masked softmax and layer-norm statistics of rows on a core's vector engine.

A row is a partition. The program masks, finds each row's maximum and subtracts it; the host raises e to the results, until there is
a scalar engine; then the program sums, takes reciprocals and scales. Beside it, it finds each row's mean and variance. RTL and
golden core run the same bytes on random numbers and on activations of the digit network.
"""

import time

import numpy as np

from golden.core import Core
from golden.formats import decode, encode
from spec.assembly import assemble
from spec.dma import DESCRIPTOR_BYTES, Side, Transfer, encode_transfer
from spec.isa import Update
from spec.memory import local_address

from .command import run_command, selected_system
from .core import CoreDriver, build_core
from .digits import Digits, train
from .gemm import LATENCY
from .progress import progress_bar
from .report import publish

__all__ = ["SoftmaxProgram", "blocks", "main"]

SEED = 1
COLUMNS = 64
_LOWEST = "-3.4028235e38f"
_LOADED, _MASKED, _SHIFTED, _STORED, _RAISED, _RELOADED, _SCALED, _DONE = range(8)
"""Semaphores, in the order in which they are raised; the host raises ``_RAISED``."""
_PROGRAM, _DESCRIPTORS, _DATA = 0, 0x2000, 0x3000


class SoftmaxProgram:
    """Rows of scores in bf16 to their softmax in bf16, and to mean and variance in binary32.

    Row p may see the first p + 1 + COLUMNS - rows columns.

    Parameters
    ----------
    core : spec.config.CoreConfig

    Attributes
    ----------
    end : int
        Of the memory that is used.
    """

    def __init__(self, core):
        self._core, self._rows = core, core.rows
        size = core.rows * COLUMNS
        self._scores, self._shifted, self._raised, self._result, self._statistics = _DATA + 4 * size * np.arange(5)
        self.end = int(_DATA + 5 * 4 * size)
        streams = {"sync": self._sync(), "gpsimd": self._gpsimd(), "vector": self._vector()}
        lines, self._starts = [], {}
        for name, own in streams.items():
            self._starts[name] = _PROGRAM + 128 * len(lines)
            lines += [*own, "halt"]
        self._program = assemble("\n".join(lines))
        self._descriptors = b"".join(map(encode_transfer, self._transfers()))

    # Places in each partition of the state buffer: scores, masked and shifted, powers, result; then single words.
    _AT = {"scores": 0, "work": 256, "powers": 512, "result": 768, "low": 1024, "sum": 1028, "inverse": 1032, "mean": 1036,
           "variance": 1040, "squares": 1280}

    def _row(self, name, form="fp32"):
        return f"sbuf[0+{self._rows}, {self._AT[name]}, {form}, 1*{COLUMNS}]"

    def _one(self, name):
        return f"sbuf[0+{self._rows}, {self._AT[name]}, fp32, 1*1]"

    def _stored(self, number, name):
        return f"scalar{number}={self._AT[name]} scalar{number}_stored=1"

    def _sync(self):
        return [
            "dma_start ring=0 descriptors=1",
            f"dma_start ring=0 descriptors=1 ; wait s{_SHIFTED}>=1",
            f"nop ; wait s{_STORED}>=1 ; notify",
            f"dma_start ring=0 descriptors=1 ; wait s{_RAISED}>=1",
            f"dma_start ring=0 descriptors=2 ; wait s{_SCALED}>=1",
            f"nop ; wait s{_DONE}>=2 ; notify"]

    def _gpsimd(self):
        first = COLUMNS - self._rows
        return [f"affine_select data={self._row('scores', 'bf16')} result={self._row('work')} base={first} multiplier=1 step0=-1 "
                f"comparison0=>= fill={_LOWEST} ; wait s{_LOADED}>=1 ; then s{_MASKED}+=1"]

    def _vector(self):
        share = f"{1 / COLUMNS}f"
        return [
            f"tensor_reduce data={self._row('work')} result={self._one('low')} op0=maximum axes=4 negate=1 ; wait s{_MASKED}>=1",
            f"tensor_scalar data={self._row('work')} result={self._row('work')} op0=add {self._stored(0, 'low')} ; "
            f"then s{_SHIFTED}+=1",
            # Statistics of the scores, while memory and host have the shifted ones.
            f"tensor_reduce data={self._row('scores', 'bf16')} result={self._one('mean')} op0=add axes=4",
            f"tensor_scalar data={self._one('mean')} result={self._one('mean')} op0=multiply scalar0={share}",
            f"tensor_scalar data={self._row('scores', 'bf16')} result={self._row('squares')} op0=subtract {self._stored(0, 'mean')}",
            f"tensor_tensor data={self._row('squares')} operand={self._row('squares')} result={self._row('result')} op0=multiply",
            f"tensor_reduce data={self._row('result')} result={self._one('variance')} op0=add axes=4",
            f"tensor_scalar data={self._one('variance')} result={self._one('variance')} op0=multiply scalar0={share}",
            # The second half.
            f"tensor_reduce data={self._row('powers')} result={self._one('sum')} op0=add axes=4 ; wait s{_RELOADED}>=1",
            f"reciprocal data={self._one('sum')} result={self._one('inverse')}",
            f"tensor_scalar data={self._row('powers')} result={self._row('result', 'bf16')} op0=multiply "
            f"{self._stored(0, 'inverse')} ; then s{_SCALED}+=1"]

    def _transfers(self):
        def memory(at, name, count=COLUMNS):
            size = 2 if name == "bf16" else 4
            return Side("memory", name, int(at), ((size, count), (size * count, self._rows)))

        def local(place, name, count=COLUMNS):
            size = 2 if name == "bf16" else 4
            return Side("sbuf", name, local_address(0, self._AT[place]), ((size, count), (local_address(1, 0), self._rows)))

        return [
            Transfer(memory(self._scores, "bf16"), local("scores", "bf16"), update=Update(_LOADED, "+=", 1)),
            Transfer(local("work", "fp32"), memory(self._shifted, "fp32"), update=Update(_STORED, "+=", 1)),
            Transfer(memory(self._raised, "fp32"), local("powers", "fp32"), update=Update(_RELOADED, "+=", 1)),
            Transfer(local("result", "bf16"), memory(self._result, "bf16"), update=Update(_DONE, "+=", 1)),
            Transfer(local("mean", "fp32", 2), memory(self._statistics, "fp32", 2), update=Update(_DONE, "+=", 1))]

    def _put(self, machine, at, content):
        memory = np.frombuffer(machine.memory, np.uint8) if isinstance(machine.memory, bytearray) else machine.memory
        memory[at:at + len(content)] = np.frombuffer(content, np.uint8)

    def _get(self, machine, at, dtype, columns=COLUMNS):
        content = bytes(machine.memory[at:at + np.dtype(dtype).itemsize * self._rows * columns])
        return np.frombuffer(content, dtype).reshape(self._rows, columns)

    def run(self, machine, scores):
        """Run on a :class:`golden.core.Core` or a :class:`sim.core.CoreDriver`, just reset.

        Parameters
        ----------
        scores : uint16 array [rows, COLUMNS]
            bf16 patterns.

        Returns
        -------
        (uint16 array [rows, COLUMNS], uint32 array [rows, 2])
            Softmax in bf16; mean and variance in binary32.
        """
        self._put(machine, _PROGRAM, self._program)
        self._put(machine, _DESCRIPTORS, self._descriptors)
        self._put(machine, self._scores, scores.tobytes())
        machine.set_ring(0, _DESCRIPTORS, len(self._descriptors) // DESCRIPTOR_BYTES)
        for stream, address in self._starts.items():
            machine.start(stream, address)
        machine.run()
        shifted = decode(self._get(machine, self._shifted, np.uint32), "fp32")
        self._put(machine, self._raised, np.exp(shifted, dtype=np.float32).tobytes())
        machine.add_semaphore(_RAISED, 1)
        machine.run()
        return self._get(machine, self._result, np.uint16), self._get(machine, self._statistics, np.uint32, 2)


def blocks(core):
    """Blocks of scores by what they are: random, and the digit network's last activations but one."""
    rng, rows = np.random.default_rng(SEED), core.rows
    digits = Digits.load(SEED)
    hidden = train(digits, (COLUMNS,), SEED).activations(digits.test_images)[1]
    made = [("random", rng.standard_normal((rows, COLUMNS), np.float32) * 4) for _ in range(8)]
    made += [("digits", hidden[rows * block:rows * (block + 1)]) for block in range(8)]
    return [(name, encode(values, "bf16")) for name, values in made]


def _reference(core, scores):
    """Softmax, mean and variance in float64."""
    values = decode(scores, "bf16").astype(np.float64)
    visible = np.arange(COLUMNS) <= np.arange(core.rows)[:, None] + COLUMNS - core.rows
    powers = np.where(visible, np.exp(values - np.where(visible, values, -np.inf).max(1, keepdims=True)), 0)
    return powers / powers.sum(1, keepdims=True), np.stack([values.mean(1), values.var(1)], 1)


def main(values):
    """Run the command; returns 1 if a bit differs, else 0."""
    began = time.perf_counter()
    system = selected_system(values)
    core = system.chip.core
    program, model = SoftmaxProgram(core), build_core(core)
    mismatches = bits = cycles = busy = 0
    errors = [0.0, 0.0]
    cases = blocks(core)
    with progress_bar("rows", "rows") as progress:
        for number, (_, scores) in enumerate(cases):
            driver = CoreDriver(core, program.end, model=model, latency=LATENCY, seed=SEED)
            driver.clear_counters()
            at = driver.model.cycle
            results = [program.run(machine, scores) for machine in (driver, Core(core, bytearray(program.end)))]
            cycles += driver.model.cycle - at
            busy += driver.counters["vector_busy"]
            for mine, golden in zip(*results):
                mismatches += int(np.bitwise_count(mine ^ golden).sum())
                bits += mine.nbytes * 8
            got = decode(results[0][0], "bf16"), results[0][1].view(np.float32)
            errors = [max(error, float(np.abs(one - wanted).max())) for error, one, wanted in
                      zip(errors, got, _reference(core, scores))]
            progress(core.rows * (number + 1), core.rows * len(cases))
    publish("softmax", {
        "config": system.chip.name, "set": values["SET"] or None, "design": model.emission.content_hash, "seed": SEED,
        "rows": core.rows * len(cases), "columns": COLUMNS, "bits_compared": bits, "mismatches": mismatches,
        "max_error_softmax": errors[0], "max_error_statistics": errors[1], "cycles": cycles, "vector_busy_cycles": busy,
        "seconds": time.perf_counter() - began})
    return int(mismatches > 0)


if __name__ == "__main__":
    run_command(main, {"CONFIG": "mini", "SET": ""})
