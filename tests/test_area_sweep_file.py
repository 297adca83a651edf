"""area/sweeps/file.py: what a sweep file may say, and one clear line for every mistake in it."""

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from area.sweeps.file import _KEYS, DEFAULT_PRODUCTS, _refuse_others, default_form, read_sweep
from spec.config import ChipConfig, CoreConfig, SystemConfig
from spec.errors import SpecError
from spec.presets import configure
from spec.tensor import Matmul

_ROOT = Path(__file__).parents[1]
PAGE = (_ROOT / "docs" / "sweeps.md").read_text()
EXAMPLES = sorted((_ROOT / "examples" / "sweeps").glob("*.toml"))
GRID = "[grid]\nrows = [8, 16]\n"


@pytest.fixture
def read(tmp_path):
    def read(text, name="mine.toml"):
        (tmp_path / name).write_text(text)
        return read_sweep(tmp_path / name)
    return read


def test_a_grid_is_every_combination_in_the_files_order(read):
    sweep = read('preset = "nano"\ntop = "pe"\n[set]\ntranspose = false\n'
                 '[grid]\nformats = ["bf16", ["bf16", "int8"]]\nrows = [4, 8]\nfp8_pairs = [true, false]\n')
    assert sweep.name == "mine" and sweep.varied == ("formats", "rows", "fp8_pairs") and len(sweep.points) == 8
    assert sweep.settings(sweep.points[0]) == "transpose=no formats=bf16 rows=4 fp8_pairs=yes"
    assert sweep.settings(sweep.points[-1]) == "transpose=no formats=bf16,int8 rows=8 fp8_pairs=no"
    assert len({sweep.settings(point) for point in sweep.points}) == 8


def test_points_may_be_listed_and_need_not_set_the_same(read):
    sweep = read("[[point]]\nrows = 16\n[[point]]\ncols = 16\ntensor_clock_ghz = 1.5\n[[point]]\n")
    assert sweep.points == ({"rows": "16"}, {"cols": "16", "tensor_clock_ghz": "1.5"}, {})
    assert sweep.varied == ("rows", "cols", "tensor_clock_ghz")


def test_what_a_file_leaves_out_has_a_default(read):
    sweep = read(GRID)
    assert (sweep.preset, sweep.top, sweep.products, sweep.format) == ("mini", "tensor", DEFAULT_PRODUCTS, None)
    assert (sweep.seed, sweep.period_ps, sweep.liberty, sweep.common) == (1, 1000, None, {})
    assert (sweep.cluster.kind, sweep.cluster.workers) == ("local", len(os.sched_getaffinity(0)))


def written(value):
    """A field's value as TOML has it."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(list(value)) if isinstance(value, tuple) else repr(value)


@pytest.mark.parametrize("holder, field", [(holder, field.name) for holder in (CoreConfig, ChipConfig, SystemConfig)
                                           for field in fields(holder) if field.name not in ("name", "core", "chip")])
def test_every_field_of_a_configuration_can_be_swept(read, holder, field):
    system = configure("trn1")
    value = getattr({CoreConfig: system.chip.core, ChipConfig: system.chip, SystemConfig: system}[holder], field)
    sweep = read(f'preset = "trn1"\n[grid]\n{field} = [{written(value)}]\n')
    assert sweep.varied == (field,)
    assert configure("trn1", sweep.settings(sweep.points[0])) == system


@pytest.mark.parametrize("settings, name, form", [
    ("formats=bf16,fp8", None, Matmul("bf16", "bf16")),
    ("formats=fp32,fp16 fp8_pairs=no", None, Matmul("fp32", "fp32")),
    ("formats=fp8,bf16", "fp8_e4m3", Matmul("fp8_e4m3", "fp8_e4m3", paired=True)),
    ("formats=fp8 fp8_pairs=no", None, Matmul("fp8_e5m2", "fp8_e5m2")),
    ("formats=int8", None, Matmul("int8", "int8", paired=True)),
])
def test_the_form_of_the_products(settings, name, form):
    assert default_form(configure("mini", settings).chip.core, name) == form


def test_a_library_is_looked_for_beside_the_file(read, tmp_path):
    (tmp_path / "cells.lib").write_text("library (cells) {}\n")
    assert read(f'liberty = "cells.lib"\n{GRID}').liberty == tmp_path / "cells.lib"


MISTAKES = [
    ('colour = 1\n' + GRID, "mine.toml: 'colour' is not allowed; allowed: preset, top, products"),
    ('preset = "pico"\n' + GRID, "preset: 'pico' is not allowed; allowed: nano, mini"),
    ('preset = ["mini"]\n' + GRID, "preset: ['mini'] is not allowed; allowed: nano, mini"),
    ('top = "cpu"\n' + GRID, "top: 'cpu' is not allowed; allowed: pe, tile"),
    ("", "points: 'none' is not allowed; allowed: either a table [grid] or tables [[point]]"),
    (GRID + "[[point]]\ncols = 8\n", "points: 'both' is not allowed; allowed: either"),
    ("[grid]\n", "grid: {} is not allowed; allowed: a table of fields with a list of values each"),
    ("grid = 1\n", "grid: 1 is not allowed; allowed: a table of fields"),
    ("point = 1\n", "point: 1 is not allowed; allowed: 1 to 10000 tables"),
    ("point = [1]\n", "point: 1 is not allowed; allowed: a table [point] of fields"),
    ("[grid]\nrowz = [8]\n", "grid: 'rowz' is not allowed; allowed: adder_stages, chips"),
    ("[grid]\nrows = 8\n", "grid: rows: 8 is not allowed; allowed: a list of values"),
    ("[grid]\nrows = []\n", "grid: rows: [] is not allowed; allowed: a list of values"),
    ('[grid]\nrows = ["many"]\n', "grid: rows: 'many' is not allowed; allowed: a whole number"),
    ("[grid]\nrows = [8.5]\n", "grid: rows: '8.5' is not allowed; allowed: a whole number"),
    ("[grid]\nrows = [{a = 1}]\n", "grid: rows: {'a': 1} is not allowed; allowed: a string, a number"),
    ("[grid]\nrows = [12]\n", "point 1 (rows=12): rows: 12 is not allowed; allowed: a multiple of the tile, 8"),
    ("[grid]\nrows = [8, 8]\n", "point 2: 'rows=8' is not allowed; allowed: different points; it is point 1 again"),
    ('[grid]\nformats = ["bf17"]\n', "point 1 (formats=bf17): formats: 'bf17' is not allowed; allowed: fp32"),
    (f"[grid]\nrows = {[8] * 200}\ncols = {[8] * 200}\n", "grid: '40000 points' is not allowed; allowed: at most"),
    ("[set]\nrows = 8\n" + GRID, "set: 'rows' is not allowed; allowed: fields that no point sets itself"),
    ("[set]\nrowz = 8\n" + GRID, "set: 'rowz' is not allowed; allowed: adder_stages"),
    ("set = 1\n" + GRID, "set: 1 is not allowed; allowed: a table [set] of fields"),
    ("products = 64\n" + GRID, "products: 64 is not allowed; allowed: a list of [N, M, K]"),
    ("products = [[64, 64]]\n" + GRID, "products: [64, 64] is not allowed; allowed: [N, M, K], whole numbers from 1"),
    ("products = [[0, 1, 1]]\n" + GRID, "products: [0, 1, 1] is not allowed; allowed: [N, M, K]"),
    ('format = "bf17"\n' + GRID, "format: 'bf17' is not allowed; allowed: fp32, tf32"),
    ('format = "int8"\n' + GRID, "point 1 (rows=8): format: 'int8' is not allowed; allowed: fp32, bf16"),
    ("seed = -1\n" + GRID, "seed: -1 is not allowed; allowed: a whole number from 0"),
    ("seed = true\n" + GRID, "seed: True is not allowed; allowed: a whole number from 0"),
    ("period_ps = 0\n" + GRID, "period_ps: 0 is not allowed; allowed: a whole number from 1"),
    ('liberty = "none.lib"\n' + GRID, "liberty: 'none.lib' is not allowed; allowed: a Liberty file"),
    ("liberty = 1\n" + GRID, "liberty: 1 is not allowed; allowed: a Liberty file"),
    ("cluster = 1\n" + GRID, "cluster: 1 is not allowed; allowed: a table [cluster]"),
    ("rows = [8,\n", "SWEEP: '{folder}/mine.toml' is not allowed; allowed: TOML; "),
]


@pytest.mark.parametrize("text, message", MISTAKES, ids=[text.replace("\n", " ")[:40] for text, _ in MISTAKES])
def test_a_mistake_is_one_line_that_says_what_is_allowed(read, tmp_path, text, message):
    with pytest.raises(SpecError) as error:
        read(text)
    assert str(error.value).startswith(message.replace("{folder}", str(tmp_path))) and "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["none.toml", "README.md", "."])
def test_what_is_no_sweep_file_is_refused(name):
    with pytest.raises(SpecError, match="^SWEEP: .* allowed: a file such as examples/sweeps/arrays.toml"):
        read_sweep(_ROOT / name)


def test_a_name_that_makes_no_folder_is_refused(read):
    with pytest.raises(SpecError, match="^SWEEP: 'a b.toml' is not allowed; allowed: a name of letters"):
        read(GRID, "a b.toml")


def test_the_command_refuses_before_anything_runs(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("[grid]\nrowz = [8]\n")
    for argument, message in ((f"SWEEP={file}", "grid: 'rowz'"), ("SWEEP=", "SWEEP: ''"), ("sweep=x", "argument: ")):
        result = subprocess.run([sys.executable, "-m", "area.sweep", argument], text=True, capture_output=True,
                                cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(_ROOT)})
        assert result.returncode == 2 and result.stdout == "" and list(tmp_path.iterdir()) == [file]
        assert result.stderr.startswith(message) and result.stderr.count("\n") == 1


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_are_sweep_files(path):
    assert len(read_sweep(path).points) > 1


def test_the_array_example_has_24_points_up_to_16_x_16():
    sweep = read_sweep(_ROOT / "examples" / "sweeps" / "arrays.toml")
    cores = [configure(sweep.preset, sweep.settings(point)).chip.core for point in sweep.points]
    assert len(cores) == 24 and max(core.rows for core in cores) == max(core.cols for core in cores) == 16


def test_what_the_page_shows_are_sweep_files(read):
    shown = re.findall(r"```toml\n(.*?)```", PAGE, re.S)
    for text in shown:
        read(text if "[grid]" in text or "[[point]]" in text else GRID + text)
    assert len(shown) == 5 and len(read(shown[0]).points) == 12


def test_the_page_lists_every_key():
    listed = set(re.findall(r"^\| `\[*(\w+)\]*` \|", PAGE[PAGE.index("| key |"):PAGE.index("## Columns")], re.M))
    with pytest.raises(SpecError) as error:
        _refuse_others("file", {"none": 1}, _KEYS)
    assert listed == set(_KEYS) and all(key in str(error.value) for key in listed)
