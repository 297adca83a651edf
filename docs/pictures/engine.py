"""The tensor engine as blocks, what is around it, with the wavefront's cycle written into each processing element."""

from .svg import BLUE, GREEN, LINE, ORANGE, PALE, SOFT, Picture

__all__ = ["draw"]

SIZE, CELL = 4, 46
FEEDERS, ARRAY, TOP = 252, 316, 104
STREAMS = (FEEDERS - 22, 31), (FEEDERS - 12, 37)  # where they run down, and how far below a row's top they enter it


def shade(cycle):
    """Lighter blue the later a processing element is reached."""
    part = cycle / (3 * (SIZE - 1))
    return "#" + "".join(f"{round(low + (high - low) * part):02x}" for low, high in zip((155, 200, 255), (240, 247, 255)))


def draw():
    """The picture."""
    picture = Picture(900, 456, "Block diagram of the tensor engine, and of what is around it in a core")
    picture.text(24, 34, "Tensor engine", 16, bold=True)
    _edges(picture)
    _array(picture)
    _partial_sums(picture)
    _rest_of_the_core(picture)
    return picture


def _edges(picture):
    """Streams, control and the feeders at the array's left."""
    picture.text(24, TOP + 15, "command", 12)
    picture.path((24, TOP + 22), (96, TOP + 22), arrow=True)
    picture.box(98, TOP, 88, 46, PALE)
    picture.text(142, TOP + 19, "issue", 13, anchor="middle", bold=True)
    picture.text(142, TOP + 35, "order, hazards", 10.5, SOFT, "middle")
    picture.path((186, TOP + 22), (FEEDERS - 2, TOP + 22), arrow=True)
    picture.text(209, TOP + 16, "waves", 10.5, SOFT, "middle")
    picture.text(208, TOP + 37, "loads", 10.5, SOFT, "middle")

    for row in range(SIZE):
        y = TOP + row * CELL
        picture.box(FEEDERS, y + 4, 26, CELL - 8, "#fff1e5", ORANGE)
        picture.path((FEEDERS + 26, y + CELL / 2), (ARRAY - 1, y + CELL / 2), arrow=True)
        if row:
            picture.path((FEEDERS + 13, y - 4), (FEEDERS + 13, y + 4), weight=2)
        for x, down in STREAMS:
            picture.path((x, y + down), (FEEDERS - 1, y + down), colour=LINE, weight=1)
    picture.text(FEEDERS + 13, TOP - 10, "feeders", 12, anchor="middle")

    last = TOP + (SIZE - 1) * CELL
    for (x, down), name, colour, above in zip(STREAMS, ("stationary", "moving"), (ORANGE, BLUE), (28, 0)):
        picture.text(24, last + down - above - 7, name, 12, colour)
        picture.path((24, last + down - above), (x, last + down - above), colour=LINE, weight=1)
        picture.path((x, TOP + down), (x, last + down), colour=LINE, weight=1)
    picture.lines(24, last + 74, (
        "A feeder holds its row's operands", "and recodes them. An instruction", "goes down a row in two cycles."), 11)


def _array(picture):
    for row in range(SIZE):
        for col in range(SIZE):
            cycle = 2 * row + col
            x, y = ARRAY + col * CELL, TOP + row * CELL
            picture.box(x + 2, y + 2, CELL - 4, CELL - 4, shade(cycle), "#54aeff")
            picture.text(x + CELL / 2, y + CELL / 2 + 5, str(cycle), 13, anchor="middle")
    picture.text(ARRAY + SIZE * CELL / 2, TOP - 10, "rows x cols elements", 12, anchor="middle")
    picture.lines(ARRAY + SIZE * CELL + 14, TOP + 20, (
        "In each element: cycles", "until a wave reaches it.", "Moving operands go right", "in 1 cycle, sums down in 2."), 11)


def _partial_sums(picture):
    bottom = TOP + SIZE * CELL
    for col in range(SIZE):
        x = ARRAY + col * CELL
        picture.path((x + CELL / 2, bottom), (x + CELL / 2, bottom + 19), arrow=True)
        picture.box(x + 4, bottom + 21, CELL - 8, 24, "#dafbe1", GREEN)
        picture.text(x + CELL / 2, bottom + 38, "+", 15, GREEN, "middle", bold=True)
        for bank in range(3):
            picture.box(x + 4, bottom + 51 + bank * 15, CELL - 8, 12, "#dafbe1", GREEN, radius=2)
    picture.lines(ARRAY + SIZE * CELL + 14, bottom + 38, (
        "Partial-sum buffer: banks", "and a binary32 adder", "under each column."), 11)
    picture.path((ARRAY + SIZE * CELL / 2, bottom + 96), (ARRAY + SIZE * CELL / 2, bottom + 126), arrow=True)
    picture.text(ARRAY + SIZE * CELL / 2 + 12, bottom + 120, "results", 12, GREEN)


def _rest_of_the_core(picture):
    picture.box(682, 16, 202, 424)
    picture.text(700, 42, "Rest of the core", 16, bold=True)
    picture.text(700, 61, "dashed: not built yet", 12, SOFT)
    for index, (name, words, built) in enumerate((
            ("sequencers", "five streams, semaphores", True), ("state buffer (SBUF)", "banks, access patterns", True),
            ("DMA engines", "AXI4, descriptors", True), ("vector engine", "a lane a partition", True),
            ("scalar engine", "activation functions", False), ("NeuronLink, collectives", "ring and torus", False),
            ("GpSimd", "last", False))):
        y = 76 + index * 51
        picture.box(698, y, 170, 42, PALE, LINE, dashed=not built)
        picture.text(783, y + 18, name, 11.5, anchor="middle", bold=True, **({} if built else {"colour": SOFT}))
        picture.text(783, y + 33, words, 10.5, SOFT, "middle")
