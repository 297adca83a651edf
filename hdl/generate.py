"""Verilog of one component into ``build/verilog/<config>/<top>/``."""

import os
import shutil
from dataclasses import asdict, replace
from pathlib import Path

from spec.presets import configure

from .emit import emit
from .tops import make_top

__all__ = ["generate"]

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
