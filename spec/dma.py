"""Descriptors of the DMA engines: what one transfer moves, and how that stands in memory. The encoding is our own.

A transfer takes elements from a source and puts them at a destination, both walked in the order of up to four (step,
count) pairs, the first fastest; n-th element to n-th place. What a descriptor may ask for:

* Spaces: from memory, the state buffer or the partial-sum buffer, to memory or the state buffer. Elements of the
  partial-sum buffer have 32 bits.
* An address counts bytes. In a buffer it is ``partition << 20 | offset`` (:func:`spec.memory.local_address`), and a step
  goes either along a partition (smaller than 2^20 on both sides of zero) or across partitions (a multiple of 2^20).
* Every element lies at a multiple of its size, in every space; so do all steps.
* Equal formats move bits. Others are cast by rule N7, ``saturate`` included. With ``accumulate`` the source is cast to
  binary32 and the destination, which is fp32, becomes old + new, one binary32 addition (N6). Old values are read before
  any of the transfer's writes, or after: a destination that names an element twice, and source and destination that
  overlap, give no defined result in those elements.
* A transpose is a transfer whose steps are exchanged on one side.

A descriptor is checked before anything is moved. The causes, in this order:

1. ``ILLEGAL_FIELD``: a reserved bit, a number that stands for nothing, a space or a combination that the list above does not
   have, a count of 0, different numbers of elements on the two sides or more than 2^32 - 1, a step in a buffer that is
   neither along nor across, an address in a buffer with bits above the partition's number, an unused update that is not all
   zeros.
2. For the source, and then for the destination: ``ADDRESS_RANGE``, an address or a step that is not a multiple of the
   element's size, an element that is not wholly in its partition, an address below 0 or not below 2^40; and then
   ``PARTITION_RANGE``, a partition that there is not.
3. ``BANK_INVALID``: a bank of the partial-sum buffer, between the first and the last offset that a transfer reads, both
   included, that nothing was written to.

Then memory itself may answer with an error, ``MEMORY``: the destination's elements then hold old or new values, nothing
else has changed.

A ring is a run of ``size`` descriptors in memory from ``base``, a multiple of 128, walked round and round. It takes
descriptors in order, one at a time, as long as any are pending; the instruction ``dma_start`` and the host add to those. A
transfer is done when memory has answered all its writes; then its update is made, and the interrupt raised if it notifies,
and then the ring goes on. A refused or failed descriptor stops its ring for good, with the cause and the descriptor's
address in the ring's registers, and without its update; other rings go on. A memory that answers a descriptor's fetch with
an error stops the ring with ``FETCH``.
"""

from dataclasses import dataclass, replace

from .errors import SpecError
from .fields import pack_fields, unpack_fields
from .formats import FORMATS
from .isa import UPDATES, Cause, Update, named, numbered
from .memory import ADDRESS_BITS

__all__ = ["DESCRIPTOR", "DESCRIPTOR_BYTES", "DIMENSIONS", "ENGINE_BYTES", "MOST_PENDING", "RINGS", "SPACES", "Side",
           "Transfer", "decode_transfer", "encode_transfer"]

DESCRIPTOR_BYTES = 128
RINGS = 16
"""Rings of a core. Ring r belongs to engine r modulo the number of engines (public: 16 engines a core)."""
MOST_PENDING = (1 << 16) - 1
"""Descriptors that a ring can have pending; more are forgotten."""
ENGINE_BYTES = 8
"""Bytes that an engine moves in a cycle at most, and the width of its memory port."""
DIMENSIONS = 4
SPACES = ("memory", "sbuf", "psum")

_SIDE = (("space", 2, "number of a space"), ("format", 4, "code of a number format"),
         ("address", ADDRESS_BITS, "byte address of the first element"),
         *((f"{name}{index}", bits, meaning) for index in range(DIMENSIONS) for name, bits, meaning in (
             ("step", -32, "bytes from one to the next"), ("count", 16, "how many, from 1"))))

DESCRIPTOR = (
    ("accumulate", 1, "add to what the destination holds, in binary32"),
    ("saturate", 1, "casts to floating point give the largest finite number instead of infinity"),
    ("notify", 1, "raise the interrupt when done"),
    ("update_used", 1, "whether a semaphore is changed when done"),
    ("update_kind", 2, "number of an update"),
    ("update_semaphore", 8, "semaphore to change"),
    ("update_value", 16, "by how much, or to what"),
    ("header_reserved", 34, "zero"),
    *((f"source_{name}", bits, meaning) for name, bits, meaning in _SIDE),
    *((f"destination_{name}", bits, meaning) for name, bits, meaning in _SIDE),
)
"""Fields of a descriptor: name, bits, meaning; lowest bits first, the rest of the 128 bytes reserved. A negative number of
bits: signed."""


@dataclass(frozen=True)
class Side:
    """One side of a transfer.

    Parameters
    ----------
    space : str
        Of :data:`SPACES`.
    format : str
    address : int
        Of the first element, in bytes.
    dims : tuple of (int, int)
        Up to four (step, count) pairs, steps in bytes, the fastest first.
    """

    space: str
    format: str
    address: int
    dims: tuple


@dataclass(frozen=True)
class Transfer:
    """What a descriptor says; :func:`encode_transfer` checks only that it fits."""

    source: Side
    destination: Side
    accumulate: bool = False
    saturate: bool = False
    update: Update | None = None
    notify: bool = False


def _side_values(name, side):
    if not 1 <= len(side.dims) <= DIMENSIONS:
        raise SpecError(f"{name} dims", side.dims, f"1 to {DIMENSIONS} (step, count) pairs")
    values = {"space": numbered("space", side.space, SPACES), "format": numbered("format", side.format, FORMATS),
              "address": side.address}
    for index in range(DIMENSIONS):
        values[f"step{index}"], values[f"count{index}"] = side.dims[index] if index < len(side.dims) else (0, 1)
    return {f"{name}_{field}": value for field, value in values.items()}


def encode_transfer(transfer):
    """The 128 bytes of a descriptor.

    Raises
    ------
    SpecError
        An unknown space, format or update, or a value that does not fit its field.
    """
    values = {"accumulate": int(transfer.accumulate), "saturate": int(transfer.saturate), "notify": int(transfer.notify),
              **_side_values("source", transfer.source), **_side_values("destination", transfer.destination)}
    if transfer.update:
        values |= {"update_used": 1, "update_kind": numbered("update", transfer.update.kind, UPDATES),
                   "update_semaphore": transfer.update.semaphore, "update_value": transfer.update.value}
    return pack_fields(DESCRIPTOR, values).to_bytes(DESCRIPTOR_BYTES, "little")


def decode_transfer(content):
    """The transfer that 128 bytes stand for; the inverse of :func:`encode_transfer`.

    Raises
    ------
    SpecError
        A number that stands for nothing, a count of 0, a reserved bit, or an unused update that is not all zeros. ``cause``
        of the error is the :class:`spec.isa.Cause` that hardware reports.
    """
    if len(content) != DESCRIPTOR_BYTES:
        raise SpecError("descriptor", f"{len(content)} bytes", f"{DESCRIPTOR_BYTES} bytes")
    values, _ = unpack_fields(DESCRIPTOR, int.from_bytes(content, "little"))
    update = None
    if values["update_used"]:
        update = Update(values["update_semaphore"], named("update", values["update_kind"], UPDATES), values["update_value"])
    transfer = Transfer(_side("source", values), _side("destination", values), bool(values["accumulate"]),
                        bool(values["saturate"]), update, bool(values["notify"]))
    if encode_transfer(transfer) != bytes(content):
        raise SpecError("descriptor", bytes(content).hex(), "zeros wherever no field is used", Cause.ILLEGAL_FIELD)
    return replace(transfer, source=_shortest(transfer.source), destination=_shortest(transfer.destination))


def _side(name, values):
    dims = tuple((values[f"{name}_step{index}"], values[f"{name}_count{index}"]) for index in range(DIMENSIONS))
    if not all(count for _, count in dims):
        raise SpecError(f"{name} dims", dims, "counts from 1", Cause.ILLEGAL_FIELD)
    return Side(named("space", values[f"{name}_space"], SPACES), named("format", values[f"{name}_format"], tuple(FORMATS)),
                values[f"{name}_address"], dims)


def _shortest(side):
    """Without the pairs at the end that an encoder put there."""
    dims = list(side.dims)
    while len(dims) > 1 and dims[-1] == (0, 1):
        dims.pop()
    return replace(side, dims=tuple(dims))
