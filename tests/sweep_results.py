"""Made-up results of a sweep, for tests of tables and pages."""

import hashlib

from area.sweeps.cluster import Cluster
from area.sweeps.file import Sweep
from area.sweeps.point import Designs
from area.sweeps.run import Result
from spec.tensor import Matmul

FIGURES = {  # by number of point: area in mm2, GFLOP/s
    1: (1.0, 10.0),   # on the front
    2: (2.0, 10.0),   # as much on more area
    3: (2.0, 30.0),   # on the front
    4: (4.0, 25.0),   # less on more area
    6: (4.0, 40.0),   # on the front
}
FRONT = [1, 3, 6]
FAILED = 5


def made_up_sweep():
    points = tuple({"rows": str(rows), "formats": formats} for rows in (4, 8, 16) for formats in ("bf16", "bf16,fp8"))
    return Sweep("made-up", "nano", "tensor", {"transpose": "no"}, points, ((4, 4, 4),), None, 1, 1000, None, Cluster())


def made_up_results():
    return [_result(number) for number in range(1, 7)]


def _result(number):
    digest = hashlib.sha256(bytes([number])).hexdigest()
    if number == FAILED:
        return Result(digest[:32], None, Matmul("bf16", "bf16"), {}, "RuntimeError: <yosys> gave up\nand said why")
    area, gflops = FIGURES[number]
    figures = {"elements": 16 * number, "area_mm2": area, "logic_mm2": area * 0.75, "sram_mm2": area / 4,
               "sram_bits": 4096, "registers": 1000, "cells": 20_000, "delay_ps": 1600.0, "clock_ghz": 0.625,
               "cycles": 1234, "macs_per_cycle": 12.5, "busy_fraction": 0.9, "utilisation": 0.8,
               "peak_gflops": gflops / 0.8, "gflops": gflops, "gflops_per_mm2": gflops / area}
    return Result(digest[:32], Designs(digest, digest), Matmul("bf16", "bf16"), figures, None)
