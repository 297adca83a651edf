"""The arithmetic of the vector engine: operators, reductions, scans and affine values over arrays.

Values are float32 arrays, NaN canonical (N0); bits are uint32 arrays. Shapes broadcast. Every operation on values is one IEEE
operation in binary32, rounded to nearest even, subnormal numbers included (N6).
"""

import numpy as np

from spec.vector import ARITHMETIC

from .formats import canonical_bits

__all__ = ["affine", "apply", "canonical", "cumulate", "find", "join", "largest", "reciprocal", "reduce", "reduce_partitions",
           "scan"]

_NAN = np.uint32(0x7FC0_0000).view(np.float32)
_PARTIALS = 8
_IDENTITIES = {"logical_and": np.float32(1), "logical_or": np.float32(0), "logical_xor": np.float32(0)}
_COMPARE = {"equal": np.equal, "not_equal": np.not_equal, "greater_equal": np.greater_equal, "greater": np.greater,
            "less_equal": np.less_equal, "less": np.less}
_LOGIC = {"logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor}
_BITS = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
         "left_shift": np.left_shift, "right_shift": np.right_shift}


def canonical(values):
    """Float32 values whose NaNs are canonical."""
    return canonical_bits(np.asarray(values, np.float32, order="C")).view(np.float32)


def _order(values):
    """Whole numbers in the order of the values, -0 below +0; NaN has no place."""
    bits = values.view(np.int32).astype(np.int64)
    return np.where(bits < 0, -1 - (bits & 0x7FFF_FFFF), bits)


def _extreme(a, b, larger):
    """Minimum or maximum (N9)."""
    takes_a = (_order(a) > _order(b)) == larger
    return np.where(np.isnan(a) | np.isnan(b), _NAN, np.where(takes_a, a, b))


@np.errstate(all="ignore")
def _of_values(operator, a, b):
    match operator:
        case "bypass":
            return a
        case "add":
            return a + b
        case "subtract":
            return a - b
        case "multiply":
            return a * b
        case "maximum" | "minimum":
            return _extreme(a, b, operator == "maximum")
        case "abs_max" | "abs_min":
            return _extreme(np.abs(a), np.abs(b), operator == "abs_max")
    if operator in _COMPARE:
        return _COMPARE[operator](a, b).astype(np.float32)
    return _LOGIC[operator](a != 0, b != 0).astype(np.float32)


def _of_bits(operator, a, b):
    if operator == "bypass":
        return a
    if operator == "invert":
        return ~a
    if operator.endswith("shift"):
        return np.where(b < 32, _BITS[operator](a, b & np.uint32(31)), np.uint32(0))
    return _BITS[operator](a, b)


def apply(operator, a, b, reverse=False):
    """``a operator b``, or with ``reverse`` ``b operator a``.

    Parameters
    ----------
    operator : str
        One of ``spec.vector.OPERATORS``.
    a, b : float32 arrays, or uint32 arrays
        Values, or bits for an operator of bits and ``bypass``.

    Returns
    -------
    array
        Of the operands' kind and common shape.
    """
    a, b = (np.array(side, order="C") for side in np.broadcast_arrays(a, b))
    if reverse:
        a, b = b, a
    if a.dtype == np.uint32:
        return _of_bits(operator, a, b)
    if operator not in ARITHMETIC:
        raise ValueError(f"{operator} does not work on values")
    return canonical(_of_values(operator, a, b))


@np.errstate(all="ignore")
def reciprocal(values):
    """``1 / values``, correctly rounded (N11)."""
    return canonical(np.float32(1) / values)


def largest(elements, count):
    """The largest of the last axis, descending; NaN above +infinity, -0 below +0 (N9)."""
    order = np.where(np.isnan(elements), np.int64(1) << 40, _order(elements))
    places = np.argsort(-order, axis=-1, kind="stable")[..., :count]
    return np.take_along_axis(elements, places, -1)


def find(elements, values):
    """The place in ``[partitions, elements]`` of each of ``[partitions, values]``, -1 where there is none; equal values find successive
    elements. NaN is equal to NaN, -0 is not +0."""
    left, right = (canonical(side).view(np.uint32) for side in (elements, values))
    places = np.full(values.shape, -1, np.int64)
    for partition, number in np.ndindex(values.shape):
        same = np.flatnonzero(left[partition] == right[partition, number])
        earlier = np.count_nonzero(right[partition, :number] == right[partition, number])
        if earlier < len(same):
            places[partition, number] = same[earlier]
    return places


def join(operator, partials):
    """Up to eight running results as one: neighbours first, an odd one passing up (N8)."""
    partials = list(partials)
    while len(partials) > 1:
        pairs = [apply(operator, *pair) for pair in zip(partials[::2], partials[1::2])]
        partials = pairs + partials[2 * len(pairs):]
    return partials[0]


def reduce(operator, elements):
    """The last axis as one result, in N8's order.

    Eight running results take the elements in turn, each started by its first one; of logical operators that one is made 1.0 or 0.0.
    """
    partials = []
    for first in range(min(_PARTIALS, elements.shape[-1])):
        running = elements[..., first]
        if operator in _IDENTITIES:
            running = apply(operator, running, _IDENTITIES[operator])
        for index in range(first + _PARTIALS, elements.shape[-1], _PARTIALS):
            running = apply(operator, running, elements[..., index])
        partials.append(running)
    return join(operator, partials)


def reduce_partitions(operator, elements):
    """The first axis as one result, by pairs of neighbours, level by level (N8)."""
    return join(operator, elements)


def scan(operators, reverses, data, operand, initial):
    """``r[i] = (data[i] op0 r[i-1]) op1 operand[i]`` along the last axis of ``[partitions, elements]``; ``initial`` is ``r[-1]`` of each
    partition."""
    results, before = np.empty_like(data), initial
    for index in range(data.shape[1]):
        inner = apply(operators[0], data[:, index], before, reverses[0])
        before = results[:, index] = apply(operators[1], inner, operand[:, index], reverses[1])
    return results


def cumulate(operator, elements, initial):
    """``r[i] = elements[i] op r[i-1]`` along the last axis of ``[partitions, elements]``."""
    results, before = np.empty_like(elements), initial
    for index in range(elements.shape[1]):
        before = results[:, index] = apply(operator, elements[:, index], before)
    return results


def affine(base, multiplier, steps, counts, partitions):
    """``base + p multiplier + sum of i steps``, modulo 2^32 as int32 ``[partitions, elements]``, the first count fastest."""
    values = np.zeros(1, np.int64)
    for step, count in zip(steps, counts):
        values = (np.arange(count, dtype=np.int64)[:, None] * step + values).ravel()
    values = base + np.arange(partitions, dtype=np.int64)[:, None] * multiplier + values
    return (values & 0xFFFF_FFFF).astype(np.uint32).view(np.int32)
