"""Instructions and updates as structures, from the tables of ``spec.isa``."""

from amaranth import signed
from amaranth.lib import data

from spec.dma import ENGINE_BYTES, RINGS
from spec.isa import HEADER, HEADER_BITS, INSTRUCTION_BYTES, OPCODES, OWN_BITS, PATTERN, PATTERN_BITS, PATTERNS

__all__ = ["BEATS", "CAUSE_BITS", "INSTRUCTION_BITS", "beat_layout", "doorbell_layout", "fields_layout", "instruction_layout",
           "own_fields_layout", "pattern_layout", "update_layout"]

INSTRUCTION_BITS = 8 * INSTRUCTION_BYTES
BEATS = INSTRUCTION_BYTES // ENGINE_BYTES
"""Words of a memory port that an instruction takes."""
CAUSE_BITS = 4


def fields_layout(fields, bits):
    """A structure of ``bits`` from (name, width, meaning) rows; what no field uses is ``reserved``, at the top."""
    members = {name: signed(-width) if width < 0 else width for name, width, _ in fields}
    return data.StructLayout(members | {"reserved": bits - sum(abs(width) for _, width, _ in fields)})


_header_layout = fields_layout(HEADER, HEADER_BITS)
pattern_layout = fields_layout(PATTERN, PATTERN_BITS)
instruction_layout = data.StructLayout({
    "header": _header_layout, "patterns": data.ArrayLayout(pattern_layout, PATTERNS), "own": OWN_BITS})
"""One instruction."""

update_layout = data.StructLayout({"semaphore": 8, "kind": 2, "value": 16})
"""A change of a semaphore; ``kind`` is a place in ``spec.isa.UPDATES``."""

beat_layout = data.StructLayout({"data": 8 * ENGINE_BYTES, "error": 1})
"""A word that memory answered with."""

doorbell_layout = data.StructLayout({"ring": (RINGS - 1).bit_length(), "descriptors": 16})
"""So many descriptors more for a ring."""


def own_fields_layout(opcode):
    """An operation's own fields, by its name."""
    return fields_layout(OPCODES[opcode].fields, OWN_BITS)
