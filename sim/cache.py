"""Build cache: each build stands under a hash of all that determines it, whole or not at all."""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from sim.toolchain import ToolchainError

__all__ = ["BuildError", "Build", "content_key", "root", "limit_bytes", "entry", "contents", "keep_only", "trim"]

_LOG_LINES = 30         # shown when a build fails
_FRESH_SECONDS = 600    # a build this young is never removed: its process may not have opened it yet

_in_use = {}            # entry name -> descriptor of its lock file, on which this process keeps a shared lock


class BuildError(RuntimeError):
    """A build failed; the message names the log file and shows its last lines."""

    def __init__(self, what, log):
        lines = log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
        super().__init__(f"{what}; log file {log} ends with:\n" + "\n".join(lines))
        self.log = log


def root():
    """The cache folder: ``$OPENNEURONCORE_CACHE``, else ``$XDG_CACHE_HOME/openneuroncore``, else
    ``~/.cache/openneuroncore``. Made if it does not exist."""
    if named := os.environ.get("OPENNEURONCORE_CACHE"):
        folder = Path(named)
    else:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "openneuroncore"
    folder = folder.expanduser().absolute()
    if " " in str(folder):
        raise ToolchainError(f"The cache folder must not hold spaces, make cannot build there: {str(folder)!r}; "
                         "set OPENNEURONCORE_CACHE to another")
    for name in ("", "locks", "logs"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return folder


def limit_bytes():
    """Size above which old builds are removed: ``$OPENNEURONCORE_CACHE_GIB`` GiB, 4 where it is not set."""
    text = os.environ.get("OPENNEURONCORE_CACHE_GIB", "4")
    try:
        gib = float(text)
    except ValueError:
        gib = -1.0
    if not 0 <= gib < float("inf"):
        raise ToolchainError(f"OPENNEURONCORE_CACHE_GIB must be a number of GiB from 0, not {text!r}")
    return int(gib * 2**30)


def content_key(**parts):
    """Hash of everything that determines a build; the parts are JSON-able, their order does not matter."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


class Build:
    """One build under way: ``folder`` to write in, and ``run`` for its commands."""

    def __init__(self, what, folder, log, lock):
        self.folder = folder
        self._what = what
        self._log = log
        self._lock = lock

    def run(self, command, env=None, cwd=None):
        """Run a command with its output in the log.

        Raises
        ------
        BuildError
            The command failed.
        """
        with self._log.open("a") as log:
            print("$", *command, file=log, flush=True)
            # The command inherits the lock: if this process is killed, nobody builds here until the command ends too.
            result = subprocess.run([str(word) for word in command], env=env, cwd=cwd or self.folder,
                                    stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                    pass_fds=[self._lock])
        if result.returncode:
            raise BuildError(f"Building {self._what} failed: {Path(command[0]).name} ended with status "
                             f"{result.returncode}", self._log)


def entry(kind, key, make, what=None):
    """Folder of one build, made now if it is not there yet.

    The build happens in a folder of its own and is renamed into place when it is complete, under a file lock, so a
    killed build leaves nothing behind that could be taken for a result and two processes never build the same thing.

    Parameters
    ----------
    kind : str
        What sort of build, first part of the folder's name.
    key : str
        Its content hash, from ``content_key``.
    make : callable
        Called with a ``Build`` if the build is needed.
    what : str
        What is being built, for messages.

    Raises
    ------
    BuildError
        A command of the build failed.
    """
    name = f"{kind}-{key}"
    folder = root() / name
    if name in _in_use and folder.is_dir():
        return folder
    lock = _open_lock(name)
    try:
        _complete(name, folder, make, what or name, lock, _say)
    except BaseException:
        os.close(lock)
        raise
    _in_use[name] = lock
    return folder


def contents(kind, key, make, what):
    """Files of one small build by name, as text; made now, without a word, if the cache does not hold it.

    For builds by the thousand: nothing is printed, and nothing stays open once it has been read. Parameters and errors
    are those of ``entry``.

    Returns
    -------
    dict of str to str
    """
    name = f"{kind}-{key}"
    lock = _open_lock(name)
    try:
        folder = root() / name
        _complete(name, folder, make, what, lock, say=lambda text: None)
        return {path.name: path.read_text() for path in folder.iterdir()}
    finally:
        os.close(lock)


def _complete(name, folder, make, what, lock, say):
    """See to it that the entry is there, and that this lock is held, shared, from then on."""
    fcntl.flock(lock, fcntl.LOCK_SH)
    if not folder.is_dir():
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _make(name, folder, make, what, lock, say)
        fcntl.flock(lock, fcntl.LOCK_SH)
    os.utime(folder)


def _say(text):
    print(text, file=sys.stderr, flush=True)


def _make(name, folder, make, what, lock, say):
    partial = folder.with_name(f"{name}.partial")
    log = root() / "logs" / f"{name}.log"
    shutil.rmtree(partial, ignore_errors=True)  # a killed build's
    partial.mkdir()
    log.write_text("")
    say(f"Building {what} …")
    began = time.monotonic()
    try:
        make(Build(what, partial, log, lock))
        partial.rename(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    log.unlink()
    trim()
    say(f"Built {what} in {time.monotonic() - began:.1f} s")


def keep_only(folder, *names):
    """Remove everything from a folder but the named files, so that a cached build holds its result alone."""
    for path in folder.iterdir():
        if path.name not in names:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def trim():
    """Remove what killed builds left, then the least recently used builds until the cache is within its limit.

    Builds that any process uses, and fresh ones, stay.
    """
    folder, now = root(), time.time()
    for partial in folder.glob("*.partial"):
        with _idle(partial.stem) as idle:
            if idle:
                shutil.rmtree(partial, ignore_errors=True)
    builds = []
    for build in folder.iterdir():
        if build.name not in ("locks", "logs") and build.suffix != ".partial":
            with contextlib.suppress(FileNotFoundError):  # another process trims too
                builds.append((build.stat().st_mtime, _size(build), build))
    excess = sum(size for _, size, _ in builds) - limit_bytes()
    for used, size, build in sorted(builds):
        if excess <= 0 or now - used < _FRESH_SECONDS:
            break
        with _idle(build.name) as idle:
            if idle:
                # Out of the way in one step, so that no other process meets half of it.
                gone = build.with_name(f"{build.name}.partial")
                build.rename(gone)
                shutil.rmtree(gone, ignore_errors=True)
                excess -= size


@contextlib.contextmanager
def _idle(name):
    """Whether no process builds or uses the entry; if so, none can while the context lasts."""
    lock = _open_lock(name)
    try:
        yield _locked(lock)
    finally:
        os.close(lock)


def _locked(lock):
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False


def _open_lock(name):
    return os.open(root() / "locks" / name, os.O_RDWR | os.O_CREAT, 0o666)


def _size(folder):
    return sum(file.lstat().st_size for file in folder.rglob("*"))
