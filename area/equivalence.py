"""Proof that a netlist computes what its Verilog says, for blocks without registers."""

from sim import cache

from .errors import CostError
from .gates import gate_level
from .yosys import ABC, VERSION, run_script

__all__ = ["is_equivalent", "netlist_is_equivalent"]

SECONDS = 300
"""How long ABC may search."""

# A netlist leaves bits undefined that nothing reads. Defined as 0, an output among them would still have to be right.
_SCRIPT = """\
read_verilog {sources}
hierarchy -check -top {top}
proc
flatten
opt_clean
techmap
opt
setundef -zero
write_blif {side}.blif
"""


def is_equivalent(one, other):
    """Whether two designs without registers give the same outputs for all inputs: proven or refuted, not sampled.

    Parameters
    ----------
    one, other : hdl.emit.Emission
        With the same top and ports.

    Raises
    ------
    CostError
        They have registers, or :data:`SECONDS` were not enough.
    sim.cache.BuildError
        Yosys or ABC failed; the message names the log file.
    """
    sides = {"one": one, "other": other}

    def make(build):
        for side, design in sides.items():
            for name, text in design.files.items():
                (build.folder / f"{side}_{name}").write_text(text)
            sources = " ".join(f"{side}_{name}" for name in design.files)
            run_script(build, _SCRIPT.format(sources=sources, top=design.top, side=side))
            if ".latch" in (build.folder / f"{side}.blif").read_text():
                raise CostError(f"{design.top} has registers; equivalence is proven for blocks without")
        # By the names of ports, for so many seconds.
        build.run(["sh", "-c", f"'{ABC}' -c 'cec -T {SECONDS} one.blif other.blif' > answer"])
        cache.keep_only(build.folder, "answer")

    key = cache.content_key(script=_SCRIPT, yosys=VERSION, seconds=SECONDS,
                            files={side: design.files for side, design in sides.items()})
    answer = cache.contents("proof", key, make, f"the proof of {one.top}")["answer"]
    if "Networks are equivalent" in answer:
        return True
    if "NOT EQUIVALENT" in answer:
        return False
    raise CostError(f"{one.top} was neither proven nor refuted: " + " ".join(answer[-200:].split()))


def netlist_is_equivalent(emission, library):
    """Whether a design's netlist in cells of a library is equivalent to its Verilog; see :func:`is_equivalent`."""
    return is_equivalent(emission, gate_level(emission, library))
