"""Bit fields: values into a word and back, by a table of names and widths."""

from .errors import SpecError

__all__ = ["pack_fields", "unpack_fields"]


def _bits(name, value, bits):
    """``value`` in a field of ``bits``, two's complement where they are negative."""
    low, high = (-(1 << -bits - 1), (1 << -bits - 1) - 1) if bits < 0 else (0, (1 << bits) - 1)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise SpecError(name, value, f"a whole number from {low} to {high}")
    return value & ((1 << abs(bits)) - 1)


def pack_fields(layout, values):
    """One word of ``values`` by name; those that are not named are 0.

    Parameters
    ----------
    layout : iterable of (str, int, str)
        Name, bits and meaning of each field, lowest bits first; a negative number of bits: signed.

    Raises
    ------
    SpecError
        A value that does not fit its field.
    """
    word = position = 0
    for name, bits, _ in layout:
        word |= _bits(name, values.get(name, 0), bits) << position
        position += abs(bits)
    return word


def unpack_fields(layout, word):
    """The values of a word by name, and what stands above the last field."""
    values = {}
    for name, bits, _ in layout:
        value = word & ((1 << abs(bits)) - 1)
        values[name] = value - (1 << -bits) if bits < 0 and value >> -bits - 1 else value
        word >>= abs(bits)
    return values, word
