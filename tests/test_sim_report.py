"""Reports: the file and the table say the same."""

import json

import numpy as np
import pytest

from sim.progress import progress_bar
from sim.report import publish

FACTS = {"preset": "mini", "seed": 12345678, "cycles_per_second": 123456.7, "use": 0.98765, "passed": True,
         "note": None,
         "rows": [{"name": "pe", "um2": 2487, "ns": 1.85}, {"name": "tile", "um2": 159168, "ns": None}]}


def test_a_report_is_written_and_printed(tmp_path, capsys):
    path = publish("area", FACTS, tmp_path)
    assert path == tmp_path / "area.json" and json.loads(path.read_text()) == FACTS
    assert capsys.readouterr().out == f"""area

  preset             mini
  seed               12345678
  cycles_per_second  123457
  use                0.9877
  passed             yes
  note               -

rows:
  name     um2    ns
  pe      2487  1.85
  tile  159168     -

Written to {path}
"""


def test_an_empty_table_prints(tmp_path, capsys):
    publish("empty", {"rows": []}, tmp_path)
    assert "rows:\n  (none)" in capsys.readouterr().out


def test_numbers_of_numpy_are_numbers(tmp_path):
    path = publish("numpy", {"count": np.int64(5), "rate": np.float32(0.5)}, tmp_path)
    assert json.loads(path.read_text()) == {"count": 5, "rate": 0.5}


def test_a_progress_bar_is_silent_where_there_is_no_terminal(capsys):
    with progress_bar("waiting") as show:
        show(1, 2)
        show(2, 2)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("facts", "message"), [
    ({"a": {"b": 1}}, "'a' in report 'x' must be a string, a number, a Boolean or None, not {'b': 1} of type dict"),
    ({"a": [1]}, "A row of 'a' in report 'x' must be a dict, not 1"),
    ({"a": [{"b": [1]}]}, "'b' in report 'x' must be"),
    ({"a": float("nan")}, "'a' in report 'x' must be finite, not nan"),
])
def test_wrong_facts_are_rejected(tmp_path, facts, message):
    with pytest.raises((TypeError, ValueError), match="^" + message):
        publish("x", facts, tmp_path)
    assert not list(tmp_path.iterdir())
