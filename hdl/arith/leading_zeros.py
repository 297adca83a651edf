"""Counting leading zeros."""

from amaranth import Cat, Const, Mux, Signal

__all__ = ["leading_zeros"]


def leading_zeros(m, value, name):
    """Number of zeros above the leading one of ``value``, by binary search; combinational.

    Parameters
    ----------
    m : Module
        Where the search's signals are placed, named after ``name``.

    Returns
    -------
    Value
        All ones where ``value`` is zero.
    """
    bits = max(1, (len(value) - 1).bit_length())
    value = Cat(Const(0, (1 << bits) - len(value)), value)
    digits = []
    for bit in reversed(range(bits)):
        half = 1 << bit
        part = Signal(2 * half, name=f"{name}_{2 * half}")
        empty = Signal(name=f"{name}_empty_{half}")
        m.d.comb += [part.eq(value), empty.eq(part[half:] == 0)]
        digits.insert(0, empty)
        value = Mux(empty, part[:half], part[half:])
    return Cat(*digits)
