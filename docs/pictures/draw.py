"""``python -m docs.pictures.draw``: draws the documentation's pictures anew."""

from importlib import import_module
from pathlib import Path

__all__ = ["PICTURES", "drawn", "path"]

PICTURES = ("engine", "pe", "wavefront")


def path(name):
    """The file that holds a picture."""
    return Path(__file__).with_name(f"{name}.svg")


def drawn(name):
    """A picture's SVG text, drawn now."""
    return str(import_module(f"docs.pictures.{name}").draw())


if __name__ == "__main__":
    for name in PICTURES:
        path(name).write_text(drawn(name))
        print(path(name))
