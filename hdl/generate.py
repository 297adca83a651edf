"""``python -m hdl.generate [CONFIG=…] [TOP=…] [SET=…]``: Verilog into ``build/verilog/<config>/<top>/``."""

import os
import shutil
import time
from dataclasses import asdict, replace
from pathlib import Path

from spec.presets import configure

from .emit import emit
from .tops import make_top

__all__ = ["generate", "main"]

_FOLDER = Path("build") / "verilog"


def generate(config, top, settings="", folder=_FOLDER):
    """Write one component's Verilog, ``files.f`` and ``manifest.json``, and nothing at all on an error.

    The manifest says what :func:`hdl.emit.emit` says, and names the preset (``config``), the overrides (``set``) and, as
    ``configuration``, every field that they amount to.

    Parameters
    ----------
    config, settings : str
        As for :func:`spec.presets.configure`.
    top : str
        A name of :data:`hdl.tops.TOPS`.
    folder : str or pathlib.Path
        Where ``<config>/<top>/`` goes; an earlier one is replaced.

    Returns
    -------
    pathlib.Path
        The folder with the files.

    Raises
    ------
    SpecError
        An unknown name, or an impossible value.
    """
    system = configure(config, settings)
    emission = emit(make_top(top, system.chip.core))
    chosen = {"config": config, "set": settings, "configuration": asdict(system)}
    emission = replace(emission, manifest=emission.manifest | chosen)
    target = Path(folder) / config / top
    # Written beside its place and moved there whole: whoever reads it, or a full disk, meets no half of it.
    partial = target.with_name(f"{top}.{os.getpid()}.partial")
    try:
        emission.write(partial)
        if target.exists():
            shutil.rmtree(target)
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target


def main(values):
    """Run the command; returns 0."""
    began = time.perf_counter()
    target = generate(values["CONFIG"], values["TOP"], values["SET"])
    seconds = time.perf_counter() - began
    names = [*(target / "files.f").read_text().split(), "files.f", "manifest.json"]
    sizes = {name: (target / name).stat().st_size for name in names}
    rows = [*((name, f"{size:,}") for name, size in sizes.items()),
            (f"{len(sizes)} files in {seconds:.1f} s", f"{sum(sizes.values()):,}")]
    widths = [max(map(len, column)) for column in zip(("", "bytes"), *rows)]
    print(f"{str(target) + os.sep:{widths[0] + 2}}  {'bytes':>{widths[1]}}")
    for name, size in rows:
        print(f"  {name:{widths[0]}}  {size:>{widths[1]}}")
    return 0


if __name__ == "__main__":
    # Only the command line itself needs this floor above; whoever imports this module stays in hdl/.
    from sim.command import run_command

    run_command(main, {"CONFIG": "mini", "TOP": "tensor", "SET": ""})
