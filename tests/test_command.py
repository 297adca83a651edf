"""sim/command.py: arguments as NAME=value, and one clear line for every mistake."""

import subprocess
import sys
from pathlib import Path

import pytest

from sim.command import parse_arguments, run_command, selected_system
from sim.errors import OutOfCycles
from sim.toolchain import ToolchainError
from spec.errors import SpecError
from spec.presets import configure

ALLOWED = {"CONFIG": "mini", "SET": ""}
_ROOT = Path(__file__).parents[1]


def test_arguments_replace_defaults():
    assert parse_arguments([], ALLOWED) == ALLOWED
    assert parse_arguments(["SET=rows=16 cols=16"], ALLOWED) == {"CONFIG": "mini", "SET": "rows=16 cols=16"}
    assert ALLOWED == {"CONFIG": "mini", "SET": ""}


@pytest.mark.parametrize("argument", ["TOP=pe", "config=mini", "mini", "--help", "=mini"])
def test_unknown_arguments_are_rejected(argument):
    with pytest.raises(SpecError) as error:
        parse_arguments([argument], ALLOWED)
    assert str(error.value) == f"argument: {argument!r} is not allowed; allowed: CONFIG=… SET=…"


def test_an_argument_where_there_is_none_is_rejected():
    with pytest.raises(SpecError, match="^argument: 'SEED=1' is not allowed; allowed: none$"):
        parse_arguments(["SEED=1"], {})


def test_the_system_is_what_config_and_set_name():
    assert selected_system({"CONFIG": "nano", "SET": "cores=2"}) == configure("nano", "cores=2")


@pytest.mark.parametrize("status", [0, 1])
def test_the_status_is_the_commands(monkeypatch, status):
    monkeypatch.setattr(sys, "argv", ["command", "CONFIG=nano"])
    seen = []
    with pytest.raises(SystemExit) as exit:
        run_command(lambda values: seen.append(values) or status, ALLOWED)
    assert exit.value.code == status and seen == [{"CONFIG": "nano", "SET": ""}]


@pytest.mark.parametrize("error", [SpecError("rows", 7, "a multiple of 8"), OutOfCycles("no end after 9 cycles"),
                                   ToolchainError("Simulation needs g++")])
def test_what_goes_wrong_is_one_line_and_status_2(monkeypatch, capsys, error):
    def main(values):
        raise error

    monkeypatch.setattr(sys, "argv", ["command"])
    with pytest.raises(SystemExit) as exit:
        run_command(main, ALLOWED)
    assert exit.value.code == 2 and capsys.readouterr() == ("", f"{error}\n")


def test_a_fault_of_ours_keeps_its_traceback(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["command"])
    with pytest.raises(ZeroDivisionError):
        run_command(lambda values: 1 // 0, ALLOWED)


@pytest.mark.parametrize(("command", "message"), [
    ("sim.demo CONFIG=pico", "CONFIG: 'pico' is not allowed; allowed: nano, mini, small, inf1, trn1, inf2 or trn2"),
    ("sim.verilog TOP=cpu", "TOP: 'cpu' is not allowed; allowed: pe, tile, array, "),
    ("sim.utilisation CONFIG=mini", "argument: 'CONFIG=mini' is not allowed; allowed: none"),
    ("sim.speed FULL=1", "FULL: '1' is not allowed; allowed: yes or no"),
])
def test_every_command_refuses_a_mistake_in_one_line(command, message):
    result = subprocess.run([sys.executable, "-m", *command.split()], text=True, capture_output=True, cwd=_ROOT)
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.startswith(message) and result.stderr.count("\n") == 1
