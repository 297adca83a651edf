"""area/sweeps/store.py and provenance.py: results that are whole or absent, and what they are hashed from."""

import os

import pytest

from area.sweeps import provenance
from area.sweeps.store import Store

RESULT = {"inputs": {"seed": 1}, "figures": {"area_mm2": 0.1 + 0.2, "cycles": 7}, "error": None}


def test_what_is_saved_is_loaded_by_another_process_to_the_last_bit(tmp_path):
    Store(tmp_path).save("points", "key", RESULT)
    assert Store(tmp_path).load("points", "key") == RESULT
    assert Store(tmp_path).load("points", "other") is None and Store(tmp_path).load("designs", "key") is None


def test_a_file_that_is_no_result_counts_as_none(tmp_path):
    store = Store(tmp_path)
    for text in ("", '{"inputs": {', "\0\0"):
        (tmp_path / "points" / "key.json").write_text(text)
        assert store.load("points", "key") is None
    store.save("points", "key", RESULT)
    assert store.load("points", "key") == RESULT


def test_a_process_that_dies_while_it_saves_leaves_the_old_result(tmp_path, monkeypatch):
    store = Store(tmp_path)
    store.save("points", "key", RESULT)

    def die(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", die)
    with pytest.raises(KeyboardInterrupt):
        store.save("points", "key", {**RESULT, "error": "x" * 10_000})
    assert store.load("points", "key") == RESULT


def test_a_change_of_any_source_changes_the_hash(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "_ROOT", tmp_path)
    (tmp_path / "hdl").mkdir()
    (tmp_path / "hdl" / "pe.py").write_text("rows = 8\n")
    hashes = [provenance.source_hash("hdl/**/*.py")]
    assert provenance.source_hash("hdl/**/*.py", "hdl/*.py") == hashes[0]  # however often a file matches
    (tmp_path / "hdl" / "notes.md").write_text("nothing\n")
    assert provenance.source_hash("hdl/**/*.py") == hashes[0]
    (tmp_path / "hdl" / "pe.py").write_text("rows = 9\n")
    hashes.append(provenance.source_hash("hdl/**/*.py"))
    (tmp_path / "hdl" / "pe.py").rename(tmp_path / "hdl" / "tile.py")
    hashes.append(provenance.source_hash("hdl/**/*.py"))
    assert len(set(hashes)) == 3


def test_the_flow_names_code_and_tools():
    assert {"cost", "driver", "amaranth", "pyosys", "verilator", "timer"} <= provenance.flow().keys()
    assert provenance.PROJECT != provenance.source_hash("spec/*.py")
