"""The cores whose processing element is tested, and all that each of them can be asked to multiply."""

from itertools import product

import pytest

from spec.config import CoreConfig
from spec.errors import SpecError
from spec.presets import configure
from spec.tensor import Matmul, check_matmul

__all__ = ["CORES", "cases", "matmuls"]

CORES = {
    **{name: configure(name).chip.core for name in ("nano", "mini", "small", "inf1", "trn1")},
    "bf16": CoreConfig(8, 8, formats=("bf16",)),
    "fp8": CoreConfig(8, 8, formats=("fp8",), fp8_pairs=True),
    "int8": CoreConfig(8, 8, formats=("int8",), transpose=True),
    "deep": configure("nano", "adder_stages=3").chip.core,
    "deep_bf16": CoreConfig(8, 8, formats=("bf16",), adder_stages=3),
}


def matmuls(core, paired):
    """Every product of two formats that a core computes."""
    formats = CORES[core].formats
    for pair in product(formats, formats):
        matmul = Matmul(*pair, paired)
        try:
            check_matmul(CORES[core], matmul)
        except SpecError:
            continue
        yield matmul


def cases(cores, paired, wanted=lambda matmul: True):
    """Pytest parameters ``core`` and ``matmul``."""
    return pytest.mark.parametrize(("core", "matmul"), [
        pytest.param(core, matmul, id=f"{core}-{matmul.stationary}-{matmul.moving}")
        for core in cores for matmul in matmuls(core, paired) if wanted(matmul)])
