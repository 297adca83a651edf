"""hdl/generate.py and hdl/tops.py: Verilog is written whole, the same each time, and says what it is."""

import json

import pytest

from hdl.generate import generate
from hdl.tops import TOPS, make_top
from sim import verilog as command
from spec.errors import SpecError
from spec.presets import configure

TINY = "rows=2 cols=2 tile=2 formats=bf16 fp8_pairs=no transpose=no"


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("top", TOPS)
def test_every_top_is_written(tmp_path, top):
    folder = generate("nano", top, TINY, tmp_path)
    assert folder == tmp_path / "nano" / top
    names = (folder / "files.f").read_text().split()
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["files"] == names and names[-1] == f"{manifest['top']}.v"
    assert {path.name for path in folder.iterdir()} == {*names, "files.f", "manifest.json"}
    for name in names:
        assert f"module {name.removesuffix('.v')}(" in (folder / name).read_text()


def test_the_manifest_records_the_configuration(tmp_path):
    manifest = json.loads((generate("mini", "pe", "formats=bf16 cores=1", tmp_path) / "manifest.json").read_text())
    assert manifest["config"] == "mini" and manifest["set"] == "formats=bf16 cores=1"
    chip = manifest["configuration"]["chip"]
    assert chip["core"]["rows"] == 8 and chip["core"]["formats"] == ["bf16"] and chip["cores"] == 1


def test_repetition_is_identical_and_stale_files_go(tmp_path):
    folder = generate("nano", "feeder", TINY, tmp_path)
    first = contents(folder)
    (folder / "onc_stale.v").write_text("module onc_stale(); endmodule\n")
    (folder / "folder").mkdir()
    assert contents(generate("nano", "feeder", TINY, tmp_path)) == first
    assert [path.name for path in folder.parent.iterdir()] == ["feeder"] and not (folder / "folder").exists()


def test_an_error_leaves_what_was_there(monkeypatch, tmp_path):
    before = contents(generate("nano", "add", folder=tmp_path))

    def write(emission, folder):
        folder.mkdir()
        (folder / "onc_add.v").write_text("module")
        raise OSError("No space left on device")

    monkeypatch.setattr("hdl.emit.Emission.write", write)
    with pytest.raises(OSError, match="No space left"):
        generate("nano", "add", folder=tmp_path)
    assert contents(tmp_path / "nano" / "add") == before
    assert [path.name for path in (tmp_path / "nano").iterdir()] == ["add"]


def test_the_command_prints_a_table(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "generate", lambda *arguments: generate(*arguments, folder=tmp_path / "build"))
    assert command.main({"CONFIG": "nano", "TOP": "add", "SET": ""}) == 0
    header, verilog, *others, total = capsys.readouterr().out.splitlines()
    assert header.split() == [f"{tmp_path}/build/nano/add/", "bytes"]
    assert verilog.split() == ["onc_add.v", f"{(tmp_path / 'build/nano/add/onc_add.v').stat().st_size:,}"]
    assert [line.split()[0] for line in others] == ["files.f", "manifest.json"]
    assert total.startswith("  3 files in ")


@pytest.mark.parametrize(("arguments", "message"), [
    (("nano", "cpu"), "^TOP: 'cpu' is not allowed; allowed: pe, tile, array, psum, "),
    (("pico", "pe"), "^CONFIG: 'pico' is not allowed; allowed: nano, mini, "),
    (("nano", "pe", "rows=6"), "^rows: 6 is not allowed; allowed: a multiple of the tile, 4, "),
    (("nano", "pe", "row=8"), "^SET: 'row' is not allowed; allowed: adder_stages, chips, "),
])
def test_mistakes_are_rejected_before_anything_is_written(tmp_path, arguments, message):
    with pytest.raises(SpecError, match=message):
        generate(*arguments, folder=tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_unknown_top_is_rejected():
    with pytest.raises(SpecError, match="^TOP: 'chip' is not allowed"):
        make_top("chip", configure("nano").chip.core)
