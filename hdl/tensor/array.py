"""The systolic array: rows x cols processing elements in square tiles."""

from amaranth import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..arith.layouts import partial_sum_layout
from ..emit import place
from .operand import OperandShapes
from .tile import Tile
from .wave import WaveShapes

__all__ = ["SystolicArray"]


class SystolicArray(wiring.Component):
    """``rows`` x ``cols`` processing elements; sums start from +0 at the top (rule N2).

    Everything arrives in wavefront time: row k ``adder_stages`` cycles after row k - 1, column j one cycle after column
    j - 1.

    Latency: an operand that enters row k comes out in the sum of column j after
    ``adder_stages * (rows - k) + product_latency + j`` cycles. Throughput: one column of ``moving`` a cycle.

    Parameters
    ----------
    core : spec.config.CoreConfig

    Members
    -------
    moving : In, rows x OperandShapes.moving
    weights : In, rows x WaveShapes.weights
    sums : Out, cols x partial_sum_layout
    """

    module_name = "onc_array"

    def __init__(self, core):
        self._core = core
        operands = OperandShapes(core)
        super().__init__({
            "moving": In(core.rows * operands.moving.size),
            "weights": In(core.rows * WaveShapes(core, operands).weights.size),
            "sums": Out(core.cols * partial_sum_layout.size),
        })

    def elaborate(self, platform):
        m = Module()
        size = self._core.tile
        down, across = self._core.rows // size, self._core.cols // size
        tiles = [[Tile(self._core) for _ in range(across)] for _ in range(down)]

        for row in range(down):
            for col in range(across):
                tile = tiles[row][col]
                m.submodules[f"tile_{row}_{col}"] = place(platform, tile)
                left = tiles[row][col - 1] if col else None
                m.d.comb += [
                    tile.position.eq(col),
                    tile.moving_i.eq(left.moving_o if left
                                     else self.moving.word_select(row, len(tile.moving_i))),
                    tile.weights_i.eq(left.weights_o if left
                                      else self.weights.word_select(row, len(tile.weights_i))),
                    # All zeros is +0 and integer 0 alike.
                    tile.sum_i.eq(tiles[row - 1][col].sum_o if row else 0),
                ]
        m.d.comb += self.sums.eq(Cat(tile.sum_o for tile in tiles[-1]))
        return m
