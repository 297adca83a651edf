"""What travels down the rows beside the array: the instructions of each wavefront and of each load."""

from amaranth.lib import data

from spec.tensor import WEIGHTS_PER_CYCLE

from ..arith.quarter_product import pass_layout
from ..memory.psum import destination_layout

__all__ = ["WaveShapes", "buffer_depth"]


def buffer_depth(core):
    """Words of a row's operand buffer: a word is kept until the wavefront has reached the last row."""
    return core.adder_stages * core.rows + 8


class WaveShapes:
    """Layouts of one configuration's control paths.

    Parameters
    ----------
    core : spec.config.CoreConfig

    Attributes
    ----------
    rows_held : StructLayout
        Which rows hold elements: the first from ``first_row`` to before ``first_end``, the second to before
        ``second_end``.
    destination : StructLayout
        Where a column of sums goes in the partial-sum buffer; travels on along the columns.
    wave : StructLayout
        One cycle's instruction for the moving side of a row.
    load : StructLayout
        One cycle's instruction for the stationary side of a row.
    weights : StructLayout
        One cycle's weights on their way along a row: those of columns ``2 * index`` and ``2 * index + 1``.
    """

    def __init__(self, core, operands):
        row_bits = core.rows.bit_length()
        pointer_bits = (buffer_depth(core) - 1).bit_length()
        index_bits = max(1, (core.cols // WEIGHTS_PER_CYCLE - 1).bit_length())
        self.rows_held = data.StructLayout({"first_row": row_bits, "first_end": row_bits, "second_end": row_bits})
        self.destination = destination_layout(core)
        self.wave = data.StructLayout({
            "active": 1, "swap": 1, "pops": 1, "format": 4, "paired": 1, "step": pass_layout,
            "rows": self.rows_held, "pointer": pointer_bits, "destination": self.destination,
        })
        self.load = data.StructLayout({
            "active": 1, "index": index_bits, "format": 4, "paired": 1, "raw": 1,
            "rows": self.rows_held, "pointer": pointer_bits,
        })
        self.weights = data.StructLayout({
            "active": 1, "index": index_bits, "pair": data.ArrayLayout(operands.weight, WEIGHTS_PER_CYCLE),
        })
