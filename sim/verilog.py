"""``python -m sim.verilog [CONFIG=…] [TOP=…] [SET=…]``: Verilog into ``build/verilog/<config>/<top>/``."""

import os
import time

from hdl.generate import generate
from sim.command import run_command

__all__ = ["main"]


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
    run_command(main, {"CONFIG": "mini", "TOP": "tensor", "SET": ""})
