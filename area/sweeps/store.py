"""Results of a sweep on disk: one file a point, whole or not at all, named by a hash of all that decides it."""

import json
import os
from pathlib import Path

__all__ = ["Store"]


class Store:
    """Results by key in ``<folder>/points``, and designs by configuration in ``<folder>/designs``.

    Parameters
    ----------
    folder : str or pathlib.Path
        Made if it does not exist.
    """

    def __init__(self, folder):
        self.folder = Path(folder)
        for name in ("points", "designs"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)

    def load(self, kind, key):
        """What was kept under a key, or None; a file that is no result counts as none and is replaced in time."""
        try:
            return json.loads(self._path(kind, key).read_text())
        except (FileNotFoundError, ValueError):
            return None

    def save(self, kind, key, result):
        """Keep a result; a reader meets all of it or none, whenever this process is killed."""
        path = self._path(kind, key)
        partial = path.with_suffix(f".{os.getpid()}")
        with partial.open("w") as file:
            file.write(json.dumps(result, indent=2) + "\n")
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)

    def _path(self, kind, key):
        return self.folder / kind / f"{key}.json"
