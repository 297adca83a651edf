"""From an emission's Verilog to compiled code: what all ways of running a design share."""

import hashlib
import re
from pathlib import Path

from sim import cache, toolchain

__all__ = ["OPTIMISE", "COMPILE", "build_key", "write_sources", "control_file", "hierarchical_blocks", "build_options",
           "compile_flags", "verilate", "compile_design", "runtime", "cpp_names"]

# Measured on arrays of processing elements: 12 % faster than Verilator's own choice.
OPTIMISE = ("-O3", "--x-assign", "fast", "--x-initial", "fast", "-fno-gate")
# On a tile of 8 x 8 elements -O1 compiles five times as fast as -O3, and runs as fast.
COMPILE = "-O1 -march=native -fPIC -fno-gnu-unique"
_COMPILE_ONCE = "-O0 -fPIC -fno-gnu-unique"  # code that runs once, when a model starts
_COMPILE_OURS = f"-std=c++17 {COMPILE} -O2"  # the loops around a design, which are small

# What Amaranth's Verilog does on purpose. UNOPTFLAT is not among them: it finds combinational loops.
_WAIVED = ("WIDTHEXPAND", "WIDTHTRUNC", "CASEOVERLAP", "CASEINCOMPLETE", "CMPCONST", "UNSIGNED", "ASCRANGE")

# What the FST writer asks of compression libraries that need not be installed.
_COMPRESSION = [Path(__file__).parent / "fst" / name for name in ("lz4.h", "zlib.h")]

# The run-time library for every kind of build; of an archive the linker takes what a design needs. Compiled apart,
# because it would otherwise be compiled again for every design: 7 s, 15 s with VPI. -Os is Verilator's own choice.
_RUNTIME = "verilated verilated_threads verilated_dpi verilated_vpi verilated_fst_c verilated_vcd_c".split()
_RUNTIME_FLAGS = "-Os -fPIC -fno-gnu-unique -DVERILATOR=1"


def build_key(emission, **others):
    """Content key of a build: the design, the tools, how code is compiled, and whatever else decides this build."""
    files = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in emission.files.items()}
    return cache.content_key(top=emission.top, files=files, tools=toolchain.identity(),
                             compile=[COMPILE, _COMPILE_ONCE, _COMPILE_OURS], **others)


def write_sources(emission, folder):
    """Write an emission's Verilog files into a folder.

    Returns
    -------
    list of str
        The file names, in the emission's order.
    """
    for name, text in emission.files.items():
        if Path(name).name != name:
            raise ValueError(f"An emitted file must have a plain name, not {name!r}")
        (folder / name).write_text(text)
    return list(emission.files)


def control_file(*lines):
    """Text of a Verilator control file: lint waivers for generated Verilog, then the given lines."""
    waivers = [f'lint_off -rule {rule} -file "*.v"' for rule in _WAIVED]
    return "\n".join(["`verilator_config", *waivers, *lines, ""])


def hierarchical_blocks(emission, names):
    """Control file lines that make blocks of their own of those of the named modules that the design instantiates."""
    if isinstance(names, str):
        raise TypeError(f"Hierarchical modules must be a sequence of names, not the string {names!r}")
    held = {name for text in emission.files.values() for name in re.findall(r"^\s*module\s+([^\s(;#]+)", text, re.M)}
    return [f'hier_block -module "{name}"' for name in sorted(set(names) & held - {emission.top})]


def build_options(blocks, trace):
    """Verilator's arguments for a build with hierarchical blocks, with a trace in FST, both or neither."""
    return [*(["--hierarchical"] if blocks else []), *(["--trace-fst"] if trace else [])]


def compile_flags(trace):
    """Compiler arguments for a file of ours that includes the design's ``Vtop.h``."""
    root = toolchain.verilator_root()
    return [*_COMPILE_OURS.split(), f"-DVM_TRACE={int(trace)}", f"-DVM_TRACE_FST={int(trace)}", "-DVM_COVERAGE=0",
            f"-I{root}/include", f"-I{root}/include/vltstd", "-I.", "-Iobj"]


def verilate(build, emission, control, arguments):
    """Turn the Verilog into C++ in the build's folder, under the class name ``Vtop``.

    Parameters
    ----------
    build : sim.cache.Build
        The build under way.
    emission : hdl.emit.Emission
        The design.
    control : str
        Text of the control file.
    arguments : sequence of str
        Verilator's further arguments.
    """
    (build.folder / "onc.vlt").write_text(control)
    build.run([*toolchain.verilator_command(), "--cc", "--top-module", emission.top, "--prefix", "Vtop",
               "-Mdir", "obj", *arguments, "onc.vlt", *write_sources(emission, build.folder)],
              env=toolchain.environment())


def compile_design(build):
    """Compile what ``verilate`` wrote into ``obj/libVtop.a``, without the run-time library."""
    build.run(["make", f"-j{toolchain.jobs()}", "-C", "obj", "-f", "Vtop.mk", "libVtop.a"],
              env=toolchain.environment(OPT_FAST=COMPILE, OPT_SLOW=_COMPILE_ONCE, VM_GLOBAL_FAST=""))


def runtime():
    """Archive of Verilator's run-time library, compiled if the cache does not hold it, to be linked after the design's.

    Returns
    -------
    pathlib.Path
        The archive. Its folder's name belongs in content keys.
    """
    headers = {path.name: path.read_text() for path in _COMPRESSION}

    def make(build):
        for name, text in headers.items():
            (build.folder / name).write_text(text)
        include = toolchain.verilator_root() / "include"
        compiler = f"$(OBJCACHE) g++ {_RUNTIME_FLAGS} -I. -I{include} -I{include}/vltstd"
        (build.folder / "Makefile").write_text(
            f"libruntime.a: {' '.join(f'{part}.o' for part in _RUNTIME)}\n\tar rcs $@ $^\n"
            f"%.o: {include}/%.cpp\n\t{compiler} -c -o $@ $<\n")
        build.run(["make", f"-j{toolchain.jobs()}"], env=toolchain.environment())
        cache.keep_only(build.folder, "libruntime.a")

    key = cache.content_key(tools=toolchain.identity(), parts=_RUNTIME, flags=_RUNTIME_FLAGS, headers=headers)
    return cache.entry("runtime", key, make, "Verilator's run-time library") / "libruntime.a"


def cpp_names(folder):
    """Names that Verilator's C++ gives to the design's ports, by their Verilog names.

    Verilator writes a character that C++ does not allow, and a second underscore in a row, as ``__0`` and its code.

    Parameters
    ----------
    folder : pathlib.Path
        Where ``verilate`` left ``obj/Vtop.h``.
    """
    declared = re.findall(r"^\s*VL_(?:IN|OUT)\w*\(\(?&(\w+)", (folder / "obj" / "Vtop.h").read_text(), re.M)
    return {re.sub("__0([0-9A-F]{2})", lambda match: chr(int(match[1], 16)), name.removeprefix("__SYM__")): name
            for name in declared}
