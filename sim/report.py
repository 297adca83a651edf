"""What a target measured: one JSON file for scripts and, from the same data, a table for people."""

import json
import math
import re
from pathlib import Path

import numpy as np

__all__ = ["publish"]

_FOLDER = Path("build") / "reports"
_NUMBER = re.compile(r"-?\d|-$")


def publish(target, facts, folder=_FOLDER):
    """Write ``build/reports/<target>.json`` and print it as a table.

    Parameters
    ----------
    target : str
        What was measured, named as the make target that did it.
    facts : dict
        Flat: strings, numbers, Booleans or None by name, with the unit in the name where it is not obvious. A list
        is a table and holds one flat dict a row.
    folder : str or pathlib.Path
        Where the file goes.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    TypeError, ValueError
        A fact is of a kind that reports do not hold, or not finite.
    """
    facts = {name: [_row(target, name, row) for row in fact] if isinstance(fact, list) else _plain(target, name, fact)
             for name, fact in facts.items()}
    path = Path(folder) / f"{target}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
    print(_text(target, facts))
    print(f"Written to {path}")
    return path


def _row(target, name, row):
    if not isinstance(row, dict):
        raise TypeError(f"A row of {name!r} in report {target!r} must be a dict, not {row!r}")
    return {column: _plain(target, column, value) for column, value in row.items()}


def _plain(target, name, value):
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (str, int, float, bool, type(None))):
        raise TypeError(f"{name!r} in report {target!r} must be a string, a number, a Boolean or None, not {value!r} "
                        f"of type {type(value).__name__}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name!r} in report {target!r} must be finite, not {value}")
    return value


def _text(target, facts):
    blocks = [target]
    single = [[name, _word(fact)] for name, fact in facts.items() if not isinstance(fact, list)]
    if single:
        blocks.append(_aligned(single))
    blocks += [f"{name}:\n{_table(rows)}" for name, rows in facts.items() if isinstance(rows, list)]
    return "\n\n".join(blocks) + "\n"


def _table(rows):
    columns = list(dict.fromkeys(column for row in rows for column in row))
    words = [[_word(row.get(column)) for column in columns] for row in rows]
    return _aligned([columns, *words]) if rows else "  (none)"


def _aligned(rows):
    columns = []
    for column in zip(*rows):
        width = max(map(len, column))
        numbers = all(_NUMBER.match(word) for word in column[1:])
        columns.append([word.rjust(width) if numbers else word.ljust(width) for word in column])
    return "\n".join("  " + "  ".join(row).rstrip() for row in zip(*columns))


def _word(value):
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"
    return str(value)
