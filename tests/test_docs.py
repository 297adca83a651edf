"""README and docs: code runs and prints what it says, links lead somewhere, tables agree with spec, pictures are current."""

import ast
import contextlib
import io
import re
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from docs.pictures import draw
from golden.formats import decode, storage_dtype
from sim.utilisation import PRODUCTS, SCALE_SIM
from spec.config import FORMAT_GROUPS, ChipConfig, CoreConfig, SystemConfig
from spec.formats import FLOAT_FORMATS, FORMAT_CODES, TENSOR_FORMATS
from spec.presets import PRESETS
from spec.tensor import Opcode, command_fields

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")),
         *sorted((ROOT / "examples").glob("*/README.md"))]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def read(name):
    return (ROOT / name).read_text()


def prose(text):
    """A page without its fenced blocks."""
    return FENCE.sub("", text)


def table(text, heading):
    """Rows of the table whose first column is called ``heading``, as dictionaries by column."""
    lines = text[text.index(f"\n| {heading} |") + 1:].split("\n\n", 1)[0].splitlines()
    names, _, *rows = ([cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines)
    assert all(len(row) == len(names) for row in rows)
    return [dict(zip(names, row)) for row in rows]


def short(names):
    """Formats as the pages write them: ``all``, or with ``fp8`` for its three."""
    if names == TENSOR_FORMATS:
        return "all"
    group = FORMAT_GROUPS["fp8"]
    has_group = set(group) <= set(names)
    return ", ".join("fp8" if name == group[0] and has_group else name for name in names
                     if not has_group or name not in group[1:])


# Code

def run_page(text, folder):
    """Run a page's Python, in order and in one namespace; a block that begins with a file's name is saved instead.

    Returns
    -------
    list of (str, str)
        What was printed and what the page says, for each block that is followed by a ``text`` block.
    """
    compared, printed, end = [], None, 0
    namespace = {"__name__": "page"}
    for fence in FENCE.finditer(text):
        language, code = fence.groups()
        if language == "python":
            if name := re.match(r"# (\w+\.py)\n", code):
                (folder / name[1]).write_text(code)
                printed = None
            else:
                with contextlib.redirect_stdout(io.StringIO()) as output:
                    exec(compile(code, "page", "exec"), namespace)
                printed = output.getvalue()
        elif language == "text" and printed is not None and not text[end:fence.start()].strip():
            compared.append((printed, code))
            printed = None
        end = fence.end()
    return compared


@pytest.mark.parametrize("page", [page for page in PAGES if page.exists() and "```python" in page.read_text()],
                         ids=lambda page: page.name)
def test_code_runs_and_prints_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    compared = run_page(page.read_text(), tmp_path)
    assert compared, "nothing was compared"
    for printed, said in compared:
        assert printed == said
    for path in tmp_path.glob("*.py"):
        sys.modules.pop(path.stem, None)


def test_the_page_runner_can_fail(tmp_path):
    wrong = "```python\nprint(1)\n```\n\n```text\n2\n```\n"
    assert run_page(wrong, tmp_path) == [("1\n", "2\n")]
    with pytest.raises(ZeroDivisionError):
        run_page("```python\n1 / 0\n```\n", tmp_path)
    assert run_page("```python\nprint(1)\n```\n\nwords\n\n```text\n1\n```\n", tmp_path) == []


# Links and names

def anchors(page):
    """Anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", prose(page.read_text()), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page, text):
    """Relative links that lead to nothing."""
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(text)):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or ROOT not in file.parents or (anchor and anchor not in anchors(file)):
            yield target


@each_page
def test_relative_links_lead_somewhere(page):
    assert list(broken_links(page, page.read_text())) == []


def test_broken_links_are_found():
    page = ROOT / "README.md"
    assert list(broken_links(page, "[a](docs/none.md) [b](#none) [c](docs/python.md#none) [d](/etc) [e](LICENSE)")) == [
        "docs/none.md", "#none", "docs/python.md#none", "/etc"]


def makefile_targets():
    return set(re.findall(r"^([a-z-]+):.*##", read("Makefile"), re.M))


@each_page
def test_named_make_targets_exist(page):
    named = set(re.findall(r"(?:^    |`)make ([a-z-]+)", page.read_text(), re.M))
    assert named <= makefile_targets()


def test_the_readme_names_every_make_target():
    rows = table(read("README.md"), "command")
    assert {row["command"].strip("`").removeprefix("make ") for row in rows} == makefile_targets()


@each_page
def test_named_files_exist(page):
    """Paths in code marks that begin with a room's name, and test files by their bare name."""
    for path in re.findall(r"`((?:spec|hdl|golden|sim|tests|docs|examples)/[\w./-]*)`", page.read_text()):
        assert (ROOT / path).exists(), path
    for pattern in re.findall(r"\b(test_[\w*]+\.py)", page.read_text()):
        assert list((ROOT / "tests").glob(pattern)), pattern


def test_ci_runs_the_command_that_the_readme_names():
    assert re.search(r"^make test$", read(".ci/run"), re.M) and "\n    make test\n" in read("README.md")


def test_the_readme_asks_for_what_the_system_check_asks_for():
    packages = re.search(r"sudo apt install (.*)", read("README.md"))[1]
    assert f"apt install {packages}" in read("sim/check_system.sh")


# Tables

def test_preset_table_of_the_readme():
    rows = table(read("README.md"), "preset")
    assert [row["preset"] for row in rows] == [f"`{name}`" for name in PRESETS]
    for row, (name, system) in zip(rows, PRESETS.items()):
        chip, core = system.chip, system.chip.core
        has_clock = core.tensor_clock_ghz != 1  # the public ones, and inf1's
        float_pairs = any(pair != "int8" for pair in core.pair_formats)
        extras = ["fp8 pairs"] * float_pairs + ["transpose"] * core.transpose
        assert row | {"note": ""} == {
            "preset": f"`{name}`", "cores": str(chip.cores), "rows x cols": f"{core.rows} x {core.cols}",
            "SBUF per partition": f"{core.sbuf_kib} KiB", "tensor inputs": short(core.formats),
            "and": ", ".join(extras) or "–", "note": "",
            "TFLOPS": f"{2 * core.rows * core.cols * core.tensor_clock_ghz / 1000:.1f}" if has_clock else "–"}


def config_fields():
    return [(cls, field.name) for cls in (CoreConfig, ChipConfig, SystemConfig) for field in fields(cls)
            if field.name not in ("name", "core", "chip")]


def test_field_table_of_the_configuration_page():
    rows = table(read("docs/configuration.md"), "field")
    rooms = {CoreConfig: "core", ChipConfig: "chip", SystemConfig: "system"}
    assert [(row["field"], row["of"]) for row in rows] == [(f"`{name}`", rooms[cls]) for cls, name in config_fields()]


def as_written(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return short(value) or "–"
    return f"{value:g}" if isinstance(value, float) else str(value)


def test_preset_table_of_the_configuration_page():
    text = read("docs/configuration.md")
    rows = table(text[text.index("## Presets"):], "field")
    assert [row["field"] for row in rows] == [f"`{name}`" for _, name in config_fields()]
    for row, (cls, name) in zip(rows, config_fields()):
        for preset, system in PRESETS.items():
            holder = {SystemConfig: system, ChipConfig: system.chip, CoreConfig: system.chip.core}[cls]
            assert row[f"`{preset}`"] == as_written(getattr(holder, name)), (preset, name)


def test_format_table_of_the_numerics_page():
    rows = table(read("docs/numerics.md"), "name")
    assert [row["name"].strip("`") for row in rows] == list(FLOAT_FORMATS)
    for row, (name, f) in zip(rows, FLOAT_FORMATS.items()):
        largest = decode(storage_dtype(name).type(f.max_finite)[None], name)[0]
        assert row["sign, exponent, fraction"].split(", in ")[0] == f"1, {f.exponent_bits}, {f.fraction_bits}"
        assert row["bias"] == str(f.bias) and row["infinity"] == ("yes" if f.has_infinity else "no")
        assert row["NaN results"] == f"{f.nan:0{f.width // 4}X}"
        assert float(row["largest finite"]) == pytest.approx(largest, rel=1e-7)


def test_every_rule_is_on_the_numerics_page_and_says_what_is_built():
    sections = re.split(r"^### (?=N\d)", prose(read("docs/numerics.md")), flags=re.M)[1:]
    assert [int(re.match(r"N(\d+)", section)[1]) for section in sections] == list(range(16))
    for section in sections:
        section = section.partition("\n## ")[0]
        assert "*Today:*" in section
        assert "not built" in section or ("*Tested:*" in section and "tests/test_" in section), section[:40]


def test_command_table_of_the_engine_page():
    text = read("docs/tensor-engine.md")
    rows = table(text, "field")
    nano, trn2 = (command_fields(PRESETS[name].chip.core) for name in ("nano", "trn2"))
    assert [(row["field"].strip("`"), int(row["bits on `nano`"]), int(row["on `trn2`"])) for row in rows] == [
        (name, bits, more) for (name, bits), (_, more) in zip(nano, trn2)]
    used_by = dict(re.findall(r"^    ([a-z_, ]+?)  +(all|[A-Z][A-Z, ]+?)  +\w", command_fields.__doc__, re.M))
    used_by = {name: words for names, words in used_by.items() for name in names.split(", ")}
    assert {row["field"].strip("`"): row["used by"] for row in rows} == used_by
    assert {row["opcode"]: int(row["code"]) for row in table(text, "opcode")} == {code.name: code for code in Opcode}
    codes = [row for row in table(text, "fp32")]
    assert codes == [{name: str(FORMAT_CODES[name]) for name in TENSOR_FORMATS}]


def test_use_table_of_the_engine_page_is_consistent():
    rows = table(read("docs/tensor-engine.md"), "N x M x K")
    assert [tuple(map(int, row["N x M x K"].split(" x "))) for row in rows] == list(PRODUCTS)
    for row, (n, m, k) in zip(rows, PRODUCTS):
        use = 100 * n * m * k / (16 * 16 * int(row["cycles"].replace(",", "")))
        assert row["use"] == (f"{use:.2f} %" if use < 1 else f"{use:.1f} %")
        assert row["SCALE-Sim v3"] == (f"{100 * SCALE_SIM[n, m, k]:.1f} %" if (n, m, k) in SCALE_SIM else "")


# Reports

def published():
    """Constant keys of every report in the sources of ``sim``, by target."""
    for path in sorted((ROOT / "sim").glob("*.py")):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "publish":
                target, facts = call.args[:2]
                yield target.value, [key.value for key in facts.keys if isinstance(key, ast.Constant)]


@pytest.mark.parametrize(("target", "keys"), list(published()), ids=lambda value: value if isinstance(value, str) else "")
def test_every_key_of_a_report_is_explained(target, keys):
    sections = re.split(r"^## ", read("docs/reports.md"), flags=re.M)
    section = next(section for section in sections if section.startswith(f"{target}\n"))
    assert keys and set(keys) <= set(re.findall(r"`(\w+)`", section))


def test_reports_were_found():
    assert {"demo", "utilisation", "bench"} <= dict(published()).keys()


# Pictures

@pytest.mark.parametrize("name", draw.PICTURES)
def test_pictures_are_current(name):
    assert draw.path(name).read_text() == draw.drawn(name), "run python -m docs.pictures.draw"


def test_every_picture_is_shown():
    shown = {path for page in PAGES for path in re.findall(r"!\[[^]]+\]\((?:docs/)?(pictures/\w+\.svg)\)", page.read_text())}
    assert shown == {f"pictures/{path.name}" for path in (ROOT / "docs" / "pictures").glob("*.svg")}
