"""What the vector engine can be asked to do: operators, which of them go together, and what an instruction may name."""

__all__ = ["ARITHMETIC", "BITWISE", "MOST_ELEMENTS", "OPERATORS", "REDUCTIONS", "RANDOM_START", "RANDOM_WEYL", "SEED_DISCARDS",
           "SEED_MULTIPLIER", "SHUFFLE_GROUP", "SHUFFLE_KEEPS", "TOP", "TOP_ELEMENTS",
           "UNCOUNTED", "is_bitwise"]

ARITHMETIC = ("bypass", "add", "subtract", "multiply", "maximum", "minimum", "equal", "not_equal", "greater_equal", "greater",
              "less_equal", "less", "logical_and", "logical_or", "logical_xor", "abs_max", "abs_min")
"""Operators on binary32 (N6, N9). ``bypass`` gives its first operand; comparisons and logical operators give 1.0 or 0.0;
``abs_max`` and ``abs_min`` are N9's maximum and minimum of the magnitudes."""

BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift")
"""Operators on the bits of integers, nothing is converted: operands are extended with zeros to 32 bits, of the result as many
low bits are kept as its format has. ``invert`` takes its first operand; a shift is logical, by the second operand, and by 32 or
more gives 0."""

OPERATORS = ARITHMETIC + BITWISE
"""An operator's code is its place here; our own choice."""

REDUCTIONS = ("add", "multiply", "maximum", "minimum", "logical_and", "logical_or", "logical_xor",
              "bitwise_and", "bitwise_or", "bitwise_xor")
"""Operators that can reduce (public)."""

MOST_ELEMENTS = 65_535
"""Of a partition, in one instruction."""

TOP = 8
"""Elements that ``max8`` finds; values that ``find_index8`` and ``match_replace8`` look for (public)."""
TOP_ELEMENTS = 8, 16_384
"""Among how many, at least and at most (public)."""


RANDOM_START = (123_456_789, 362_436_069, 521_288_629, 88_675_123, 5_783_321, 6_615_241)
"""State x, y, z, w, v, d of a partition's generator until it is seeded: xorwow's (G. Marsaglia, Xorshift RNGs, 2003)."""

RANDOM_WEYL = 362_437
"""What xorwow adds to d for each draw."""

SEED_MULTIPLIER = 0x9E37_79B9
"""Of a partition's number, which makes streams of one seed different; our own choice, 2^32 divided by the golden ratio."""

SEED_DISCARDS = 32
"""Draws that seeding throws away, so that seeds and numbers that differ by a bit are mixed; our own choice."""


SHUFFLE_GROUP = 32
"""Partitions of a group within which they are exchanged, and the most that a transpose has on a side (public); less where the array
has less rows."""

SHUFFLE_KEEPS = 255
"""Entry of a mask that leaves the result's partition as it is (public)."""


UNCOUNTED = ("memset", "iota", "tensor_copy", "tensor_copy_predicated", "find_index8", "set_rng_seed", "rng", "dropout",
             "stream_shuffle", "transpose")
"""Instructions that do not count NaN and infinite results."""


def is_bitwise(name):
    """Whether an operator works on bits."""
    return name in BITWISE
