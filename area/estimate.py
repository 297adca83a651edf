"""The cost of a whole design, from the cost of each of its modules."""

from dataclasses import dataclass

from hdl.emit import emit

from .sram import SRAMModel, is_sram
from .synthesis import synthesise
from .timing import longest_path, timer

__all__ = ["Block", "Estimate", "estimate", "estimate_emission"]


@dataclass(frozen=True)
class Block:
    """All instances of one module within its parent: ``path`` names the modules from the top down, ``own_um2`` leaves
    out what they place; counts and areas are those of all instances together."""

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
        Cell area before layout, and memories by :class:`~area.sram.SRAMModel`.
    sram_bits, registers, cells : int
    delay_ps : float or None
        Longest path of any module, by ``timer``; ``abc_delay_ps`` the same by ABC.
    slowest : str or None
        The module that has it.
    timer, library : str
    blocks : tuple of Block
        Parents before children.
    content_hash : str
        Of the design.
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


def estimate(component, library, sram=SRAMModel(), period_ps=1000, progress=None):
    """Cost of a component; see :func:`estimate_emission`."""
    return estimate_emission(emit(component), library, sram, period_ps, progress)


def estimate_emission(emission, library, sram=SRAMModel(), period_ps=1000, progress=None):
    """Cost of a design that is written as Verilog.

    Parameters
    ----------
    emission : hdl.emit.Emission
    library : area.library.Library
    sram : area.sram.SRAMModel
    period_ps, progress
        See :func:`area.synthesis.synthesise`.

    Returns
    -------
    Estimate

    Raises
    ------
    CostError
        A tool failed.
    """
    mapped = synthesise(emission, library, period_ps=period_ps, progress=progress)
    timing = longest_path(emission.top, mapped, library, sram)
    blocks = tuple(_blocks(emission.top, (), 1, mapped, sram))
    memories = [(block.count, *sram.shape(block.path[-1])) for block in blocks if is_sram(block.path[-1])]
    sram_um2 = sum(block.own_um2 for block in blocks if is_sram(block.path[-1]))
    area = blocks[0].area_um2
    return Estimate(
        area_um2=area, logic_um2=area - sram_um2, sram_um2=sram_um2,
        sram_bits=sum(count * depth * width for count, depth, width in memories),
        registers=sum(block.count * mapped[block.path[-1]].registers for block in blocks if not is_sram(block.path[-1])),
        cells=blocks[0].cells, delay_ps=timing.delay_ps,
        abc_delay_ps=max((module.abc_delay_ps for module in mapped.values() if module.abc_delay_ps), default=None),
        slowest=timing.module, timer=timer(), library=library.identity, blocks=blocks,
        content_hash=emission.content_hash)


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
