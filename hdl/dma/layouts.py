"""Descriptors as structures, and what flows through an engine."""

from amaranth.lib import data

from spec.dma import DESCRIPTOR, DESCRIPTOR_BYTES, DIMENSIONS, ENGINE_BYTES
from spec.memory import ADDRESS_BITS

from ..control.layouts import fields_layout

__all__ = ["BURST_BYTES", "BYTES_BITS", "LANE_BITS", "SIDE_FORMAT_BITS", "WORD_BITS", "chunk_layout", "descriptor_layout",
           "run_layout", "side_layout", "sides_of"]

WORD_BITS = 8 * ENGINE_BYTES
LANE_BITS = (ENGINE_BYTES - 1).bit_length()
BYTES_BITS = ENGINE_BYTES.bit_length()
BURST_BYTES = 128
"""No run, and so no burst, crosses a multiple of this, which divides 4 KiB (Arm IHI 0022)."""
SIDE_FORMAT_BITS = 4

descriptor_layout = fields_layout(DESCRIPTOR, 8 * DESCRIPTOR_BYTES)
"""One descriptor."""

side_layout = data.StructLayout({
    "space": 2, "format": SIDE_FORMAT_BITS, "address": ADDRESS_BITS,
    "dims": data.ArrayLayout(data.StructLayout({"step": descriptor_layout["source_step0"].shape,
                                                "count": descriptor_layout["source_count0"].shape}), DIMENSIONS)})
"""One side of a transfer; the same bits as in the descriptor."""

run_layout = data.StructLayout({"address": ADDRESS_BITS, "bytes": BURST_BYTES.bit_length(), "last": 1})
"""Bytes that follow each other in one space, up to the next multiple of :data:`BURST_BYTES`; ``last`` of the transfer."""

chunk_layout = data.StructLayout({"data": WORD_BITS, "bytes": BYTES_BITS, "error": 1})
"""Up to 8 bytes of whole elements, the first one lowest; ``error``: memory did not give them."""


def sides_of(descriptor):
    """The two sides of a descriptor, as bits of :data:`side_layout`."""
    bits = descriptor.as_value()
    starts = [descriptor_layout[f"{side}_space"].offset for side in ("source", "destination")]
    return [bits[start:start + side_layout.size] for start in starts]
