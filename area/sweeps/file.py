"""Sweep files: what is varied, what is simulated and where it runs, checked before anything does."""

import itertools
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from hdl.tops import TOPS
from spec.errors import SpecError, choices
from spec.formats import TENSOR_FORMATS
from spec.presets import PRESETS, configure, parse_settings
from spec.tensor import Matmul, is_paired_always

from .cluster import Cluster

__all__ = ["DEFAULT_PRODUCTS", "Sweep", "default_form", "read_sweep"]

DEFAULT_PRODUCTS = ((64, 64, 64), (33, 28, 47), (8, 64, 64))
"""(N, M, K) of the products that are simulated where a file names none: one that fills the array, one that fits no
array, and one with few columns of ``moving``."""

_MOST_POINTS = 10_000
_LONGEST = 65_536


@dataclass(frozen=True)
class Sweep:
    """A sweep file's contents.

    Parameters
    ----------
    name : str
        The file's, without its ending.
    preset, top : str
    common : dict of str to str
        Overrides that all points share, as ``SET=`` writes them.
    points : tuple of dict of str to str
        For each point the overrides that are its own.
    products : tuple of (int, int, int)
        (N, M, K) of the products to simulate.
    format : str or None
        Format of their operands; None leaves it to :func:`default_form`.
    seed : int
        Of the operands.
    period_ps : int
        Clock period that synthesis aims at.
    liberty : pathlib.Path or None
        Cell library; None for the default.
    cluster : area.sweeps.cluster.Cluster
        Where it runs.
    """

    name: str
    preset: str
    top: str
    common: dict
    points: tuple
    products: tuple
    format: str | None
    seed: int
    period_ps: int
    liberty: Path | None
    cluster: Cluster

    def settings(self, point):
        """All overrides of a point, as ``SET=`` writes them."""
        return " ".join(f"{name}={text}" for name, text in {**self.common, **point}.items())

    def form(self, core):
        """The :class:`spec.tensor.Matmul` in which the products run on a core."""
        return default_form(core, self.format)

    @property
    def varied(self):
        """Names of the fields that the points set, in the file's order."""
        return tuple(dict.fromkeys(name for point in self.points for name in point))


def default_form(core, format_name=None):
    """Form of the products on a core: the named format, else bf16, else the core's first; in pairs where it can be."""
    name = format_name or ("bf16" if "bf16" in core.formats else core.formats[0])
    return Matmul(name, name, paired=name in core.pair_formats or is_paired_always(name))


def read_sweep(path):
    """The :class:`Sweep` that a file describes.

    Raises
    ------
    SpecError
        The file cannot be read, is no TOML, or holds an unknown key, field or value.
    """
    path = Path(path)
    if path.suffix != ".toml" or not path.is_file():
        raise SpecError("SWEEP", str(path), "a file such as examples/sweeps/arrays.toml")
    if not re.fullmatch(r"[\w.-]+", path.stem):
        raise SpecError("SWEEP", path.name, "a name of letters, digits, '.', '_' and '-': results are kept under it")
    try:
        given = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpecError("SWEEP", str(path), f"TOML; {error}") from None
    _refuse_others(path.name, given, _KEYS)
    sweep = Sweep(path.stem, _preset(given), _top(given), _settings("set", given.get("set", {})), _points(given),
                  _products(given), _format(given), _whole(given, "seed", 1, 0, 2**32 - 1),
                  _whole(given, "period_ps", 1000, 1, 1_000_000), _liberty(given, path.parent),
                  Cluster.of(given.get("cluster", {})))
    for name in sweep.varied:
        if name in sweep.common:
            raise SpecError("set", name, "fields that no point sets itself")
    _check_points(sweep)
    return sweep


_KEYS = ("preset", "top", "products", "format", "seed", "period_ps", "liberty", "set", "grid", "point", "cluster")


def _refuse_others(where, given, allowed):
    for name in given:
        if name not in allowed:
            raise SpecError(where, name, choices(allowed))


def _preset(given):
    preset = given.get("preset", "mini")
    if preset not in list(PRESETS):  # a list, since what cannot be hashed may be given
        raise SpecError("preset", preset, choices(PRESETS))
    return preset


def _top(given):
    top = given.get("top", "tensor")
    if top not in list(TOPS):
        raise SpecError("top", top, choices(TOPS))
    return top


def _settings(where, given):
    """Fields with one value each, as ``SET=`` writes them."""
    if not isinstance(given, dict):
        raise SpecError(where, given, f"a table [{where}] of fields")
    return {name: _as_setting(where, name, value) for name, value in given.items()}


def _as_setting(where, name, value):
    if isinstance(value, bool):
        text = "yes" if value else "no"
    elif isinstance(value, list) and all(isinstance(item, (str, int)) for item in value):
        text = ",".join(str(item) for item in value)
    elif isinstance(value, (str, int, float)):
        text = "".join(str(value).split())
    else:
        raise SpecError(f"{where}: {name}", value, "a string, a number, true or false, or a list of strings or numbers")
    try:
        parse_settings(f"{name}={text}")
    except SpecError as error:
        # An unknown field is a mistake in the file's table, not in a SET that the user never wrote.
        place = where if error.field == "SET" else f"{where}: {error.field}"
        raise SpecError(place, error.value, error.allowed) from None
    return text


def _points(given):
    if ("grid" in given) == ("point" in given):
        raise SpecError("points", "both" if "grid" in given else "none", "either a table [grid] or tables [[point]]")
    return _grid(given["grid"]) if "grid" in given else _list(given["point"])


def _grid(given):
    if not isinstance(given, dict) or not given:
        raise SpecError("grid", given, "a table of fields with a list of values each")
    columns = []
    for name, values in given.items():
        if not isinstance(values, list) or not values:
            raise SpecError(f"grid: {name}", values, "a list of values")
        columns.append([(name, _as_setting("grid", name, value)) for value in values])
    count = 1
    for column in columns:
        count *= len(column)
    if count > _MOST_POINTS:
        raise SpecError("grid", f"{count} points", f"at most {_MOST_POINTS}")
    return tuple(dict(point) for point in itertools.product(*columns))


def _list(given):
    if not isinstance(given, list) or not given or len(given) > _MOST_POINTS:
        raise SpecError("point", f"{len(given)} points" if isinstance(given, list) else given,
                        f"1 to {_MOST_POINTS} tables [[point]]")
    return tuple(_settings("point", point) for point in given)


def _products(given):
    products = given.get("products", [list(product) for product in DEFAULT_PRODUCTS])
    if not isinstance(products, list):
        raise SpecError("products", products, "a list of [N, M, K]")
    for product in products:
        if not isinstance(product, list) or len(product) != 3 or not all(
                type(size) is int and 1 <= size <= _LONGEST for size in product):
            raise SpecError("products", product, f"[N, M, K], whole numbers from 1 to {_LONGEST}")
    return tuple(map(tuple, products))


def _format(given):
    name = given.get("format")
    if name is not None and name not in TENSOR_FORMATS:
        raise SpecError("format", name, choices(TENSOR_FORMATS))
    return name


def _whole(given, name, default, low, high):
    value = given.get(name, default)
    if type(value) is not int or not low <= value <= high:
        raise SpecError(name, value, f"a whole number from {low} to {high}")
    return value


def _liberty(given, folder):
    if "liberty" not in given:
        return None
    if isinstance(given["liberty"], str):
        path = (folder / Path(given["liberty"]).expanduser()).resolve()
        if path.is_file():
            return path
    raise SpecError("liberty", given["liberty"], "a Liberty file, its path seen from the sweep file's folder")


def _check_points(sweep):
    """Refuse points that cannot be, do not have the products' format, or are there twice."""
    seen = {}
    for number, point in enumerate(sweep.points, 1):
        try:
            system = configure(sweep.preset, sweep.settings(point))
            if sweep.format not in (None, *system.chip.core.formats):
                raise SpecError("format", sweep.format, choices(system.chip.core.formats))
        except SpecError as error:
            raise SpecError(f"point {number} ({sweep.settings(point)}): {error.field}", error.value,
                            error.allowed) from None
        if system in seen:
            raise SpecError(f"point {number}", sweep.settings(point),
                            f"different points; it is point {seen[system]} again")
        seen[system] = number
