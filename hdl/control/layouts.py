"""Instructions and updates as structures, from the tables of ``spec.isa``."""

from amaranth import signed
from amaranth.lib import data

from spec.isa import HEADER, HEADER_BITS, INSTRUCTION_BYTES, OPCODES, OWN_BITS, PATTERN, PATTERN_BITS, PATTERNS

__all__ = ["INSTRUCTION_BITS", "instruction_layout", "own_fields_layout", "update_layout"]

INSTRUCTION_BITS = 8 * INSTRUCTION_BYTES


def _layout(fields, bits):
    """A structure of ``bits``; what no field uses is ``reserved``, at the top."""
    members = {name: signed(-width) if width < 0 else width for name, width, _ in fields}
    return data.StructLayout(members | {"reserved": bits - sum(abs(width) for _, width, _ in fields)})


_header_layout = _layout(HEADER, HEADER_BITS)
_pattern_layout = _layout(PATTERN, PATTERN_BITS)
instruction_layout = data.StructLayout({
    "header": _header_layout, "patterns": data.ArrayLayout(_pattern_layout, PATTERNS), "own": OWN_BITS})
"""One instruction."""

update_layout = data.StructLayout({"semaphore": 8, "kind": 2, "value": 16})
"""A change of a semaphore; ``kind`` is a place in ``spec.isa.UPDATES``."""


def own_fields_layout(opcode):
    """An operation's own fields, by its name."""
    return _layout(OPCODES[opcode].fields, OWN_BITS)
