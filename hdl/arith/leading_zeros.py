"""Counting leading zeros."""

from amaranth import Cat, Const, Signal

__all__ = ["leading_zeros"]


def leading_zeros(m, value, name):
    """Number of zeros above the leading one of ``value``, by a tree of ever larger blocks; combinational.

    Every block knows whether it holds a one, and how many zeros its leading one has above it. All blocks of one size
    stand in one word, at the place of their lowest bits, so that a simulator handles them together; synthesis drops the
    bits between.

    Parameters
    ----------
    m : Module
        Where the tree's signals are placed, named after ``name``.

    Returns
    -------
    Value
        All ones where ``value`` is zero.
    """
    bits = max(1, (len(value) - 1).bit_length())
    width = 1 << bits

    def word(label, expression):
        signal = Signal(width, name=f"{name}_{label}")
        m.d.comb += signal.eq(expression)
        return signal

    occupied = word("occupied_1", Cat(Const(0, width - len(value)), value))
    digits = []
    for level in range(bits):
        half = 1 << level
        upper = word(f"upper_{2 * half}", occupied >> half)
        digits = [word(f"digit_{number}_{2 * half}", (upper & (digit >> half)) | (~upper & digit))
                  for number, digit in enumerate(digits)]
        digits.append(~upper)
        if level < bits - 1:
            occupied = word(f"occupied_{2 * half}", occupied | upper)
    return Cat(*(digit[0] for digit in digits))
