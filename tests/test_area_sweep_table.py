"""area/sweeps/table.py: a row a point, the Pareto front, CSV and Parquet that say the same."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from area.sweeps.table import COLUMNS, SHOWN, failure_rows, make_table, mark_front, report_rows, write_table
from tests.sweep_results import FAILED, FIGURES, FRONT, made_up_results, made_up_sweep


@pytest.fixture
def table():
    return make_table(made_up_sweep(), made_up_results())


def test_a_row_says_what_was_varied_and_what_came_out(table):
    assert list(table.columns) == ["point", "rows", "formats", "form", *COLUMNS, "front", "error", "key", "design"]
    assert list(table["point"]) == [1, 2, 3, 4, 5, 6] and list(table["rows"]) == [4, 4, 8, 8, 16, 16]
    assert list(table["formats"][:2]) == ["bf16", "bf16,fp8"] and set(table["form"]) == {"bf16"}
    for number, (area, gflops) in FIGURES.items():
        row = table.iloc[number - 1]
        assert (row["area_mm2"], row["gflops"], row["cycles"]) == (area, gflops, 1234)


def test_fields_that_a_point_leaves_alone_have_the_presets_value():
    sweep = replace(made_up_sweep(), points=({"rows": "8"}, {"fp8_pairs": "no"}, {"formats": "int8"}, {}, {}, {}))
    table = make_table(sweep, made_up_results())
    assert list(table["rows"])[:3] == [8, 4, 4] and list(table["fp8_pairs"])[:3] == [True, False, True]
    assert table["formats"][2] == "int8" and table["formats"][0].startswith("fp32,tf32,bf16")


def test_the_front_is_marked(table):
    assert list(table["point"][table["front"]]) == FRONT


def dominated(points, index):
    area, throughput = points[index]
    return any(a <= area and t >= throughput and (a < area or t > throughput) for a, t in points)


def test_the_front_is_what_no_other_point_beats(rng):
    for _ in range(50):
        points = [tuple(map(float, point)) for point in rng.integers(1, 6, (12, 2))]
        front = mark_front(*map(pd.Series, zip(*points)))
        assert front == [not dominated(points, index) for index in range(len(points))] and any(front)


def test_points_without_figures_are_not_on_the_front():
    assert mark_front(pd.Series([1.0, np.nan, 0.5]), pd.Series([1.0, 9.0, np.nan])) == [True, False, False]


def test_rows_of_the_report_fit_a_terminal_and_failures_stand_apart(table):
    rows = report_rows(table, ("rows", "formats"))
    assert list(rows[0]) == ["point", "rows", "formats", *SHOWN, "front", "key"]
    assert rows[0]["key"] == table["key"][0][:8] and rows[FAILED - 1]["area_mm2"] is None
    assert failure_rows(table) == [{"point": FAILED, "error": "RuntimeError: <yosys> gave up"}]


def test_figures_that_no_point_has_are_left_out_of_the_report():
    results = [replace(result, figures={"area_mm2": 1.0}, error=None) for result in made_up_results()]
    rows = report_rows(make_table(made_up_sweep(), results), ("rows",))
    assert list(rows[0]) == ["point", "rows", "area_mm2", "key"]


def test_the_page_of_sweeps_explains_every_column(table):
    page = (Path(__file__).parents[1] / "docs" / "sweeps.md").read_text()
    explained = re.findall(r"`(\w+)`", page[page.index("## Columns"):page.index("## Where it runs")])
    assert set(table.columns) - {"point", "rows", "formats"} <= set(explained)


def test_csv_and_parquet_hold_the_same_and_repeat(table, tmp_path):
    (tmp_path / "again").mkdir()
    csv, parquet = write_table(table, tmp_path)
    for first, second in zip((csv, parquet), write_table(table, tmp_path / "again")):
        assert first.read_bytes() == second.read_bytes()
    read = pd.read_parquet(parquet)
    assert list(read.columns) == list(table.columns) and list(read["cycles"].dropna()) == [1234] * 5
    assert read["cycles"].dtype == "Int64"  # whole numbers, though a point has none
    assert read.to_csv(index=False) == csv.read_text()
