"""The memories of a core as instructions see them: partitions, access patterns, banks that were written."""

from dataclasses import dataclass

import numpy as np

from spec.formats import FORMATS
from spec.isa import Cause

from .formats import storage_dtype
from .random_numbers import RandomStreams

__all__ = ["Memories", "Refused"]


@dataclass
class Refused(Exception):
    """An instruction that stops its engine, before anything has changed."""

    cause: Cause
    detail: str


class Memories:
    """State buffer and partial-sum buffer, zero at the start.

    Parameters
    ----------
    core : spec.config.CoreConfig

    Attributes
    ----------
    sbuf : uint8 array [rows, bytes]
    psum : uint32 array [cols, banks * words]
    written : bool array [banks]
        Banks that something was written to since reset.
    random : golden.random_numbers.RandomStreams
        The vector engine's random numbers.
    """

    def __init__(self, core):
        self._core = core
        self.sbuf = np.zeros((core.rows, core.sbuf_kib * 1024), np.uint8)
        self.psum = np.zeros((core.cols, core.psum_banks * core.psum_bank_words), np.uint32)
        self.written = np.zeros(core.psum_banks, bool)
        self.random = RandomStreams(max(core.rows, core.cols))

    def elements(self, access, registers):
        """The elements that an access pattern of the state buffer names: bit patterns ``[partitions, elements]``.

        Raises
        ------
        Refused
            A format without a width of its own, partitions or elements beyond the memory, or an offset between elements.
        """
        self.check_elements(access, registers)
        dtype = storage_dtype(access.format)
        index = self._element_index(access, registers, dtype.itemsize)
        rows = self.sbuf[access.partition:access.partition + access.partitions]
        return rows.view(dtype)[:, index]

    def check_elements(self, access, registers):
        """Raises what :meth:`elements` raises."""
        self._check_partitions(access, self._core.rows)
        self._check_reach(access, registers, storage_dtype(access.format).itemsize, self.sbuf.shape[1])

    def check_operand(self, access, registers):
        """Refuses an operand of the vector engine that is not all within its buffer, and in the partial-sum buffer within a bank."""
        partitions, length = self.extent(access.space)
        size = FORMATS[access.format].width // 8
        self._check_partitions(access, partitions)
        self._check_reach(access, registers, size, length)
        if access.space == "psum":
            banks = [place // self._core.psum_bank_bytes for place in self._ends(access, registers, size)]
            if banks[0] != banks[1]:
                raise Refused(Cause.ADDRESS_RANGE, f"elements in banks {banks[0]} to {banks[1]}")

    def check_stored(self, partition, partitions, offset):
        """Refuses a stored scalar that is not a word in each of these partitions of the state buffer."""
        limit, length = self.extent("sbuf")
        self._check_quadrant(partition, partitions, limit)
        if offset % 4 or offset + 4 > length:
            raise Refused(Cause.ADDRESS_RANGE, f"a word at byte {offset} of {length}")

    def bank_of(self, access, registers):
        """The bank that a checked operand in the partial-sum buffer lies in."""
        return self._ends(access, registers, 4)[0] // self._core.psum_bank_bytes

    def operand(self, access, registers):
        """Elements of a checked operand in either buffer: bit patterns ``[partitions, elements]``."""
        rows, index = self._places(access, registers)
        return rows[:, index]

    def store(self, access, registers, bits):
        """Write bit patterns ``[partitions, elements]`` to where a checked operand is."""
        rows, index = self._places(access, registers)
        rows[:, index] = bits
        if access.space == "psum":
            self.written[self.bank_of(access, registers)] = True

    def stored_words(self, partition, partitions, offset):
        """A checked stored scalar: uint32 ``[partitions]``."""
        return self.sbuf[partition:partition + partitions].view(np.uint32)[:, offset // 4].copy()

    def _places(self, access, registers):
        """The partitions that an access names, in elements of its format, and which elements."""
        dtype = storage_dtype(access.format)
        rows = getattr(self, access.space)[access.partition:access.partition + access.partitions].view(dtype)
        return rows, self._element_index(access, registers, dtype.itemsize)

    def extent(self, space):
        """Partitions of a buffer, and bytes of each."""
        buffer = getattr(self, space)
        return buffer.shape[0], buffer.shape[1] * buffer.itemsize

    @property
    def psum_bank_bytes(self):
        """Bytes of a bank in each partition."""
        return self._core.psum_bank_bytes

    def bank_words(self, access, registers):
        """The bank, and the slice of words in every partition, that a result in the partial-sum buffer names."""
        self._check_partitions(access, self._core.cols)
        if len(access.dims) != 1 or access.dims[0][0] != 1 or FORMATS[access.format].width != 32:
            raise Refused(Cause.ILLEGAL_FIELD, "a result is one run of 32-bit words, step 1")
        self._check_reach(access, registers, 4, 4 * self.psum.shape[1])
        index = self._element_index(access, registers, 4)
        first, last = int(index[0]), int(index[-1])
        bank = first // self._core.psum_bank_words
        if last // self._core.psum_bank_words != bank:
            raise Refused(Cause.ADDRESS_RANGE, f"words {first} to {last} are not in one bank")
        return bank, slice(first, last + 1)

    def _check_partitions(self, access, limit):
        self._check_quadrant(access.partition, access.partitions, limit)

    @staticmethod
    def _check_quadrant(partition, partitions, limit):
        if partition % max(1, limit // 4) or partition + partitions > limit:
            raise Refused(Cause.PARTITION_RANGE, f"partitions {partition} to {partition + partitions - 1} of {limit}")

    @staticmethod
    def _offset(access, registers):
        return access.offset + (0 if access.register is None else registers.signed(access.register))

    def _ends(self, access, registers, size):
        """First bytes of the elements that lie first and last."""
        offset, ends = self._offset(access, registers), [size * step * (count - 1) for step, count in access.dims]
        return offset + sum(end for end in ends if end < 0), offset + sum(end for end in ends if end > 0)

    def _check_reach(self, access, registers, size, partition_bytes):
        offset, (lowest, highest) = self._offset(access, registers), self._ends(access, registers, size)
        if offset % size or lowest < 0 or highest + size > partition_bytes:
            raise Refused(Cause.ADDRESS_RANGE,
                          f"bytes {lowest} to {highest + size - 1} of {partition_bytes}, elements of {size}")

    def _element_index(self, access, registers, size):
        """Element numbers in a partition, the fastest dimension innermost."""
        index = np.zeros(1, np.int64)
        for step, count in access.dims:
            index = (np.arange(count, dtype=np.int64)[:, None] * step + index).ravel()
        return index + self._offset(access, registers) // size
