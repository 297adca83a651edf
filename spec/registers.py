"""The registers that the host sees: one table, from which hardware, driver, C header and documentation come."""

from dataclasses import dataclass

from .dma import RINGS
from .isa import REGISTERS, SEMAPHORES, STREAMS

__all__ = ["IDENTITY", "REGISTER_MAP", "WINDOW_BITS", "Register", "find_register"]

WINDOW_BITS = 14
"""Address bits of the window: 16 KiB. Registers are words of 32 bits; our own map."""

IDENTITY = 0x314E_434F
"""``"OCN1"`` as bytes."""


@dataclass(frozen=True)
class Register:
    """One register, or a row of equal ones.

    Parameters
    ----------
    name : str
    offset : int
        Bytes from the window's beginning.
    access : str
        ``"r"`` read only, ``"rw"`` reads what was written, ``"w"`` a command: reads 0, ``"w1c"`` a one clears that bit.
    meaning : str
    fields : tuple of (str, int, str)
        Name, bits and meaning, lowest bits first; empty where the register is one number.
    count, stride : int
        How many there are, and bytes from one to the next.
    """

    name: str
    offset: int
    access: str
    meaning: str
    fields: tuple = ()
    count: int = 1
    stride: int = 4

    def address(self, index=0):
        """Offset of the ``index``-th."""
        if not 0 <= index < self.count:
            raise IndexError(f"{self.name} {index} of {self.count}")
        return self.offset + index * self.stride


def _rows(prefix, base, stride, count, registers):
    return tuple(Register(f"{prefix}_{name}", base + 4 * place, access, meaning, fields, count, stride)
                 for place, (name, access, meaning, fields) in enumerate(registers))


_COUNTERS = (
    ("cycles", "cycles since reset or the last clear"),
    ("multiplying", "cycles in which the tensor engine issued a wave of products"),
    ("loading", "cycles in which it issued weights"),
    ("idle", "cycles in which it did neither"),
    ("span", "cycles from its first wave to its last, both included"),
    ("no_moving", "cycles between its first wave and its last in which a multiplication had no moving operand yet"),
    ("no_weights", "the same, waiting for weights"),
    ("no_instruction", "the same, with no multiplication to do"),
    ("waiting", "cycles in which the tensor stream waited for a semaphore"),
    ("vector_busy", "cycles in which the vector engine carried out an instruction"),
    ("bytes_read", "bytes that transfers read from memory"),
    ("bytes_written", "bytes that transfers wrote to memory"),
    ("special", "results of tensor instructions that were NaN or infinite, of instructions that count them"),
    ("parity_errors", "cycles in which a read of the state or the partial-sum buffer found a wrong parity"),
)

REGISTER_MAP = (
    Register("identity", 0x000, "r", f"{IDENTITY:#x}"),
    Register("rows", 0x004, "r", "rows of the array, partitions of the state buffer"),
    Register("cols", 0x008, "r", "columns of the array, partitions of the partial-sum buffer"),
    Register("sbuf_bytes", 0x00C, "r", "bytes of a partition of the state buffer"),
    Register("psum_banks", 0x010, "r", "banks of the partial-sum buffer"),
    Register("dma_engines", 0x014, "r", "DMA engines"),
    Register("interrupt_status", 0x020, "w1c", "why the interrupt is raised", (
        ("notify", 1, "an instruction or a descriptor that notifies is done"),
        ("stream_error", 1, "a stream stopped with a cause"),
        ("ring_error", 1, "a ring stopped with a cause"),
        ("stopped", 1, "a stream halted, at an instruction, a breakpoint or after a step"),
        ("parity_error", 1, "a read of the state or the partial-sum buffer found a wrong parity"),
        ("special", 1, "a result of an instruction that counts them was NaN or infinite"))),
    Register("interrupt_enable", 0x024, "rw", "which of them raise it", (
        ("notify", 1, ""), ("stream_error", 1, ""), ("ring_error", 1, ""), ("stopped", 1, ""), ("parity_error", 1, ""),
        ("special", 1, ""))),
    Register("notifications", 0x028, "r", "how often an instruction or a descriptor notified"),
    Register("counters_clear", 0x02C, "w", "any value sets all counters below to 0"),
    Register("parity_place", 0x030, "r", "where the last wrong parity was found; 0 without parity", (
        ("psum", 1, "in the partial-sum buffer, not in the state buffer"), ("partition", 10, "the first of that cycle"))),
    Register("parity_inject", 0x034, "rw", "to see that a wrong parity is found; nothing happens without parity", (
        ("sbuf", 1, "writes to the state buffer store the wrong parity"),
        ("psum", 1, "writes to the partial-sum buffer do"))),
    *(Register(name, 0x040 + 4 * place, "r", meaning) for place, (name, meaning) in enumerate(_COUNTERS)),
    *_rows("stream", 0x100, 0x40, len(STREAMS), (
        ("start_low", "rw", "address at which the stream starts, low 32 bits", ()),
        ("start_high", "rw", "its upper bits", ()),
        ("command", "w", "lowest bit first: what to do", (
            ("start", 1, "run from the start address; nothing where the stream runs"),
            ("halt", 1, "stop before the next instruction"),
            ("resume", 1, "go on where the stream halted"),
            ("step", 1, "execute one instruction and halt"))),
        ("status", "r", "what it does", (
            ("running", 1, "whether it runs"), ("waiting", 1, "whether it waits for a semaphore"),
            ("cause", 4, "why it stopped: a cause of the instruction set"),
            ("semaphore", 8, "the semaphore it waits for"))),
        ("address_low", "r", "address of the instruction it is at, or stopped at, low 32 bits", ()),
        ("address_high", "r", "its upper bits", ()),
        ("breakpoint_low", "rw", "halt before the instruction at this address, low 32 bits", ()),
        ("breakpoint_high", "rw", "its upper bits; bit 31: whether there is a breakpoint", ()),
        ("register_number", "rw", f"a register of the stream, 0 to {REGISTERS - 1}", ()),
        ("register_value", "r", "what it holds", ()))),
    *_rows("ring", 0x400, 0x20, RINGS, (
        ("base_low", "rw", "address of the first descriptor, low 32 bits; a multiple of 128", ()),
        ("base_high", "rw", "its upper bits", ()),
        ("size", "rw", "descriptors in the ring, at most 65,535; writing it takes the ring back to its first descriptor, "
                       "with nothing pending and no cause", ()),
        ("doorbell", "w", "lets it take so many descriptors more", ()),
        ("pending", "r", "descriptors that are not done", ()),
        ("status", "r", "what it does", (("cause", 4, "why it stopped: a cause of the instruction set"),)),
        ("address_low", "r", "address of the descriptor it is at, or stopped at, low 32 bits", ()),
        ("address_high", "r", "its upper bits", ()))),
    Register("semaphore", 0x1000, "rw", "what a semaphore holds; a write sets it", (), SEMAPHORES),
    Register("semaphore_add", 0x1400, "w", "adds to a semaphore", (), SEMAPHORES),
    Register("semaphore_subtract", 0x1800, "w", "subtracts from a semaphore", (), SEMAPHORES),
)
"""All registers. Other offsets, reads of ``w`` and writes to ``r`` give 0 and do nothing."""


def find_register(name):
    """The register called ``name``; KeyError where there is none."""
    return {register.name: register for register in REGISTER_MAP}[name]
