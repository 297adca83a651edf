"""The cost of a whole design, from the cost of each of its modules."""

import math
from dataclasses import dataclass

from hdl.emit import emit

from .sram import SRAMModel, is_sram
from .synthesis import synthesise
from .timing import longest_path, timer

__all__ = ["Block", "Estimate", "estimate"]


@dataclass(frozen=True)
class Block:
    """All instances of one module within its parent.

    Parameters
    ----------
    path : tuple of str
        Names of the modules from the top down to this one.
    count : int
        How many there are in the whole design.
    cells : int
        Cells of all of them with all that they place.
    area_um2, own_um2 : float
        Area of all of them; the latter without what they place.
    """

    path: tuple
    count: int
    cells: int
    area_um2: float
    own_um2: float


@dataclass(frozen=True)
class Estimate:
    """What a design costs.

    Parameters
    ----------
    area_um2, logic_um2, sram_um2 : float
        All of it; cells, before layout; memories by :class:`~area.sram.SRAMModel`.
    sram_bits, registers, cells : int
        Bits in memories; one-bit registers outside them; cells, registers among them.
    delay_ps : float or None
        The longest path by ``timer``; None without one.
    abc_delay_ps : float or None
        The same by ABC, which is there on every machine.
    slowest : str or None
        The module that holds the longest path.
    timer, library : str
        What measured ``delay_ps``: OpenSTA with its version, or ``abc``; the library's name and checksum.
    blocks : tuple of Block
        Parents before children.
    content_hash : str
        Of the design's Verilog.
    """

    area_um2: float
    logic_um2: float
    sram_um2: float
    sram_bits: int
    registers: int
    cells: int
    delay_ps: float | None
    abc_delay_ps: float | None
    slowest: str | None
    timer: str
    library: str
    blocks: tuple
    content_hash: str

    @property
    def clock_ghz(self):
        """Highest clock, 1000 / ``delay_ps``; None without a path."""
        return 1000 / self.delay_ps if self.delay_ps else None

    def count(self, module):
        """Instances of a module in the whole design."""
        return sum(block.count for block in self.blocks if block.path[-1] == module)


def estimate(component, library, sram=SRAMModel(), *, period_ps=1000, progress=None):
    """What a component costs in a cell library.

    Parameters
    ----------
    component : amaranth.lib.wiring.Component
        Anything that :func:`hdl.emit.emit` takes.
    library : area.library.Library
    sram : area.sram.SRAMModel
    period_ps : float
        The clock period that mapping aims at.
    progress : callable
        Called with how many steps are done and how many there are; modules are mapped, then timed.

    Returns
    -------
    Estimate

    Raises
    ------
    CostError, sim.cache.BuildError
        A tool failed; the message names the log file, or what to do.
    """
    emission = emit(component)
    first, second = _halves(progress)
    mapped = synthesise(emission, library, period_ps=period_ps, progress=first)
    timing = longest_path(emission.top, mapped, library, sram, second)
    blocks = tuple(_blocks(emission.top, (), 1, mapped, sram))
    memories = [block for block in blocks if is_sram(block.path[-1])]
    sram_um2 = sum(block.area_um2 for block in memories)
    area = blocks[0].area_um2
    return Estimate(
        area_um2=area, logic_um2=area - sram_um2, sram_um2=sram_um2,
        sram_bits=sum(block.count * math.prod(sram.shape(block.path[-1])) for block in memories),
        registers=sum(block.count * mapped[block.path[-1]].registers for block in blocks if block not in memories),
        cells=blocks[0].cells, delay_ps=timing.delay_ps,
        abc_delay_ps=max((module.abc_delay_ps for module in mapped.values() if module.abc_delay_ps), default=None),
        slowest=timing.module, timer=timer(), library=library.identity, blocks=blocks,
        content_hash=emission.content_hash)


def _halves(progress):
    """Two callables that report the two halves of a work of which ``progress`` is told."""
    if not progress:
        return None, None
    return (lambda done, count: progress(done, 2 * count)), (lambda done, count: progress(count + done, 2 * count))


def _blocks(name, parents, count, mapped, sram):
    path = (*parents, name)
    if is_sram(name):
        area = count * sram.area_um2(name)
        return [Block(path, count, 0, area, area)]
    module = mapped[name]
    below = [block for child, number in sorted(module.children.items())
             for block in _blocks(child, path, count * number, mapped, sram)]
    children = [block for block in below if len(block.path) == len(path) + 1]
    own = count * module.area_um2
    return [Block(path, count, count * module.cells + sum(child.cells for child in children),
                  own + sum(child.area_um2 for child in children), own), *below]
