"""How DMA engines reach the state and the partial-sum buffer: one access, by partition and address."""

from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from spec.dma import ENGINE_BYTES
from spec.memory import OFFSET_BITS, PARTITION_BITS

__all__ = ["LANE_BITS", "SIZE_BITS", "WORD_BITS", "access_layout", "access_port"]

WORD_BITS = 8 * ENGINE_BYTES
LANE_BITS = (ENGINE_BYTES - 1).bit_length()
"""Low address bits, which choose a byte of a word."""
SIZE_BITS = 2
"""Of an element's size as a power of two of bytes."""

access_layout = data.StructLayout({
    "write": 1, "psum": 1, "offset": OFFSET_BITS, "partition": PARTITION_BITS, "data": WORD_BITS, "strobe": ENGINE_BYTES})
"""One access: a read of the word that holds byte ``offset``, or a write of its bytes that ``strobe`` names.

The partial-sum buffer's 32-bit words are only read, and stand in both halves of the answer."""


def access_port():
    """One who makes accesses: ``valid`` and ``access`` hold until ``ready``; a read's ``data`` is there in the cycle after,
    and in no other."""
    return wiring.Signature({"valid": Out(1), "access": Out(access_layout), "ready": In(1), "data": In(WORD_BITS)})
