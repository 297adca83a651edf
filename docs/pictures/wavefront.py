"""Three products crossing a 4 x 4 array, cycle by cycle, from a run of the engine."""

from .run import COMMANDS, CORE, COUNTS, run_engine
from .svg import BLUE, GREEN, INK, ORANGE, PALE, SOFT, Picture

__all__ = ["draw"]

CYCLES, CELL, LANE, LEFT, TOP = 45, 17, 19, 150, 108
PRODUCTS = BLUE, ORANGE, GREEN


class Lanes:
    """Lanes of cells, one below the other; a cell is a cycle."""

    def __init__(self, picture):
        self._picture, self._y = picture, TOP

    def gap(self, heading):
        """Some room, with a heading."""
        self._y += 24
        self._picture.text(24, self._y - 6, heading, 11, SOFT, italic=True)

    def lane(self, name, cells, marks=()):
        """A lane with ``cells`` as (cycle, words, colour) and ``marks``, triangles instead of words, as (cycle, colour)."""
        picture, y = self._picture, self._y
        picture.box(LEFT, y + 1, CYCLES * CELL, LANE - 2, PALE, PALE, radius=0)
        picture.text(LEFT - 10, y + 14, name, 11, INK, "end")
        marked = dict(marks)
        for cycle, words, colour in cells:
            x = LEFT + cycle * CELL
            picture.box(x + 1, y + 2, CELL - 2, LANE - 4, colour, colour, radius=2)
            if cycle not in marked:
                picture.text(x + CELL / 2, y + 13.5, words, 10, "#ffffff", "middle")
        for cycle, colour in marked.items():
            x = LEFT + cycle * CELL
            picture.box(x + 2.5, y + 3.5, CELL - 5, LANE - 7, "#ffffff", "#ffffff", radius=2)
            picture.shape((x + 4, y + 6), (x + CELL - 4, y + 6), (x + CELL / 2, y + LANE - 5), fill=colour)
        self._y += LANE

    @property
    def bottom(self):
        return self._y


def _numbered(active, counts):
    """Cells for the cycles in which something is active: numbered from 0 in each product, in the product's colour."""
    order = [(number, colour) for count, colour in zip(counts, PRODUCTS) for number in range(count)]
    cycles = [cycle for cycle, value in enumerate(active) if value]
    return [(cycle, str(number), colour) for cycle, (number, colour) in zip(cycles, order, strict=True)]


def _loads(active, index):
    """Cells for the words of weights: which columns they are for."""
    begun, cells = -1, []
    for cycle, (is_active, pair) in enumerate(zip(active, index)):
        if is_active:
            begun += pair == 0
            cells.append((cycle, f"{2 * pair}{2 * pair + 1}", PRODUCTS[begun]))
    return cells


def draw():
    """The picture."""
    signal = run_engine()
    picture = Picture(LEFT + CYCLES * CELL + 24, 652, "Timing of three products in a 4 x 4 tensor engine")
    picture.text(24, 34, "Three products cross a 4 x 4 array", 16, bold=True)
    picture.text(24, 53, "Signals of a run of the engine (preset nano, bf16). A cell is a cycle, its number a column of moving. "
                         "A triangle: the next weight is taken.", 12, SOFT)
    for x, name, colour in ((24, "first product, 6 columns", PRODUCTS[0]), (234, "second, 6 columns, accumulated", PRODUCTS[1]),
                            (486, "third, 3 columns, of 3 rows and 3 columns of weights", PRODUCTS[2])):
        picture.box(x, 67, 12, 12, colour, colour, radius=2)
        picture.text(x + 18, 78, name, 12)

    lanes = Lanes(picture)
    accepted = [cycle for cycle, (valid, ready)
                in enumerate(zip(signal("issue.command__valid"), signal("issue.command__ready"))) if valid and ready]
    lanes.lane("command taken", [(cycle, name[0], INK) for cycle, name in zip(accepted, COMMANDS, strict=True)])
    lanes.gap("issue")
    lanes.lane("load, for columns", _loads(signal("issue.load.active"), signal("issue.load.index")))
    lanes.lane("wave", _numbered(signal("issue.wave.active"), COUNTS))
    lanes.gap("elements: row, column")
    for row in range(CORE.rows):
        for col in range(CORE.cols):
            name = f"array.tile_0_0.pe_{row}_{col}"
            loads = [cycle for cycle, value in enumerate(signal(f"{name}.load")) if value]
            lanes.lane(f"{row}, {col}", _numbered(signal(f"{name}.moving_i.operand"), COUNTS if row < 3 else COUNTS[:2]),
                       zip(loads, PRODUCTS))
    lanes.gap("partial sums written")
    for col in range(CORE.cols):
        lanes.lane(f"column {col}", _numbered(signal(f"psum.column_{col}.stores"), COUNTS if col < 3 else COUNTS[:2]))
    lanes.lane("result sent", _numbered(signal("issue.read_valid"), COUNTS[:1]))

    for cycle in range(0, CYCLES + 1, 5):
        x = LEFT + cycle * CELL
        picture.path((x, TOP - 4), (x, lanes.bottom + 2), colour="#d0d7de", weight=0.8)
        picture.text(x, TOP - 8, str(cycle), 10, SOFT, "middle")
    return picture
