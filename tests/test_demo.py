"""sim/demo.py and sim/digits.py: the network is good, the core's products are exact, and the output says so."""

import json
from dataclasses import replace

import numpy as np
import pytest

from golden.core import Core
from sim import demo
from sim.core import build_core
from sim.demo import NetworkProducts, demo_form, pictures
from sim.digits import Digits, train
from sim.matmul_program import MatmulProgram
from spec.errors import SpecError
from spec.formats import TENSOR_FORMATS
from spec.presets import configure
from spec.tensor import Matmul, is_paired_always

NANO = configure("nano").chip.core


@pytest.fixture(scope="module")
def digits():
    return Digits.load(demo.SEED)


@pytest.fixture(scope="module")
def network(digits):
    return train(digits, demo.HIDDEN, demo.SEED)


@pytest.fixture(scope="module")
def model():
    return build_core(NANO)


def test_the_halves_share_no_digit(digits):
    assert len(digits.train_images) + len(digits.test_images) == 1797
    together = np.concatenate([digits.train_images, digits.test_images])
    assert len(np.unique(together, axis=0)) == 1797 and together.dtype == np.float32
    shares = [np.bincount(labels) / len(labels) for labels in (digits.train_labels, digits.test_labels)]
    assert np.abs(shares[0] - shares[1]).max() < 0.01


def test_the_network_reads_digits_and_training_repeats(digits, network):
    assert network.sizes == [64, *demo.HIDDEN, 10]
    assert np.mean(network.classify(digits.test_images) == digits.test_labels) > 0.97
    again = train(digits, demo.HIDDEN, demo.SEED)
    assert all(np.array_equal(a, b) for a, b in zip(network.weights + network.biases, again.weights + again.biases))


@pytest.mark.parametrize("name", TENSOR_FORMATS)
def test_every_format_reads_digits_on_the_core(model, digits, network, name):
    images, labels = digits.test_images[:40], digits.test_labels[:40]
    products = NetworkProducts(NANO, network.sizes, 40, Matmul(name, name, is_paired_always(name)), model)
    assert np.mean(network.classify(images, products) == labels) > 0.9
    assert products.mismatches == 0 and products.bits_compared == 32 * 40 * (64 + 10)
    assert products.driver.interrupts == 2 and not products.driver.failures
    # fp32 takes four cycles a column, int8 half a cycle; what comes and goes between memory and the buffers takes the rest.
    peak = {"fp32": 0.25, "int8": 2}.get(name, 1)
    assert 0.1 * peak < products.utilisation < peak


@pytest.mark.parametrize(("formats", "name"), [
    ("fp32,bf16", "bf16"), ("fp16", "fp16"), ("fp16,fp32", "fp32"), ("fp8", "fp8_e5m2"), ("int8", "int8")])
def test_the_format_is_bf16_or_else_the_first(formats, name):
    core = configure("mini", f"formats={formats}").chip.core
    assert demo_form(core) == Matmul(name, name, paired=name == "int8")


def test_pictures_show_digits_and_what_they_were_read_as():
    images = np.zeros((2, 64), np.float32)
    images[0, 0], images[1, -1] = 1, 0.5
    lines = pictures(images, read=[3, 7], labels=[3, 1]).split("\n")
    assert lines[0] == "  @@"
    assert lines[1:7] == [""] * 6
    assert lines[7] == " " * 36 + "=="
    assert lines[8] == "  read as 3           read as 7, is 1"


def test_the_command_reports_what_it_prints(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    assert demo.main({"CONFIG": "mini", "SET": ""}) == 0
    report = json.loads((tmp_path / "build" / "reports" / "demo.json").read_text())
    assert report["config"] == "mini" and report["format"] == "bf16" and len(report["design"]) == 64
    assert report["mismatches"] == 0 and report["bits_compared"] == 32 * report["test_digits"] * (64 + 10)
    assert report["accuracy"] > 0.97 and abs(report["accuracy"] - report["accuracy_float32"]) < 0.01
    assert report["utilisation"] > 0.45
    output = capsys.readouterr().out
    assert f"{report['bits_compared']:,} bits of its results were compared with the golden core's, and all are" in output
    assert f"{report['accuracy']:.1%} of the digits correctly" in output
    spans = json.loads((tmp_path / "build" / "reports" / "demo-timeline.json").read_text())["traceEvents"]
    assert sum(span["name"] == "multiply_moving" for span in spans) > 100


def test_a_differing_bit_is_told_and_makes_the_command_fail(monkeypatch, tmp_path, capsys, digits):
    class WrongProgram(MatmulProgram):
        def result(self, machine, number):
            result = super().result(machine, number)
            result[0, 0] ^= isinstance(machine, Core)
            return result

    few = replace(digits, test_images=digits.test_images[:20], test_labels=digits.test_labels[:20])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "MatmulProgram", WrongProgram)
    monkeypatch.setattr(demo, "Digits", type("Few", (), {"load": lambda seed: few}))
    assert demo.main({"CONFIG": "nano", "SET": ""}) == 1
    assert "of which 2 DIFFER" in capsys.readouterr().out
    assert json.loads((tmp_path / "build" / "reports" / "demo.json").read_text())["mismatches"] == 2


def test_wrong_settings_are_rejected():
    with pytest.raises(SpecError, match="^formats: 'fp4' is not allowed; allowed: fp32, "):
        demo.main({"CONFIG": "mini", "SET": "formats=fp4"})
