"""A sweep's results as a table: one row a point, the Pareto front marked; CSV and Parquet."""

import pandas as pd

from spec.presets import configure

__all__ = ["COLUMNS", "SHOWN", "failure_rows", "make_table", "mark_front", "report_rows", "write_table"]

COLUMNS = {
    "elements": ("elements", ""), "area_mm2": ("area", "mm²"), "logic_mm2": ("logic", "mm²"),
    "sram_mm2": ("SRAM", "mm²"), "sram_bits": ("memory", "bit"), "registers": ("registers", ""), "cells": ("cells", ""),
    "delay_ps": ("longest path", "ps"), "clock_ghz": ("clock", "GHz"), "cycles": ("cycles", ""),
    "macs_per_cycle": ("MACs a cycle", ""), "busy_fraction": ("busy", ""), "utilisation": ("utilisation", ""),
    "peak_gflops": ("peak", "GFLOP/s"), "gflops": ("throughput", "GFLOP/s"),
    "gflops_per_mm2": ("throughput per area", "GFLOP/s per mm²"),
}
"""Figures by name, each with a heading and its unit."""

SHOWN = ("area_mm2", "clock_ghz", "cycles", "utilisation", "gflops", "gflops_per_mm2")
"""The figures that the terminal has room for."""

_KEY_DIGITS = 8  # of a key, where people read it


def make_table(sweep, results):
    """A :class:`pandas.DataFrame` with a row for each point: its number, the fields that are varied, the form of the
    products, the figures, ``front``, ``error``, and the hashes in full."""
    rows = []
    for number, (point, result) in enumerate(zip(sweep.points, results), 1):
        system = configure(sweep.preset, sweep.settings(point))
        row = {"point": number} | {name: _cell(system, name, point) for name in sweep.varied}
        if sweep.products:
            row["form"] = result.form.moving + " pairs" * result.form.paired
        row |= {name: result.figures.get(name) for name in COLUMNS}
        row |= {"error": result.error, "key": result.key, "design": result.designs and result.designs.costed}
        rows.append(row)
    table = pd.DataFrame(rows)
    table[list(COLUMNS)] = table[list(COLUMNS)].apply(pd.to_numeric)
    whole = ["elements", "sram_bits", "registers", "cells", "cycles"]
    table[whole] = table[whole].astype("Int64")  # whole numbers stay so where a point has none
    table.insert(table.columns.get_loc("error"), "front", mark_front(table["area_mm2"], table["gflops"]))
    return table


def mark_front(area, throughput):
    """For each point whether it is on the Pareto front: no other has at least its throughput on at most its area, and
    more of the one or less of the other. Points without figures are not."""
    points = list(zip(area, throughput))
    known = [point for point in points if not (pd.isna(point[0]) or pd.isna(point[1]))]
    return [point in known and not any(a <= point[0] and t >= point[1] and (a, t) != point for a, t in known)
            for point in points]


def report_rows(table, varied):
    """Rows for the terminal and the report: what is varied, the figures that have room, short keys."""
    figures = [name for name in SHOWN if table[name].notna().any()]
    names = ["point", *varied, *figures, *(["front"] if table["front"].any() else []), "key"]
    rows = table[names].astype(object).where(table[names].notna(), None).to_dict("records")
    return [{**row, "key": row["key"][:_KEY_DIGITS]} for row in rows]


def failure_rows(table):
    """Number and reason of the points that failed, each reason in one line."""
    failed = table[table["error"].notna()]
    return [{"point": number, "error": error.splitlines()[0]}
            for number, error in zip(failed["point"], failed["error"])]


def write_table(table, folder):
    """Write ``sweep.csv`` and ``sweep.parquet``; returns the paths."""
    paths = folder / "sweep.csv", folder / "sweep.parquet"
    table.to_csv(paths[0], index=False)
    table.to_parquet(paths[1], index=False)
    return paths


def _cell(system, name, point):
    """A configuration's field as one cell; a list as the point names it, which is shorter than what it stands for."""
    holder = next(holder for holder in (system, system.chip, system.chip.core) if hasattr(holder, name))
    value = getattr(holder, name)
    return (point.get(name) or ",".join(map(str, value))) if isinstance(value, tuple) else value
