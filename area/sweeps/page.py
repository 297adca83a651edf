"""A sweep as one HTML page that needs nothing else: table, Pareto front, plots, and where the figures come from."""

from pathlib import Path

import jinja2
import pandas as pd
from markupsafe import Markup

from .scatter import SERIES, Mark, scatter
from .table import COLUMNS, SHOWN

__all__ = ["write_page"]

_PLOTS = (("area_mm2", "gflops"), ("area_mm2", "gflops_per_mm2"), ("elements", "utilisation"),
          ("area_mm2", "clock_ghz"))


def write_page(sweep, table, facts, folder):
    """Write ``sweep.html``; returns its path.

    Parameters
    ----------
    sweep : area.sweeps.file.Sweep
    table : pandas.DataFrame
        From :func:`area.sweeps.table.make_table`.
    facts : dict
        What the figures come from, by name.
    folder : pathlib.Path
    """
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    template = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True,
                                  undefined=jinja2.StrictUndefined).get_template("page.html")
    coloured = _coloured(table, sweep.varied)
    values = list(dict.fromkeys(table[coloured])) if coloured else []
    columns = _columns(table, sweep.varied)
    records = table.to_dict("records")
    path = folder / "sweep.html"
    path.write_text(template.render(
        name=sweep.name, facts=facts, columns=columns, rows=[_row(record, columns) for record in records],
        failures=[record for record in records if pd.notna(record["error"])], front=table["front"].any(),
        coloured=coloured, shapes=SERIES, legend=[(_word(value), shape) for value, shape in zip(values, SERIES)],
        plots=list(_plots(sweep.varied, table, coloured, values))))
    return path


def _columns(table, varied):
    """Columns of the page's table: what is varied, and the figures that any point has, the most telling first."""
    figures = [name for name in dict.fromkeys([*SHOWN, *COLUMNS]) if table[name].notna().any()]
    return [{"name": name, "heading": COLUMNS.get(name, (name,))[0], "unit": COLUMNS.get(name, ("", ""))[1],
             "is_text": table[name].map(type).eq(str).any()}
            for name in ("point", *(["front"] if table["front"].any() else []), *varied, *figures)]


def _row(record, columns):
    cells = [{"word": _word(record[column["name"]]), "value": _value(record[column["name"]]),
              "style": "text" if column["is_text"] else ""} for column in columns]
    for cell, column in zip(cells, columns):
        if column["name"] == "front":
            cell |= {"word": "★" * record["front"], "style": "star"}
    return {"number": record["point"], "on_front": record["front"], "cells": cells, "key": record["key"],
            "design": _word(record["design"])}


def _value(value):
    """What the page sorts by: numbers as they are, no value as nothing."""
    return "" if pd.isna(value) else int(value) if isinstance(value, bool) else value


def _coloured(table, varied):
    """The varied field that the colours tell: text before numbers, and few enough values."""
    fit = [name for name in varied if 2 <= table[name].nunique() <= len(SERIES)]
    return next((name for name in fit if table[name].map(type).eq(str).any()), fit[0] if fit else None)


def _word(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    if pd.isna(value):
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else value


def _plots(varied, table, coloured, values):
    for x, y in _PLOTS:
        held = table[table[x].notna() & table[y].notna()]
        if len(held):
            marks = [Mark(row[x], row[y], values.index(row[coloured]) if coloured else 0, row["point"],
                          _title(row, varied, (x, y)), row["front"] and (x, y) == _PLOTS[0])
                     for row in held.to_dict("records")]
            yield Markup(scatter(marks, _label(x), _label(y)))


def _title(row, varied, figures):
    return "\n".join([f"point {row['point']}", *(f"{name} {_word(row[name])}" for name in varied),
                      *(f"{COLUMNS[name][0]} {_word(row[name])} {COLUMNS[name][1]}".rstrip() for name in figures)])


def _label(name):
    heading, unit = COLUMNS[name]
    return f"{heading}, {unit}" if unit else heading
