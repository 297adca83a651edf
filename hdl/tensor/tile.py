"""A square of processing elements."""

from amaranth import Cat, Module, Shape, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from spec.tensor import WEIGHTS_PER_CYCLE

from ..arith.layouts import partial_sum_layout
from ..emit import place
from .operand import OperandShapes
from .pe import PE
from .wave import WaveShapes

__all__ = ["Tile"]


class Tile(wiring.Component):
    """``tile`` x ``tile`` processing elements and one register on each row's weights.

    Weights pass from tile to tile in one cycle; the tile takes those whose index names its own columns. Moving operands
    and sums pass as through ``tile`` elements.

    Parameters
    ----------
    core : spec.config.CoreConfig

    Members
    -------
    position : In
        How many tiles lie to the left.
    moving_i, moving_o : tile x OperandShapes.moving
    sum_i, sum_o : tile x partial_sum_layout
    weights_i, weights_o : tile x WaveShapes.weights
        Edges are plain vectors, their first row or column lowest: Amaranth would write out every field of a structure as
        a wire of its own, in every module that a tile is placed in.
    """

    module_name = "onc_tile"

    def __init__(self, core):
        self._core = core
        self._operands = OperandShapes(core)
        self._weights = WaveShapes(core, self._operands).weights

        def edge(shape):
            return core.tile * Shape.cast(shape).width

        super().__init__({
            "position": In(max(1, (core.cols // core.tile - 1).bit_length())),
            "moving_i": In(edge(self._operands.moving)), "moving_o": Out(edge(self._operands.moving)),
            "sum_i": In(edge(partial_sum_layout)), "sum_o": Out(edge(partial_sum_layout)),
            "weights_i": In(edge(self._weights)), "weights_o": Out(edge(self._weights)),
        })

    def elaborate(self, platform):
        m = Module()
        size, groups = self._core.tile, self._core.tile // WEIGHTS_PER_CYCLE
        group_bits = (groups - 1).bit_length()
        elements = [[PE(self._core) for _ in range(size)] for _ in range(size)]
        passed = []
        for row in range(size):
            weights = Signal(self._weights, name=f"weights_{row}", reset_less=True)
            m.d.sync += weights.eq(self.weights_i.word_select(row, self._weights.size))
            passed.append(weights)
            mine = Signal(name=f"mine_{row}")
            tile_index = weights.index[group_bits:]
            m.d.comb += mine.eq(weights.active & ((tile_index == self.position) if len(tile_index) else 1))
            for col in range(size):
                pe = elements[row][col]
                m.submodules[f"pe_{row}_{col}"] = place(platform, pe)
                group = col // WEIGHTS_PER_CYCLE
                m.d.comb += [
                    pe.moving_i.eq(elements[row][col - 1].moving_o if col
                                   else self.moving_i.word_select(row, self._operands.moving.size)),
                    pe.sum_i.eq(elements[row - 1][col].sum_o if row
                                else self.sum_i.word_select(col, partial_sum_layout.size)),
                    pe.weight_i.eq(weights.pair[col % WEIGHTS_PER_CYCLE]),
                    pe.load.eq(mine & (weights.index[:group_bits] == group)),
                ]
        # One assignment for each edge: element by element would take Amaranth quadratic time.
        m.d.comb += [
            self.moving_o.eq(Cat(line[-1].moving_o.as_value() for line in elements)),
            self.sum_o.eq(Cat(pe.sum_o.as_value() for pe in elements[-1])),
            self.weights_o.eq(Cat(weights.as_value() for weights in passed)),
        ]
        return m
