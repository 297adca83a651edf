"""Descriptor rings and what a descriptor does, to the bit; timing is not modelled."""

from dataclasses import dataclass
from math import prod

import numpy as np

from spec.dma import DESCRIPTOR_BYTES, MOST_PENDING, RINGS, decode_transfer
from spec.errors import SpecError
from spec.formats import FORMATS
from spec.isa import Cause
from spec.memory import ADDRESS_BITS, OFFSET_BITS, PARTITION_BITS

from .arith import add
from .formats import convert, storage_dtype
from .memory import Refused

__all__ = ["Ring", "Rings", "check_transfer", "element_places", "execute_transfer", "fetch_transfer"]

_MOST_ELEMENTS = (1 << 32) - 1


def _size(side):
    return FORMATS[side.format].width // 8


def _split(side):
    """The pairs of a local side along a partition, and those across partitions in whole partitions.

    Raises
    ------
    Refused
        A step that is neither.
    """
    along, across = [], []
    for step, count in side.dims:
        if step % (1 << OFFSET_BITS) == 0:
            across.append((step >> OFFSET_BITS, count))
        elif abs(step) < 1 << OFFSET_BITS:
            along.append((step, count))
        else:
            raise Refused(Cause.ILLEGAL_FIELD, f"step {step} is neither along a partition nor across partitions")
    return along, across


def _reach(dims):
    """Smallest and largest sum of steps."""
    ends = [(count - 1) * step for step, count in dims]
    return sum(end for end in ends if end < 0), sum(end for end in ends if end > 0)


def check_transfer(memories, transfer):
    """The checks before anything is moved, in the order of :mod:`spec.dma`.

    Raises
    ------
    golden.memory.Refused
    """
    source, destination = transfer.source, transfer.destination
    if destination.space == "psum":
        raise Refused(Cause.ILLEGAL_FIELD, "to the partial-sum buffer")
    if source.space == "psum" and FORMATS[source.format].width != 32:
        raise Refused(Cause.ILLEGAL_FIELD, f"{source.format} in the partial-sum buffer")
    if transfer.accumulate and destination.format != "fp32":
        raise Refused(Cause.ILLEGAL_FIELD, f"accumulating onto {destination.format}")
    counts = [prod(count for _, count in side.dims) for side in (source, destination)]
    if counts[0] != counts[1] or counts[0] > _MOST_ELEMENTS:
        raise Refused(Cause.ILLEGAL_FIELD, f"{counts[0]} elements to {counts[1]} places")
    for side in (source, destination):
        if side.space != "memory":
            _split(side)
            if side.address >> OFFSET_BITS + PARTITION_BITS:
                raise Refused(Cause.ILLEGAL_FIELD, f"address {side.address:#x} in {side.space}")
    for side in (source, destination):
        _check_side(memories, side)
    if source.space == "psum":
        first, last = _offsets(source)
        banks = slice(first // memories.psum_bank_bytes, last // memories.psum_bank_bytes + 1)
        if not memories.written[banks].all():
            raise Refused(Cause.BANK_INVALID, f"banks {banks.start} to {banks.stop - 1}, of which one was never written")


def _offsets(side):
    """First and last offset within partitions at which an element begins."""
    low, high = _reach(_split(side)[0])
    offset = side.address % (1 << OFFSET_BITS)
    return offset + low, offset + high


def _check_side(memories, side):
    size = _size(side)
    if side.address % size or any(step % size for step, _ in side.dims):
        raise Refused(Cause.ADDRESS_RANGE, f"an element of {size} bytes at another place than a multiple of them")
    if side.space == "memory":
        low, high = _reach(side.dims)
        if side.address + low < 0 or side.address + high >= 1 << ADDRESS_BITS:
            raise Refused(Cause.ADDRESS_RANGE, f"addresses {side.address + low:#x} to {side.address + high:#x}")
        return
    partitions, length = memories.extent(side.space)
    first, last = _offsets(side)
    if first < 0 or last + size > length:
        raise Refused(Cause.ADDRESS_RANGE, f"bytes {first} to {last + size - 1} of {length}")
    low, high = _reach(_split(side)[1])
    partition = side.address >> OFFSET_BITS
    if partition + low < 0 or partition + high >= partitions:
        raise Refused(Cause.PARTITION_RANGE, f"partitions {partition + low} to {partition + high} of {partitions}")


def element_places(memories, side):
    """Where a checked side's elements are: numbers of elements of its size, in memory or in the flattened buffer."""
    size = _size(side)
    places = np.zeros(1, np.int64)
    for step, count in side.dims:
        if side.space != "memory" and step % (1 << OFFSET_BITS) == 0:
            step = (step >> OFFSET_BITS) * memories.extent(side.space)[1]
        places = (np.arange(count, dtype=np.int64)[:, None] * step + places).ravel()
    if side.space == "memory":
        return (places + side.address) // size
    partition, offset = side.address >> OFFSET_BITS, side.address % (1 << OFFSET_BITS)
    return (places + partition * memories.extent(side.space)[1] + offset) // size


def _memory_answers(machine, side, places):
    """Whether memory holds all those elements and none of them is faulty."""
    size = _size(side)
    first = places * size
    if first.max() + size > len(machine.memory):
        return False
    return not any(((first < end) & (first + size > begin)).any() for begin, end in machine.faulty)


def execute_transfer(machine, transfer):
    """Check and carry out a transfer.

    Parameters
    ----------
    machine : golden.core.Core
        Its ``memories``, ``memory``, ``faulty``, and the counts ``bytes_read`` and ``bytes_written``.

    Raises
    ------
    golden.memory.Refused
        Before anything has changed.
    """
    check_transfer(machine.memories, transfer)
    source, destination = transfer.source, transfer.destination
    places = {}
    for side in (source, destination):
        places[side is destination] = own = element_places(machine.memories, side)
        if side.space == "memory" and not _memory_answers(machine, side, own):
            raise Refused(Cause.MEMORY, f"memory at {side.address:#x}")
    elements = _contents(machine, source)[places[False]]
    elements = convert(elements, source.format, destination.format, transfer.saturate)
    target = _contents(machine, destination)
    if transfer.accumulate:
        elements = add(target[places[True]], elements)
    target[places[True]] = elements
    machine.bytes_read += elements.size * _size(source) * (source.space == "memory")
    machine.bytes_written += elements.size * _size(destination) * (destination.space == "memory")


def _contents(machine, side):
    """All of a memory, as elements of a side's format; a view."""
    dtype = storage_dtype(side.format)
    if side.space == "memory":
        content = np.frombuffer(machine.memory, np.uint8)
        return content[:len(content) // dtype.itemsize * dtype.itemsize].view(dtype)
    return getattr(machine.memories, side.space).reshape(-1).view(dtype)


@dataclass
class Ring:
    """A descriptor ring: where it is, how many descriptors it has, the next one, how many are pending, and why it stopped."""

    base: int = 0
    size: int = 0
    position: int = 0
    pending: int = 0
    failure: object = None

    @property
    def address(self):
        """Of the next descriptor."""
        return self.base + self.position * DESCRIPTOR_BYTES

    def add(self, count):
        """More descriptors; forgotten by a ring that has failed or has no size, as is what is too many."""
        if self.size and not self.failure:
            self.pending = min(self.pending + count, MOST_PENDING)

    def advance(self):
        """A descriptor is done."""
        self.position = (self.position + 1) % self.size
        self.pending -= 1


class Rings(list):
    """All rings of a core."""

    def __init__(self):
        super().__init__(Ring() for _ in range(RINGS))

    def place(self, ring, base, size):
        """Where a ring's descriptors are, and how many; takes it back to the first, with nothing pending and no failure."""
        self.check(ring)
        if base % DESCRIPTOR_BYTES or not 0 <= base < 1 << ADDRESS_BITS:
            raise SpecError("base", base, f"a multiple of {DESCRIPTOR_BYTES} below 2^{ADDRESS_BITS}")
        if not 0 <= size <= MOST_PENDING:
            raise SpecError("size", size, f"0 to {MOST_PENDING}")
        self[ring] = Ring(base, size)

    def check(self, ring):
        """Raises :class:`SpecError` where there is no such ring."""
        if not 0 <= ring < RINGS:
            raise SpecError("ring", ring, f"0 to {RINGS - 1}")


def fetch_transfer(machine, ring):
    """The next descriptor of a ring.

    Raises
    ------
    golden.memory.Refused
        Memory does not answer, or the descriptor says nothing legal.
    """
    first, end = ring.address, ring.address + DESCRIPTOR_BYTES
    if end > len(machine.memory) or any(first < stop and begin < end for begin, stop in machine.faulty):
        raise Refused(Cause.FETCH, f"no memory at {first:#x}")
    try:
        return decode_transfer(bytes(machine.memory[first:end]))
    except SpecError as error:
        raise Refused(error.cause, str(error)) from None
