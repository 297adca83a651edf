"""``python -m examples.systemverilog.run``: writes the Verilog that the example needs, lints all of it, builds and runs it."""

import subprocess
import sys
import tempfile
from pathlib import Path

from hdl.generate import generate
from sim import cache, toolchain

__all__ = ["CONFIG", "FOLDER", "SETTINGS", "build", "generated", "lint"]

CONFIG, SETTINGS = "nano", "formats=bf16 transpose=no"

FOLDER = Path(__file__).parent
_HANDWRITTEN = [FOLDER / name for name in ("generated.vlt", "mat4_pkg.sv", "mat4.sv")]


def generated(folder):
    """Write the engine's Verilog; that of the processing element, which it uses, is among it. Returns its ``files.f``."""
    return generate(CONFIG, "tensor", SETTINGS, folder) / "files.f"


def lint(files, handwritten=_HANDWRITTEN):
    """What Verilator has to say with every warning switched on; nothing if all is well."""
    command = [*toolchain.verilator_command(), "--lint-only", "-Wall", "--top-module", "mat4", "-F", files, *handwritten]
    return subprocess.run(command, env=toolchain.environment(), text=True, capture_output=True).stderr


def build(files):
    """The test bench around the design as a program, from the cache or compiled now."""
    sources = [*_HANDWRITTEN, FOLDER / "main.cpp"]
    verilog = [files.parent / name for name in files.read_text().split()]

    def make(build):
        build.run([*toolchain.verilator_command(), "--cc", "--exe", "--build", "-Wall", "--top-module", "mat4", "-Mdir", "obj",
                   "-CFLAGS", "-O1", "-F", files, *sources], env=toolchain.environment())
        (build.folder / "obj" / "Vmat4").rename(build.folder / "mat4")
        cache.keep_only(build.folder, "mat4")

    key = cache.content_key(tools=toolchain.identity(), files={path.name: path.read_text() for path in (*verilog, *sources)},
                            script=Path(__file__).read_text())
    return cache.entry("example", key, make, "the SystemVerilog example") / "mat4"


def main():
    """Run the command; returns the test bench's status, or 2 where the linter complains."""
    with tempfile.TemporaryDirectory() as folder:
        files = generated(folder)
        if complaints := lint(files):
            print(complaints, file=sys.stderr)
            return 2
        return subprocess.run([build(files)]).returncode


if __name__ == "__main__":
    sys.exit(main())
