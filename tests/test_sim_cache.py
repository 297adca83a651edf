"""The build cache: whole builds or none, one builder at a time, and a bound on its size."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sim import cache
from sim.cache import BuildError
from sim.toolchain import ToolchainError

# A build in a process of its own, whose command takes its time.
BUILDER = """
import sys
from sim import cache
def make(build):
    (build.folder / "part").write_text("half")
    with open(sys.argv[1], "a") as calls:
        calls.write("built\\n")
    build.run(["sh", "-c", f"touch running; sleep {sys.argv[2]}"])
print(cache.entry("slow", "key", make), flush=True)
"""


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENNEURONCORE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_in_use", {})
    yield cache.root()
    for lock in cache._in_use.values():
        os.close(lock)


def write(size=1):
    return lambda build: (build.folder / "result").write_bytes(bytes(size))


def builds(root):
    return sorted(path.name for path in root.iterdir() if path.name not in ("locks", "logs"))


def forget():
    """End this process's use of its entries, as if they were another's of long ago."""
    for name, lock in cache._in_use.items():
        os.close(lock)
        os.utime(cache.root() / name, (0, 0))
    cache._in_use.clear()


def start_builder(calls, seconds):
    return subprocess.Popen([sys.executable, "-c", BUILDER, calls, str(seconds)], stdout=subprocess.PIPE, text=True,
                            stderr=subprocess.DEVNULL, cwd=Path(cache.__file__).parents[1])


def test_the_folder_is_chosen_by_the_environment(tmp_path, monkeypatch):
    assert cache.root() == tmp_path / "cache"
    monkeypatch.delenv("OPENNEURONCORE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.root() == tmp_path / "xdg" / "openneuroncore"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache.root() == tmp_path / "home" / ".cache" / "openneuroncore"


def test_a_folder_with_spaces_is_rejected(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENNEURONCORE_CACHE", str(tmp_path / "my cache"))
    with pytest.raises(ToolchainError, match="must not hold spaces"):
        cache.root()


def test_equal_keys_build_once():
    calls = []

    def make(build):
        calls.append(build)
        (build.folder / "result").touch()

    folder = cache.entry("kind", "key", make)
    forget()
    assert cache.entry("kind", "key", make) == folder and len(calls) == 1
    assert cache.entry("kind", "other", make) != folder and len(calls) == 2


def test_any_change_is_a_new_key():
    keys = {cache.content_key(**parts) for parts in ({"a": 1}, {"a": 2}, {"b": 1}, {"a": 1, "b": 1}, {"a": "1"})}
    assert len(keys) == 5
    assert cache.content_key(a=1, b=2) == cache.content_key(b=2, a=1)


def test_a_failed_build_names_its_log_and_leaves_nothing(root):
    def make(build):
        build.run(["sh", "-c", "echo first; echo last >&2; exit 3"])

    message = "Building the thing failed: sh ended with status 3; log file .*/logs/"
    with pytest.raises(BuildError, match=message) as error:
        cache.entry("kind", "key", make, "the thing")
    assert str(error.value).endswith("first\nlast")
    assert error.value.log.read_text().endswith("first\nlast\n")
    assert builds(root) == []


def test_an_interrupted_build_leaves_nothing(root):
    def make(build):
        (build.folder / "part").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.entry("kind", "key", make)
    assert builds(root) == []


def test_a_killed_build_leaves_nothing_that_counts(root, tmp_path):
    with start_builder(tmp_path / "calls", 0.5) as killed:
        while not (root / "slow-key.partial" / "running").exists():
            assert killed.poll() is None
            time.sleep(0.01)
        killed.send_signal(signal.SIGKILL)
    assert builds(root) == ["slow-key.partial"]
    began = time.monotonic()
    assert (cache.entry("slow", "key", write()) / "result").exists()
    assert time.monotonic() - began > 0.2  # its command was still writing there
    assert builds(root) == ["slow-key"] and not (root / "slow-key" / "part").exists()


def test_trim_removes_what_killed_builds_left(root):
    (root / "kind-key.partial").mkdir()
    cache.trim()
    assert builds(root) == []


def test_two_processes_build_once(root, tmp_path):
    calls = tmp_path / "calls"
    with start_builder(calls, 0.5) as first, start_builder(calls, 0.5) as second:
        answers = {first.communicate()[0].splitlines()[-1], second.communicate()[0].splitlines()[-1]}
    assert answers == {str(root / "slow-key")}
    assert calls.read_text() == "built\n"


def test_the_least_recently_used_builds_go_first(root, monkeypatch):
    monkeypatch.setenv("OPENNEURONCORE_CACHE_GIB", str(2.5 * 2**20 / 2**30))
    for number, name in enumerate("abc"):
        cache.entry("kind", name, write(2**20))
        forget()
        os.utime(root / f"kind-{name}", (number, number))
    assert builds(root) == ["kind-b", "kind-c"]
    cache.entry("kind", "b", write())
    forget()
    os.utime(root / "kind-b", (9, 9))
    cache.entry("kind", "d", write(2**20))
    assert builds(root) == ["kind-b", "kind-d"]


def test_used_and_fresh_builds_stay(root, monkeypatch):
    monkeypatch.setenv("OPENNEURONCORE_CACHE_GIB", "0")
    cache.entry("kind", "used", write())
    os.utime(root / "kind-used", (0, 0))
    (root / "kind-fresh").mkdir()
    (root / "kind-old").mkdir()
    os.utime(root / "kind-old", (0, 0))
    cache.trim()
    assert builds(root) == ["kind-fresh", "kind-used"]


@pytest.mark.parametrize("text", ["-1", "four", "nan", "inf"])
def test_wrong_limits_are_rejected(monkeypatch, text):
    monkeypatch.setenv("OPENNEURONCORE_CACHE_GIB", text)
    with pytest.raises(ToolchainError, match="OPENNEURONCORE_CACHE_GIB must be a number of GiB from 0, not"):
        cache.limit_bytes()


def test_contents_are_made_once_and_without_a_word(root, capsys):
    calls = []

    def make(build):
        calls.append(build)
        (build.folder / "result").write_text("made")

    first, second = (cache.contents("kind", "key", make, "a result") for _ in range(2))
    assert first == second == {"result": "made"} and len(calls) == 1
    assert capsys.readouterr() == ("", "")


def test_contents_are_held_by_nobody_afterwards(root, monkeypatch):
    cache.contents("kind", "key", write(1000), "a result")
    assert not cache._in_use
    os.utime(root / "kind-key", (0, 0))
    monkeypatch.setenv("OPENNEURONCORE_CACHE_GIB", "0")
    cache.trim()
    assert builds(root) == []


def test_contents_that_fail_leave_nothing(root):
    with pytest.raises(BuildError, match="Building a result failed"):
        cache.contents("kind", "key", lambda build: build.run(["false"]), "a result")
    assert builds(root) == []
