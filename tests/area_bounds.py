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
    Bound("nano", "pe", "formats=bf16 transpose=no", 2575.7, 1747, 1877),
    Bound("nano", "pe", "formats=bf16 transpose=no adder_stages=3", 2887.7, 1162, 1278),
    Bound("nano", "pe", "formats=fp8 transpose=no", 4053.8, 1748, 1898),
    Bound("nano", "pe", "formats=int8 transpose=no", 2043.1, 1058, 1197),
    Bound("nano", "pe", "", 9026.2, 2499, 2654),
    Bound("mini", "pe", "", 7548.0, 2616, 2748),
    Bound("nano", "tile", "formats=bf16 transpose=no", 41871.6, 1747, 1896),
    Bound("nano", "psum_column", "", 180395.8, 1859, 2178),
    Bound("nano", "feeder", "formats=bf16", 8442.3, 826, 921),
    Bound("mini", "issue", "", 5892.2, 957, 1053),
    Bound("nano", "add", "", 1654.0, 1564, 1686),
)


def costed(config, top, settings):
    """The :class:`area.estimate.Estimate` of a block in the default library."""
    return estimate(make_top(top, configure(config, settings).chip.core), default_library())


if __name__ == "__main__":
    for bound in BOUNDS:
        cost = costed(bound.config, bound.top, bound.settings)
        print(f'    Bound("{bound.config}", "{bound.top}", "{bound.settings}", {cost.area_um2:.1f}, '
              f"{cost.abc_delay_ps:.0f}, {cost.delay_ps:.0f}),")
