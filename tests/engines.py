"""Tensor engines that several test files run, each made once."""

from functools import cache

from sim.tensor import TensorDriver
from spec.presets import PRESETS

__all__ = ["preset_driver"]


@cache
def _driver(preset):
    return TensorDriver(PRESETS[preset].chip.core)


def preset_driver(preset):
    """The :class:`sim.tensor.TensorDriver` of a preset, just reset."""
    driver = _driver(preset)
    driver.model.reset()
    return driver
