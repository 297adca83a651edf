"""A tree-map of an area report: every block a rectangle as large as its share of the chip."""

import matplotlib
import squarify
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

__all__ = ["draw_treemap"]

_COLOURS = matplotlib.colormaps["tab20"].colors
_WIDTH, _HEIGHT = 160.0, 100.0
_LABEL_SHARE = 0.012  # a smaller rectangle has no room for its name


def draw_treemap(blocks, title, path):
    """Write the picture; every block's own area, without what it places, is one rectangle within its parent.

    Parameters
    ----------
    blocks : sequence of area.estimate.Block
        Parents before children.
    title : str
    path : pathlib.Path
        A PNG file.
    """
    figure = Figure(figsize=(9.6, 6.2), layout="constrained")
    axes = figure.subplots()
    axes.set(xlim=(0, _WIDTH), ylim=(0, _HEIGHT), title=title)
    axes.set_axis_off()
    colours = {}
    for block in blocks:
        colours.setdefault(block.path[-1], _COLOURS[len(colours) % len(_COLOURS)])
    _fill(axes, blocks, blocks[0], (0, 0, _WIDTH, _HEIGHT), blocks[0].area_um2, colours)
    figure.savefig(path, dpi=130)


def _fill(axes, blocks, parent, place, whole, colours):
    """Divide the parent's rectangle among its own logic and its children."""
    children = [block for block in blocks if block.path[:-1] == parent.path and block.area_um2]
    shares = sorted([(parent.own_um2, None)] * (parent.own_um2 > 0) + [(child.area_um2, child) for child in children],
                    key=lambda share: -share[0])
    x, y, width, height = place
    sizes = squarify.normalize_sizes([area for area, _ in shares], width, height)
    for (area, child), rectangle in zip(shares, squarify.squarify(sizes, x, y, width, height)):
        corner = rectangle["x"], rectangle["y"], rectangle["dx"], rectangle["dy"]
        if child is not None and len(child.path) < 5 and any(block.path[:-1] == child.path for block in blocks):
            _fill(axes, blocks, child, corner, whole, colours)
        else:
            _rectangle(axes, corner, child or parent, area, whole, colours)
    axes.add_patch(Rectangle((x, y), width, height, fill=False, edgecolor="black", linewidth=1.2))


def _rectangle(axes, corner, block, area, whole, colours):
    x, y, width, height = corner
    colour = colours[block.path[-1]]
    axes.add_patch(Rectangle((x, y), width, height, facecolor=colour, edgecolor="white", linewidth=0.8))
    if area < _LABEL_SHARE * whole:
        return
    name = block.path[-1].removeprefix("onc_")
    lines = f"{name}\n× {block.count:,}\n{100 * area / whole:.1f} %"
    longest = max(map(len, lines.split("\n")))
    upright = height > 1.3 * width
    along, across = (height, width) if upright else (width, height)
    size = min(11, 1.45 * along / longest * 2.4, across / 3.6 * 2.2)
    if size >= 4:
        axes.text(x + width / 2, y + height / 2, lines, ha="center", va="center", fontsize=size,
                  rotation=90 if upright else 0)
