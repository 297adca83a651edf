"""Instructions and updates as structures, from the tables of ``spec.isa``."""

from amaranth import signed
from amaranth.lib import data

from spec.isa import HEADER, INSTRUCTION_BYTES, OPCODES, PATTERN

__all__ = ["INSTRUCTION_BITS", "header_layout", "instruction_layout", "own_fields_layout", "pattern_layout", "update_layout"]

INSTRUCTION_BITS = 8 * INSTRUCTION_BYTES
_HEADER_BITS, _PATTERN_BITS, _PATTERNS, _OWN_BITS = 192, 192, 3, 256


def _layout(fields, bits):
    """A structure of ``bits``; what no field uses is ``reserved``, at the top."""
    members = {name: signed(-width) if width < 0 else width for name, width, _ in fields}
    return data.StructLayout(members | {"reserved": bits - sum(abs(width) for _, width, _ in fields)})


header_layout = _layout(HEADER, _HEADER_BITS)
pattern_layout = _layout(PATTERN, _PATTERN_BITS)
instruction_layout = data.StructLayout({
    "header": header_layout, "patterns": data.ArrayLayout(pattern_layout, _PATTERNS), "own": _OWN_BITS})
"""One instruction."""

update_layout = data.StructLayout({"semaphore": 8, "kind": 2, "value": 16})
"""A change of a semaphore; ``kind`` is a place in ``spec.isa.UPDATES``."""


def own_fields_layout(opcode):
    """An operation's own fields, by its name."""
    return _layout(OPCODES[opcode].fields, _OWN_BITS)
