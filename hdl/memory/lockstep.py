"""How engines reach a word in all partitions of a buffer at once."""

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from spec.dma import ENGINE_BYTES

from .local_access import WORD_BITS

__all__ = ["PSUM_WORD_BITS", "lockstep_psum", "lockstep_read", "lockstep_write", "psum_word_bits", "word_address_bits"]

PSUM_WORD_BITS = 32


def word_address_bits(core):
    """Bits of a word's address within a partition of the state buffer."""
    return (core.sbuf_bytes // ENGINE_BYTES - 1).bit_length()


def psum_word_bits(core):
    """Bits of a word's address within a partition of the partial-sum buffer, the bank above the word in it."""
    return (core.psum_banks * core.psum_bank_words - 1).bit_length()


def lockstep_read(core):
    """A read of one word in every partition: ``enable`` holds until ``ready``, ``data`` is there in the cycle after, the
    first partition's word lowest."""
    return wiring.Signature({"enable": Out(1), "address": Out(word_address_bits(core)), "ready": In(1),
                             "data": In(core.rows * WORD_BITS)})


def lockstep_write(core):
    """A write of the bytes that ``strobe`` names, in the partitions that ``mask`` names; always made."""
    return wiring.Signature({"enable": Out(1), "address": Out(word_address_bits(core)), "data": Out(core.rows * WORD_BITS),
                             "strobe": Out(ENGINE_BYTES), "mask": Out(core.rows)})


def lockstep_psum(core):
    """A read, and a write in the partitions that ``mask`` names, of the partial-sum buffer; each holds until its ``ready``, a
    read's ``data`` is there in the cycle after."""
    address, words = psum_word_bits(core), core.cols * PSUM_WORD_BITS
    return wiring.Signature({
        "read": Out(1), "read_address": Out(address), "read_ready": In(1), "read_data": In(words),
        "write": Out(1), "write_address": Out(address), "write_data": Out(words), "mask": Out(core.cols), "write_ready": In(1)})
