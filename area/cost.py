"""``python -m area.cost [CONFIG=…] [TOP=…] [SET=…] [LIBERTY=…] [SRAM=…]``: area, clock, and what one gets for them."""

from pathlib import Path

from hdl.tensor.pe import PE
from hdl.tops import make_top
from sim.command import run_command, selected_system
from sim.progress import progress_bar
from sim.report import publish
from spec.tensor import Matmul

from .estimate import estimate
from .library import chosen_library
from .sram import SRAMModel
from .treemap import draw_treemap

__all__ = ["cost_facts", "macs_per_element", "main"]

_PICTURE = Path("build") / "reports" / "area.png"


def main(values):
    """Run the command; returns 0."""
    core = selected_system(values).chip.core
    component = make_top(values["TOP"], core)
    sram = SRAMModel.from_path(values["SRAM"]) if values["SRAM"] else SRAMModel()
    library = chosen_library(values["LIBERTY"])
    with progress_bar("Synthesis and timing", "modules") as progress:
        cost = estimate(component, library, sram, progress=progress)
    _PICTURE.parent.mkdir(parents=True, exist_ok=True)
    title = f"{values['TOP']} of {values['CONFIG']}" + (f", {values['SET']}" if values["SET"] else "")
    draw_treemap(cost.blocks, f"{title}: {cost.area_um2 / 1e6:.4g} mm²", _PICTURE)
    facts = {"config": values["CONFIG"], "top": values["TOP"], "set": values["SET"] or None, **cost_facts(cost, core)}
    publish("area", facts)
    print(f"Picture in {_PICTURE}")
    return 0


def cost_facts(cost, core):
    """What a report says of an :class:`~area.estimate.Estimate`; figures per multiply-accumulate if there are any."""
    facts = {name: getattr(cost, name) for name in (
        "area_um2", "logic_um2", "sram_um2", "sram_bits", "registers", "cells", "delay_ps", "clock_ghz",
        "abc_delay_ps", "slowest")}
    elements = cost.count(PE.module_name)
    if elements:
        macs = elements * macs_per_element(core)
        peak = 2 * macs * cost.clock_ghz / 1000
        facts |= {"elements": elements, "macs_per_cycle": macs, "um2_per_element": cost.area_um2 / elements,
                  "um2_per_mac": cost.area_um2 / macs, "logic_um2_per_mac": cost.logic_um2 / macs, "peak_tflops": peak,
                  "mm2_per_tflops": cost.area_um2 / 1e6 / peak}
    rows = [{"block": ". " * (len(block.path) - 1) + block.path[-1].removeprefix("onc_"), "count": block.count,
             "cells": block.cells, "um2": round(block.area_um2, 1),
             "percent": round(100 * block.area_um2 / cost.area_um2, 2)} for block in cost.blocks]
    return facts | {"timer": cost.timer, "library": cost.library, "design": cost.content_hash, "blocks": rows}


def macs_per_element(core):
    """Multiply-accumulates of one element in a cycle, in its fastest format: 2 in pairs, 1/4 with nothing but fp32."""
    return max(Matmul(name, name, paired=name in core.pair_formats).peak_rate for name in core.formats)


if __name__ == "__main__":
    run_command(main, {"CONFIG": "mini", "TOP": "tensor", "SET": "", "LIBERTY": "", "SRAM": ""})
