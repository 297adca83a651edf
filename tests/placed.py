"""A component that is written as a module of its own wherever it stands, so that a netlist can take its place."""

from amaranth import Module
from amaranth.lib import wiring

from hdl.emit import place

__all__ = ["Placed"]


class Placed(wiring.Component):
    """``component`` with its own ports, placed by name; ``shapes`` are those of an element."""

    def __init__(self, component):
        self._component = component
        self.shapes = component.shapes
        super().__init__(component.signature)

    def elaborate(self, platform):
        m = Module()
        m.submodules.placed = place(platform, self._component)
        wiring.connect(m, wiring.flipped(self), self._component)
        return m
