"""``python -m sim.demo [CONFIG=…] [SET=…]``: reads handwritten digits on the RTL tensor engine, every bit checked.

A network is trained in numpy; then the matrix products of its whole test set run on the simulated engine. Where values
are rounded:

1. Weights and pixels to the engine's format; pixels are exact where it has more than 8 bits.
2. Each product as the numerics contract says: sums in binary32, in the order of rules N1 to N3 (int32 for int8).
3. Bias and rectifier in numpy, float32, until the other engines exist.
4. Hidden values to the engine's format, on their way into the next product.

Formats of 8 bits are scaled: the largest magnitude of each operand becomes the format's largest number.
"""

import time

import numpy as np

from golden.formats import decode, encode, storage_dtype
from sim.checked import run_checked
from sim.command import run_command, selected_system
from sim.digits import PIXELS, Digits, train
from sim.report import publish
from sim.tensor import TensorDriver
from spec.formats import FLOAT_FORMATS, FORMATS
from spec.tensor import Matmul, is_paired_always

__all__ = ["EngineProducts", "demo_form", "main", "pictures"]

SEED = 1
HIDDEN = (64,)
_SHADES = " .:-=+*%@"


def demo_form(core):
    """The products' form: bf16 if the engine has it, otherwise the first of its formats."""
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


class EngineProducts:
    """Matrix products of float32 arrays on the tensor engine; adds up what they took and how they compare.

    Parameters
    ----------
    driver : sim.tensor.TensorDriver
    form : spec.tensor.Matmul

    Members
    -------
    seconds, cycles, macs, bits_compared, mismatches
        Sums over the products so far.
    """

    def __init__(self, driver, form):
        self._driver, self._form = driver, form
        self.seconds = 0.0
        self.cycles = self.macs = self.bits_compared = self.mismatches = 0

    def __call__(self, values, weights):
        (stationary, weight_scale), (moving, value_scale) = (
            _encoded(weights, self._form.stationary), _encoded(values.T, self._form.moving))
        what = f"Product {len(values)} x {len(weights)} x {weights.shape[1]}"
        checked = run_checked(self._driver, [(stationary, moving)], self._form, what)
        self.seconds += checked.seconds
        self.cycles += checked.run.cycles
        self.macs += checked.run.macs
        self.bits_compared += checked.bits_compared
        self.mismatches += checked.mismatches
        sums = decode(checked.run.results[0], "int32" if self._form.is_integer else "fp32")
        return sums.T * (weight_scale * value_scale)

    @property
    def utilisation(self):
        """Multiply-accumulates per processing element and cycle, from first weight to last result of each product."""
        return self.macs / (self._driver.core.rows * self._driver.core.cols * self.cycles)


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
    print(f"Handwritten digits on the RTL tensor engine\n\n"
          f"  Network  {'-'.join(map(str, network.sizes))} neurons, trained just now in numpy on "
          f"{len(digits.train_images)} digits\n"
          f"  Test     {len(images)} other digits; the engine multiplies in {form.moving}, numpy adds bias and rectifier\n"
          f"  Engine   {core.rows} x {core.cols} processing elements (preset {system.chip.name}), its Verilog simulated by "
          f"Verilator;\n           compiled when it is first used, for a minute or more\n", flush=True)

    driver = TensorDriver(core)
    products = EngineProducts(driver, form)
    read = network.classify(images, products)
    shown = _shown(read, labels)
    print(pictures(images[shown], read[shown], labels[shown]), end="\n\n")

    accuracy, accuracy_float32 = np.mean(read == labels), np.mean(network.classify(images) == labels)
    differ = "and all are the same" if not products.mismatches else f"of which {products.mismatches} DIFFER"
    print(f"  The engine read {accuracy:.1%} of the digits correctly; numpy alone, in float32, {accuracy_float32:.1%}.\n"
          f"  {products.bits_compared:,} bits of its results were compared with the golden model's, {differ}.\n"
          f"  The array was used to {products.utilisation:.1%} of its peak over {products.cycles:,} cycles.\n")
    publish("demo", {
        "config": system.chip.name, "set": values["SET"] or None, "design": driver.model.emission.content_hash, "seed": SEED,
        "format": form.moving, "test_digits": len(images), "accuracy": accuracy, "accuracy_float32": accuracy_float32,
        "bits_compared": products.bits_compared, "mismatches": products.mismatches, "cycles": products.cycles,
        "utilisation": products.utilisation, "cycles_per_second": products.cycles / products.seconds,
        "seconds": time.perf_counter() - began,
    })
    return int(products.mismatches > 0)


if __name__ == "__main__":
    run_command(main, {"CONFIG": "mini", "SET": ""})
