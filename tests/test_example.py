"""examples/systemverilog: the generated modules in somebody else's design, without a warning and right to the bit."""

import json
import re
import subprocess

import pytest

from examples.systemverilog import run


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return run.generated(tmp_path_factory.mktemp("verilog"))


def test_nothing_to_complain_about(files):
    assert run.lint(files) == ""


def test_handwritten_files_keep_their_warnings(files, tmp_path):
    package, design = tmp_path / "mat4_pkg.sv", tmp_path / "mat4.sv"
    for path in (package, design):
        path.write_text((run.FOLDER / path.name).read_text())
    design.write_text(design.read_text().replace("assign row = cycle[2:1]", "assign row = cycle"))
    complaints = run.lint(files, [run.FOLDER / "generated.vlt", package, design])
    assert re.findall(r"%Warning-(\w+)", complaints) == ["WIDTHTRUNC"]


def test_the_commands_structure_is_the_manifests(files):
    fields = json.loads((files.parent / "manifest.json").read_text())["command_fields"]
    structure = re.search(r"typedef struct packed \{([^}]*)\} command_t", (run.FOLDER / "mat4_pkg.sv").read_text())[1]
    declared = re.findall(r"logic\s+(?:\[(\d+):0\])?\s*(\w+);", structure)
    assert [[name, int(top or 0) + 1] for top, name in reversed(declared)] == fields


def test_the_bench_passes_and_can_fail(files):
    program = run.build(files)
    passed = subprocess.run([program], text=True, capture_output=True)
    assert (passed.returncode, passed.stdout) == (0, "2000 products of 4 x 4 matrices, 0 wrong\n")
    failed = subprocess.run([program, "wrong"], text=True, capture_output=True)
    assert failed.returncode == 1 and "Product 1999: y[3][3] is " in failed.stdout and failed.stdout.endswith(", 1 wrong\n")


def test_a_missing_module_is_a_complaint(files, tmp_path):
    without = tmp_path / "files.f"
    without.write_text("\n".join(str(files.parent / name) for name in files.read_text().split() if name != "onc_pe.v"))
    assert "onc_pe" in run.lint(without)
