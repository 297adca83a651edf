"""Scatter plots as SVG whose colours are the page's, so that they follow it into the dark."""

import math
from dataclasses import dataclass
from html import escape

from matplotlib.ticker import LogLocator, MaxNLocator

__all__ = ["SERIES", "Mark", "scatter"]

SERIES = ("M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0Z", "M-3.7,-3.7H3.7V3.7H-3.7Z", "M0,-5L4.8,3.6H-4.8Z",
          "M0,-5.4L5,0L0,5.4L-5,0Z", "M0,5L4.8,-3.6H-4.8Z",
          "M-4.5,-1.5H-1.5V-4.5H1.5V-1.5H4.5V1.5H1.5V4.5H-1.5V1.5H-4.5Z")
"""A shape for each series; the colours are the page's classes ``series0`` and so on."""

_WIDTH, _HEIGHT = 560, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 18, 18, 52
_DECADES = 1.3  # of values, above which a scale is logarithmic


@dataclass(frozen=True)
class Mark:
    """One point of a plot: where, in which series, its number in the sweep, what it is, whether on the front."""

    x: float
    y: float
    series: int
    number: int
    title: str
    on_front: bool = False


class _Scale:
    """Values to places along one axis, from 0 or logarithmic."""

    def __init__(self, values, start, end):
        low, high = min(values), max(values)
        self._start, self._end = start, end
        self._is_log = low > 0 and math.log10(high / low) > _DECADES
        if self._is_log:
            low, high = low / 1.2, high * 1.2
            self.ticks = [tick for tick in LogLocator(subs=(1, 2, 5)).tick_values(low, high) if low <= tick <= high]
            self._low, self._high = math.log10(low), math.log10(high)
        else:
            high = 1.06 * high or 1.0
            ticks = MaxNLocator(6, steps=(1, 2, 2.5, 5, 10)).tick_values(0, high)
            self.ticks = [tick for tick in ticks if 0 <= tick <= high]
            self._low, self._high = 0.0, high

    def __call__(self, value):
        value = math.log10(value) if self._is_log else value
        return self._start + (value - self._low) / (self._high - self._low) * (self._end - self._start)


def scatter(marks, x_label, y_label):
    """An ``svg`` element; marks on the front are numbered and joined.

    Parameters
    ----------
    marks : sequence of Mark
        At least one.
    x_label, y_label : str
    """
    x = _Scale([mark.x for mark in marks], _LEFT, _WIDTH - _RIGHT)
    y = _Scale([mark.y for mark in marks], _HEIGHT - _BOTTOM, _TOP)
    front = sorted((x(mark.x), y(mark.y), mark.number) for mark in marks if mark.on_front)
    return "\n".join([
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(f"{y_label} against {x_label}")}">',
        *_axes(x, y, x_label, y_label),
        f'<polyline class="front" points="{" ".join(f"{a:.1f},{b:.1f}" for a, b, _ in front)}"/>' if front else "",
        *(_mark(mark, x(mark.x), y(mark.y)) for mark in marks),
        *_numbers(front),
        "</svg>"])


def _axes(x, y, x_label, y_label):
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    middle = (_LEFT + right) / 2
    for tick in x.ticks:
        yield f'<path class="grid" d="M{x(tick):.1f},{_TOP}V{bottom}"/>'
        yield f'<text class="tick" x="{x(tick):.1f}" y="{bottom + 18}" text-anchor="middle">{tick:g}</text>'
    for tick in y.ticks:
        yield f'<path class="grid" d="M{_LEFT},{y(tick):.1f}H{right}"/>'
        yield f'<text class="tick" x="{_LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>'
    yield f'<path class="axis" d="M{_LEFT},{_TOP}V{bottom}H{right}"/>'
    yield f'<text class="label" x="{middle}" y="{_HEIGHT - 10}" text-anchor="middle">{escape(x_label)}</text>'
    yield (f'<text class="label" transform="translate(16 {(_TOP + bottom) / 2}) rotate(-90)" text-anchor="middle">'
           f'{escape(y_label)}</text>')


def _mark(mark, x, y):
    return (f'<path class="mark series{mark.series}" data-point="{mark.number}" transform="translate({x:.1f} {y:.1f})" '
            f'd="{SERIES[mark.series]}"><title>{escape(mark.title)}</title></path>')


def _numbers(front):
    """Numbers of the front's points, but for those that would run into one already there."""
    placed = []
    for x, y, number in front:
        x, y = x - 7, y - 7
        if all(abs(x - a) > 20 or abs(y - b) > 13 for a, b in placed):
            placed.append((x, y))
            yield f'<text class="number" x="{x:.1f}" y="{y:.1f}" text-anchor="end">{number}</text>'
