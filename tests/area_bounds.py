"""What some blocks cost, to notice a change. ``python -m tests.area_bounds`` prints the table as it is now."""

from dataclasses import dataclass

from area.estimate import estimate
from area.library import default_library
from hdl.tops import make_top
from spec.presets import configure

__all__ = ["BOUNDS", "TOLERANCE", "Bound", "costed"]

TOLERANCE = 0.04
"""A change of 5 % is noticed; another version of a tool is not."""


@dataclass(frozen=True)
class Bound:
    """A block and its cost: area in um2, longest path in ps by ABC and by OpenSTA."""

    config: str
    top: str
    settings: str
    area_um2: float
    abc_ps: float
    sta_ps: float


BOUNDS = (
    Bound("nano", "pe", "formats=bf16 transpose=no", 2572.5, 1745, 1876),
    Bound("nano", "pe", "formats=bf16 transpose=no adder_stages=3", 2926.8, 1001, 1121),
    Bound("nano", "pe", "formats=fp8 transpose=no", 3972.2, 1674, 1812),
    Bound("nano", "pe", "formats=int8 transpose=no", 2043.1, 1058, 1197),
    Bound("nano", "pe", "", 9032.0, 2758, 2882),
    Bound("mini", "pe", "", 7524.6, 2541, 2667),
    Bound("nano", "tile", "formats=bf16 transpose=no", 41820.5, 1745, 1921),
    Bound("nano", "psum_column", "", 180532.5, 1917, 2270),
    Bound("nano", "feeder", "formats=bf16", 8464.6, 766, 868),
    Bound("mini", "issue", "", 5912.6, 959, 1066),
    Bound("nano", "add", "", 1634.0, 1807, 1857),
)


def costed(config, top, settings):
    """The :class:`area.estimate.Estimate` of a block in the default library."""
    return estimate(make_top(top, configure(config, settings).chip.core), default_library())


if __name__ == "__main__":
    for bound in BOUNDS:
        cost = costed(bound.config, bound.top, bound.settings)
        print(f'    Bound("{bound.config}", "{bound.top}", "{bound.settings}", {cost.area_um2:.1f}, '
              f"{cost.abc_delay_ps:.0f}, {cost.delay_ps:.0f}),")
