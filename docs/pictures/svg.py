"""The few shapes that the documentation's pictures are made of, written as plain SVG text."""

from html import escape

__all__ = ["Picture", "INK", "SOFT", "PALE", "LINE", "BLUE", "ORANGE", "GREEN", "PURPLE"]

INK, SOFT, PALE, LINE = "#1f2328", "#59636e", "#f6f8fa", "#8c959f"
BLUE, ORANGE, GREEN, PURPLE = "#0969da", "#bc4c00", "#1a7f37", "#8250df"

_FONT = "DejaVu Sans, Verdana, Helvetica, sans-serif"


class Picture:
    """An SVG picture on a white sheet, so that it reads the same on light and dark pages.

    Parameters
    ----------
    width, height : int
    title : str
        What the picture shows, for those who cannot see it.
    """

    def __init__(self, width, height, title):
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'font-family="{_FONT}" font-size="13" role="img">',
            f"<title>{escape(title)}</title>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" '
            f'markerUnits="userSpaceOnUse" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="{SOFT}"/></marker></defs>',
        ]
        self.box(0.5, 0.5, width - 1, height - 1, fill="#ffffff", stroke="#d0d7de", radius=6)

    def box(self, x, y, width, height, fill="#ffffff", stroke=LINE, radius=3, dashed=False, weight=1):
        """A rectangle."""
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self._parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius:g}" fill="{fill}" '
                           f'stroke="{stroke}" stroke-width="{weight:g}"{dash}/>')

    def text(self, x, y, words, size=13, colour=INK, anchor="start", bold=False, italic=False):
        """One line of text, if there is any; ``y`` is its baseline."""
        if not words:
            return
        style = (' font-weight="bold"' if bold else "") + (' font-style="italic"' if italic else "")
        self._parts.append(f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{colour}" text-anchor="{anchor}"{style}>'
                           f"{escape(words)}</text>")

    def lines(self, x, y, words, size=12, colour=SOFT, anchor="start", step=16):
        """Several lines of text, one below the other."""
        for index, line in enumerate(words):
            self.text(x, y + index * step, line, size, colour, anchor)

    def path(self, *points, colour=SOFT, weight=1.5, arrow=False, dashed=False):
        """A line through points; with ``arrow`` it ends in a tip."""
        steps = " ".join(f"{x:g},{y:g}" for x, y in points)
        tip = ' marker-end="url(#tip)"' if arrow else ""
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self._parts.append(f'<polyline points="{steps}" fill="none" stroke="{colour}" stroke-width="{weight:g}"{dash}{tip}/>')

    def shape(self, *points, fill):
        """A filled polygon."""
        corners = " ".join(f"{x:g},{y:g}" for x, y in points)
        self._parts.append(f'<polygon points="{corners}" fill="{fill}"/>')

    def __str__(self):
        return "\n".join([*self._parts, "</svg>", ""])
