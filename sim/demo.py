"""``python -m sim.demo [CONFIG=…] [SET=…]``: reads handwritten digits on an RTL core, every bit checked.

A network is trained in numpy; then the matrix products of its whole test set run on the simulated core, memory to memory,
as one program. Where values are rounded:

1. Weights and pixels to the core's format; pixels are exact where it has more than 8 bits.
2. Each product as the numerics contract says: sums in binary32, in the order of rules N1 to N3 (int32 for int8).
3. Bias and rectifier in numpy, float32, until the other engines exist: the program waits for the host meanwhile.
4. Hidden values to the engine's format, on their way into the next product.

Formats of 8 bits are scaled: the largest magnitude of each operand becomes the format's largest number.
"""

import time
from pathlib import Path

import numpy as np

from golden.core import Core
from golden.formats import decode, encode, storage_dtype
from sim.command import run_command, selected_system
from sim.core import CoreDriver
from sim.digits import PIXELS, Digits, train
from sim.gemm import LATENCY
from sim.matmul_plan import Product
from sim.matmul_program import MatmulProgram
from sim.progress import progress_bar
from sim.report import publish
from spec.formats import FLOAT_FORMATS, FORMATS
from spec.isa import INSTRUCTION_BYTES
from spec.tensor import Matmul, is_paired_always

__all__ = ["NetworkProducts", "demo_form", "main", "pictures"]

SEED = 1
HIDDEN = (64,)
_SHADES = " .:-=+*%@"
_MOST_CYCLES = 40  # a wave, before the core is taken to hang
_TIMELINE = Path("build") / "reports" / "demo-timeline.json"


def demo_form(core):
    """The products' form: bf16 if the core has it, otherwise the first of its formats."""
    name = "bf16" if "bf16" in core.formats else core.formats[0]
    return Matmul(name, name, paired=is_paired_always(name))


def _encoded(values, name):
    """Bit patterns of ``values``, and the scale that they have to be multiplied by."""
    scale = np.float32(1)
    if FORMATS[name].width == 8:
        largest = (decode(np.array(FORMATS[name].max_finite, storage_dtype(name)), name) if name in FLOAT_FORMATS
                   else np.float32(FORMATS[name].max))
        scale = np.abs(values).max() / largest
    return encode(values / scale, name), scale


class NetworkProducts:
    """The matrix products of a network's layers as one program on a core: called for each layer in turn.

    Memory holds the program, its descriptors and every layer's operands and results; the program waits between layers until
    the host has written the next one's operands. The golden core executes the same bytes.

    Parameters
    ----------
    core : spec.config.CoreConfig
    sizes : sequence of int
        Neurons of each layer, the inputs first.
    count : int
        Rows of ``values``: images.
    form : spec.tensor.Matmul
    model : sim.model.Model
        Of ``NeuronCore(core)``; built if not given.

    Members
    -------
    driver : sim.core.CoreDriver
    program : sim.matmul_program.MatmulProgram
    seconds, cycles, bits_compared, mismatches
        Sums over the products so far; a mismatch is a bit that is not the golden core's.
    """

    def __init__(self, core, sizes, count, form, model=None):
        self._form, self._layer = form, 0
        self.program = MatmulProgram(core, [Product(outputs, count, inputs, form) for inputs, outputs in zip(sizes, sizes[1:])])
        self._golden = Core(core, bytearray(self.program.end))
        self.driver = CoreDriver(core, self.program.end, model=model, latency=LATENCY, seed=SEED)
        self.seconds = 0.0
        self.cycles = self.bits_compared = self.mismatches = 0
        for machine in (self._golden, self.driver):
            self.program.load(machine)

    def __call__(self, values, weights):
        (stationary, weight_scale), (moving, value_scale) = (
            _encoded(weights, self._form.stationary), _encoded(values.T, self._form.moving))
        program, driver, results = self.program, self.driver, []
        go = program.release if self._layer else program.start
        for machine in (driver, self._golden):
            program.put(machine, self._layer, stationary, moving)
            go(machine)
        began, cycle = time.perf_counter(), driver.model.cycle
        with progress_bar(f"layer {self._layer + 1}") as progress:
            driver.run(_MOST_CYCLES * program.waves, lambda done, _: progress(done, max(done, program.waves)))
        self.seconds += time.perf_counter() - began
        self.cycles += driver.model.cycle - cycle
        self._golden.run(limit=100_000_000)
        results = [program.result(machine, self._layer) for machine in (driver, self._golden)]
        self.bits_compared += results[0].nbytes * 8
        self.mismatches += int(np.bitwise_count(results[0] ^ results[1]).sum())
        self._layer += 1
        sums = decode(results[0], "int32" if self._form.is_integer else "fp32")
        return sums.T * (weight_scale * value_scale)

    @property
    def utilisation(self):
        """Multiply-accumulates per processing element and cycle, all that the host and memory cost included."""
        core = self.driver.core
        return self.program.macs / (core.rows * core.cols * self.cycles)


def pictures(images, read, labels):
    """Images side by side as text, and under each what it was read as."""
    shades = np.array(list(_SHADES))[np.rint(images * (len(_SHADES) - 1)).astype(int)].reshape(-1, *PIXELS)
    lines = ["    ".join("".join(shade * 2 for shade in image[row]) for image in shades) for row in range(PIXELS[0])]
    captions = (f"read as {guess}" + (f", is {label}" if guess != label else "") for guess, label in zip(read, labels))
    return "\n".join(f"  {line}".rstrip() for line in [*lines, "    ".join(f"{caption:16}" for caption in captions)])


def _shown(read, labels):
    """Three digits that were read well and the first that was not, if there is one."""
    return [*np.flatnonzero(read == labels)[:3], *np.flatnonzero(read != labels)[:1]]


def main(values):
    """Run the command; returns 1 if a bit differs from the golden model, else 0."""
    began = time.perf_counter()
    system = selected_system(values)
    core = system.chip.core
    form = demo_form(core)
    digits = Digits.load(SEED)
    network = train(digits, HIDDEN, SEED)
    images, labels = digits.test_images, digits.test_labels
    print(f"Handwritten digits on an RTL core\n\n"
          f"  Network  {'-'.join(map(str, network.sizes))} neurons, trained just now in numpy on "
          f"{len(digits.train_images)} digits\n"
          f"  Test     {len(images)} other digits; the core multiplies in {form.moving}, numpy adds bias and rectifier\n"
          f"  Core     {core.rows} x {core.cols} processing elements (preset {system.chip.name}), its Verilog simulated by "
          f"Verilator;\n           compiled when it is first used, for a minute or more\n", flush=True)

    products = NetworkProducts(core, network.sizes, len(images), form)
    with products.driver.timeline() as timeline:
        read = network.classify(images, products)
    timeline.write(_TIMELINE)
    shown = _shown(read, labels)
    print(pictures(images[shown], read[shown], labels[shown]), end="\n\n")

    accuracy, accuracy_float32 = np.mean(read == labels), np.mean(network.classify(images) == labels)
    differ = "and all are the same" if not products.mismatches else f"of which {products.mismatches} DIFFER"
    print(f"  The core read {accuracy:.1%} of the digits correctly; numpy alone, in float32, {accuracy_float32:.1%}.\n"
          f"  {products.bits_compared:,} bits of its results were compared with the golden core's, {differ}.\n"
          f"  One program of {len(products.program.program) // INSTRUCTION_BYTES} instructions ran from memory; the array was "
          f"used to {products.utilisation:.1%}\n  of its peak over {products.cycles:,} cycles.\n"
          f"  {_TIMELINE} shows them at https://ui.perfetto.dev\n")
    publish("demo", {
        "config": system.chip.name, "set": values["SET"] or None, "design": products.driver.model.emission.content_hash,
        "seed": SEED, "format": form.moving, "test_digits": len(images), "accuracy": accuracy,
        "accuracy_float32": accuracy_float32, "bits_compared": products.bits_compared, "mismatches": products.mismatches,
        "cycles": products.cycles, "utilisation": products.utilisation,
        "cycles_per_second": products.cycles / products.seconds, "seconds": time.perf_counter() - began,
    })
    return int(products.mismatches > 0)


if __name__ == "__main__":
    run_command(main, {"CONFIG": "mini", "SET": ""})
