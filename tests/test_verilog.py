"""The Verilog of every preset's tensor engine and of cores: in time, small, reproducible, without local paths, lint-clean."""

import subprocess
import time
from pathlib import Path

import pytest

from hdl.core import NeuronCore
from hdl.emit import emit
from hdl.tensor.engine import TensorEngine
from sim import toolchain, verilate
from spec.presets import PRESETS, configure

LARGE = ("trn1", "inf2")  # differ from trn2 in pairs and transpose only
MAX_SECONDS, MAX_BYTES = 60, 10_000_000
MAX_SECONDS_OF_A_CORE, MAX_BYTES_OF_A_CORE = 90, 16_000_000
"""A core holds a tensor engine, a vector engine and memories beside it."""


@pytest.mark.parametrize("preset", [pytest.param(name, marks=pytest.mark.long if name in LARGE else ())
                                    for name in PRESETS])
def test_every_preset_is_written(preset):
    check_written(TensorEngine(configure(preset).chip.core), MAX_SECONDS)


def test_the_largest_core_is_written():
    check_written(NeuronCore(configure("trn2").chip.core), MAX_SECONDS_OF_A_CORE, MAX_BYTES_OF_A_CORE)


def check_written(component, seconds, size=MAX_BYTES):
    began = time.process_time()
    emission = emit(component)
    assert time.process_time() - began < seconds
    assert sum(map(len, emission.files.values())) < size
    assert list(emission.files)[-1] == f"{component.module_name}.v"
    for name, text in emission.files.items():
        assert text.count("\nmodule onc_") + text.startswith("module onc_") >= 1, name
        assert str(Path.home()) not in text and str(Path.cwd()) not in text


def test_repetition_is_identical():
    core = configure("nano").chip.core
    first, second = emit(TensorEngine(core)), emit(TensorEngine(core))
    assert first.files == second.files and first.manifest == second.manifest
    assert first.content_hash == second.content_hash


def lint(folder, emission):
    """What Verilator's lint has to say; UNOPTFLAT, which finds combinational loops, is not waived."""
    emission.write(folder)
    (folder / "waivers.vlt").write_text(verilate.control_file())
    return subprocess.run([*toolchain.verilator_command(), "--lint-only", "--top-module", emission.top, "waivers.vlt",
                           *emission.files], cwd=folder, env=toolchain.environment(), capture_output=True, text=True)


@pytest.mark.parametrize("preset", [name for name in PRESETS if name != "inf2"])  # inf2's core is trn1's
def test_lint_is_clean(tmp_path, preset):
    """Every module of the preset, in an array of two by two small tiles: what repeats is the same at any size."""
    outcome = lint(tmp_path, emit(TensorEngine(configure(preset, "rows=4 cols=4 tile=2").chip.core)))
    assert outcome.returncode == 0, outcome.stderr
    assert "%Warning" not in outcome.stderr


@pytest.mark.parametrize(("preset", "settings"), [
    ("mini", "parity=yes"), ("trn2", "rows=32 cols=4 tile=4"),  # the latter with four DMA engines
    *(pytest.param(name, "rows=4 cols=4 tile=2", marks=pytest.mark.long) for name in PRESETS if name != "inf2")])
def test_lint_of_cores_is_clean(tmp_path, preset, settings):
    outcome = lint(tmp_path, emit(NeuronCore(configure(preset, settings).chip.core)))
    assert outcome.returncode == 0, outcome.stderr
    assert "%Warning" not in outcome.stderr


def test_lint_finds_a_combinational_loop(tmp_path):
    emission = emit(TensorEngine(configure("nano", "formats=bf16 transpose=no").chip.core))
    text = emission.files["onc_psum.v"]
    assert "assign retired = " in text
    loop = "assign retired = onc_loop;\n  wire onc_loop, onc_pool;\n  assign onc_loop = ~onc_pool & rst;\n" \
           "  assign onc_pool = ~onc_loop | clk; //"
    emission.files["onc_psum.v"] = text.replace("assign retired = ", loop, 1)
    outcome = lint(tmp_path, emission)
    assert outcome.returncode != 0 and "UNOPTFLAT" in outcome.stderr
