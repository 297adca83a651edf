"""Where things stand in the memories: addresses outside, and one address for each byte of the core's own buffers."""

__all__ = ["ADDRESS_BITS", "OFFSET_BITS", "PARTITION_BITS", "local_address"]

ADDRESS_BITS = 40
"""Bits of a byte address in memory outside the core: 1 TiB. Our choice."""

OFFSET_BITS, PARTITION_BITS = 20, 10
"""Bits of a byte's place within its partition and of its partition's number."""


def local_address(partition, offset):
    """The address of a byte of the state or the partial-sum buffer, as descriptors have it."""
    return partition << OFFSET_BITS | offset
