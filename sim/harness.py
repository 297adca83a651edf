"""Binds the C++ loops of ``harness.cpp`` to Python: builds them around a design and declares them to ctypes."""

import ctypes
from pathlib import Path

from sim import cache, toolchain, verilate

__all__ = ["PortPlace", "Column", "Stream", "MemorySettings", "MemoryRange", "MemoryStatistics", "FINISHED", "OUT_OF_CYCLES",
           "VALID_DROPPED", "PAYLOAD_CHANGED", "BUS_RULE_BROKEN", "build", "load"]

FINISHED, OUT_OF_CYCLES, VALID_DROPPED, PAYLOAD_CHANGED, BUS_RULE_BROKEN = range(5)

_SOURCE, _MEMORY = (Path(__file__).with_name(name) for name in ("harness.cpp", "axi.hpp"))
_WORD = ctypes.c_uint64


class PortPlace(ctypes.Structure):
    """Where a port lives in the model, and how many bytes of storage it has."""

    _fields_ = [("place", ctypes.c_void_p), ("bytes", _WORD)]


class Column(ctypes.Structure):
    """One port's rows in ``onc_vectors``."""

    _fields_ = [("port", ctypes.c_void_p), ("rows", ctypes.c_void_p), ("bytes", _WORD)]


class Stream(ctypes.Structure):
    """State of one stream in ``onc_streams``; the fields are explained in ``harness.cpp``."""

    _fields_ = [*((name, ctypes.c_void_p) for name in ("payload", "valid", "ready", "rows", "held")),
                *((name, _WORD) for name in ("bytes", "top_mask", "count", "done", "stall", "random", "first", "last",
                                             "waiting"))]


class MemorySettings(ctypes.Structure):
    """``axi::Settings``."""

    _fields_ = [("bytes", ctypes.c_void_p), ("rst", ctypes.c_void_p),
                *((name, _WORD) for name in ("size", "latency_low", "latency_high", "stall", "reorder", "random"))]


class MemoryRange(ctypes.Structure):
    """``axi::Range``."""

    _fields_ = [("first", _WORD), ("end", _WORD)]


class MemoryStatistics(ctypes.Structure):
    """``axi::Statistics``."""

    _fields_ = [(name, _WORD) for name in ("read_bursts", "write_bursts", "read_beats", "write_beats", "bytes_read",
                                           "bytes_written", "most_reads", "most_writes")]


def build(emission, hierarchical, trace):
    """Shared library of a design with the loops around it, from the cache or built now.

    Parameters
    ----------
    emission : hdl.emit.Emission
        The design.
    hierarchical : sequence of str
        Modules that are verilated once and instantiated; names that the design does not hold are passed over.
    trace : bool
        Whether the library can write FST.

    Returns
    -------
    pathlib.Path
        The library.
    """
    blocks = verilate.hierarchical_blocks(emission, hierarchical)
    control = verilate.control_file(*blocks)
    arguments = [*verilate.OPTIMISE, *verilate.build_options(blocks, trace)]
    library = verilate.runtime()

    def make(build):
        verilate.verilate(build, emission, control, arguments)
        (build.folder / "onc_ports.h").write_text(_ports_header(emission, verilate.cpp_names(build.folder)))
        verilate.compile_design(build)
        build.run(["g++", "-shared", "-Wl,-Bsymbolic", *verilate.compile_flags(trace), f"-I{_SOURCE.parent}", _SOURCE,
                   "obj/libVtop.a", library, "-o", "model.so"], env=toolchain.environment())
        cache.keep_only(build.folder, "model.so")

    key = verilate.build_key(emission, control=control, arguments=arguments, runtime=library.parent.name,
                             harness=[_SOURCE.read_text(), _MEMORY.read_text()])
    return cache.entry("model", key, make, f"the model of {emission.top}") / "model.so"


def _ports_header(emission, cpp_names):
    missing = [port.name for port in emission.ports if port.name not in cpp_names]
    if missing:
        raise ValueError(f"Verilator left out ports of {emission.top} that the emission lists: {', '.join(missing)}")
    ports = " ".join(f"ONC_PORT({cpp_names[port.name]})" for port in emission.ports)
    clocks = [f"#define ONC_CLOCK(top) (top)->{cpp_names['clk']}"] if "clk" in cpp_names else []
    return "\n".join([f"#define ONC_PORTS {ports}", *clocks, ""])


def load(library):
    """Open a library that ``build`` made, with the types of its functions declared."""
    code = ctypes.CDLL(str(library))
    model, count = ctypes.c_void_p, _WORD
    declared = {
        "onc_new": (model, []),
        "onc_delete": (None, [model]),
        "onc_ports": (None, [model, ctypes.POINTER(PortPlace)]),
        "onc_settle": (None, [model]),
        "onc_cycle": (count, [model]),
        "onc_step": (count, [model, count]),
        "onc_run_until": (count, [model, ctypes.c_void_p, count, count]),
        "onc_vectors": (count, [model, ctypes.POINTER(Column), count, ctypes.POINTER(Column), count, count, count]),
        "onc_streams": (count, [model, ctypes.POINTER(Stream), count, ctypes.POINTER(Stream), count, count,
                                ctypes.POINTER(count)]),
        "onc_watch": (None, [model, model, count]),
        "onc_watch_count": (count, [model]),
        "onc_watch_end": (None, [model, ctypes.c_void_p, ctypes.c_void_p]),
        "onc_memory": (None, [model, ctypes.POINTER(MemorySettings)]),
        "onc_memory_manager": (None, [model, ctypes.POINTER(PortPlace), ctypes.c_char_p]),
        "onc_memory_faulty": (None, [model, ctypes.POINTER(MemoryRange), count]),
        "onc_memory_statistics": (None, [model, count, ctypes.POINTER(MemoryStatistics)]),
        "onc_memory_error": (ctypes.c_char_p, [model]),
        "onc_memory_reset": (None, [model]),
        "onc_trace_open": (None, [model, ctypes.c_char_p]),
        "onc_trace_close": (None, [model]),
    }
    for name, (result, arguments) in declared.items():
        if function := getattr(code, name, None):  # the trace functions are in traced builds only
            function.restype, function.argtypes = result, arguments
    return code
