"""The pipeline of a processing element: what stands between which registers."""

from .svg import BLUE, GREEN, INK, LINE, ORANGE, PALE, SOFT, Picture

__all__ = ["draw"]

TOP, BOTTOM = 100, 372


def draw():
    """The picture."""
    picture = Picture(980, 400, "Pipeline of a processing element")
    picture.text(24, 34, "Processing element", 16, bold=True)
    picture.text(24, 53, "At the top: the cycle in which a register holds its value, after moving_i arrives in cycle 0. "
                         "L is 1, or 2 with fp8 pairs or fp32.", 12, SOFT)
    for x, words in ((220, "1"), (500, "1 + L"), (738, "2 + L")):
        picture.path((x, TOP - 10), (x, BOTTOM - 12), colour="#d0d7de", weight=1, dashed=True)
        picture.text(x, TOP - 16, words, 12, SOFT, "middle")
    _operands(picture)
    _sums(picture)
    return picture


def _register(picture, x, y, height, name, colour, note=""):
    """A register as a narrow upright bar with its name below."""
    picture.box(x - 6, y, 12, height, colour, colour, radius=1)
    width = 7 * max(len(name), len(note))
    picture.box(x - width / 2, y + height + 4, width, 29 if note else 14, "#ffffff", "#ffffff")
    picture.text(x, y + height + 15, name, 11, colour, "middle")
    picture.text(x, y + height + 29, note, 10.5, SOFT, "middle")


def _block(picture, x, y, width, height, name, *words):
    picture.box(x, y, width, height, PALE)
    picture.text(x + width / 2, y + 21, name, 13, anchor="middle", bold=True)
    picture.lines(x + width / 2, y + 40, words, 10.5, SOFT, "middle", 15)


def _operands(picture):
    picture.text(24, 138, "moving_i", 12, BLUE)
    picture.path((24, 146), (212, 146), arrow=True)
    picture.path((226, 146), (244, 146), (244, 108), (956, 108), arrow=True, colour=BLUE)
    picture.text(952, 125, "moving_o, to the right", 12, BLUE, "end")
    picture.path((226, 146), (280, 146), arrow=True)
    _register(picture, 220, 124, 44, "moving", BLUE)

    picture.text(24, 222, "weight_i", 12, ORANGE)
    picture.path((24, 230), (120, 230), arrow=True)
    picture.path((134, 230), (212, 230), arrow=True)
    picture.path((226, 230), (258, 230), (258, 188), (280, 188), arrow=True)
    _register(picture, 128, 208, 44, "next weight", ORANGE, "on load")
    _register(picture, 220, 208, 44, "weight", ORANGE, "on swap")

    _block(picture, 282, 124, 180, 116, "product", "exact: nothing is rounded", "fp8 pairs: two, added, rounded",
           "fp32: gathered in four passes", "int8 pairs: two, added")
    picture.path((462, 166), (492, 166), arrow=True)


def _sums(picture):
    picture.text(24, 322, "sum_i, from above, in cycle L", 12, GREEN)
    picture.path((24, 330), (492, 330), arrow=True)
    picture.path((506, 330), (532, 330), (532, 202), (554, 202), arrow=True)
    picture.path((506, 166), (554, 166), arrow=True)
    _register(picture, 500, 144, 44, "term", INK)
    _register(picture, 500, 308, 44, "running", GREEN)

    _block(picture, 556, 138, 146, 92, "align and add", "exact, with a sticky bit;", "int32 wraps; a transpose",
           "passes the weight's bits")
    picture.path((702, 184), (730, 184), arrow=True)
    picture.path((744, 184), (772, 184), arrow=True)
    _register(picture, 738, 162, 44, "total", INK)
    _block(picture, 774, 138, 150, 92, "normalise, round", "once, to nearest even;", "subnormal numbers kept", "")
    picture.path((849, 230), (849, 330), (956, 330), arrow=True)
    picture.text(952, 322, "sum_o, below", 12, GREEN, "end")
    picture.text(952, 348, "registered there", 10.5, SOFT, "end")
