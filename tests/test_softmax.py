"""sim/softmax.py: rows through the vector engine are what numpy says, to the bit what the golden core says, and the report tells."""

import json

import numpy as np
import pytest

from golden.core import Core
from golden.formats import decode
from sim import softmax
from sim.core import CoreDriver, build_core
from sim.softmax import COLUMNS, SoftmaxProgram, blocks
from spec.presets import configure

NANO = configure("nano").chip.core


@pytest.fixture(scope="module")
def scores():
    return blocks(NANO)


@pytest.mark.parametrize("block", [0, 8])
def test_softmax_and_statistics_against_numpy(scores, block):
    program = SoftmaxProgram(NANO)
    driver = CoreDriver(NANO, program.end, model=build_core(NANO), latency=(1, 30), stall=0.2, reorder=True)
    golden = Core(NANO, bytearray(program.end))
    mine, expected = (program.run(machine, scores[block][1]) for machine in (driver, golden))
    assert all(np.array_equal(one, other) for one, other in zip(mine, expected))
    assert not driver.failures and driver.interrupts == golden.interrupts == 2
    shares, statistics = decode(mine[0], "bf16").astype(float), mine[1].view(np.float32)
    values = decode(scores[block][1], "bf16").astype(float)
    visible = np.arange(COLUMNS) <= np.arange(NANO.rows)[:, None] + COLUMNS - NANO.rows
    powers = np.exp(values - values[:, :1]) * visible
    assert np.allclose(shares, powers / powers.sum(1, keepdims=True), rtol=2**-8, atol=1e-6) and not shares[~visible].any()
    assert np.allclose(statistics, np.stack([values.mean(1), values.var(1)], 1), rtol=1e-5, atol=1e-5)


def test_half_of_the_rows_are_activations_of_the_digit_network(scores):
    assert [name for name, _ in scores] == ["random"] * 8 + ["digits"] * 8
    activations = np.concatenate([decode(bits, "bf16") for name, bits in scores if name == "digits"])
    assert activations.min() == 0 and activations.max() > 0.5


@pytest.mark.parametrize("wrong", [False, True])
def test_the_command_reports_and_fails_for_a_differing_bit(monkeypatch, tmp_path, wrong):
    class WrongProgram(SoftmaxProgram):
        def run(self, machine, scores):
            result, statistics = super().run(machine, scores)
            return result ^ np.uint16(isinstance(machine, Core)), statistics

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(softmax, "blocks", lambda core: blocks(core)[7:9])
    if wrong:
        monkeypatch.setattr(softmax, "SoftmaxProgram", WrongProgram)
    assert softmax.main({"CONFIG": "nano", "SET": ""}) == wrong
    report = json.loads((tmp_path / "build" / "reports" / "softmax.json").read_text())
    assert report["rows"] == 2 * NANO.rows and report["bits_compared"] == 2 * NANO.rows * (16 * COLUMNS + 64)
    assert report["mismatches"] == (2 * NANO.rows * COLUMNS if wrong else 0)
    assert report["cycles"] > report["vector_busy_cycles"] > 2 * 7 * COLUMNS and report["max_error_softmax"] < 0.004
