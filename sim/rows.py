"""The form in which numpy arrays meet ports: one row a value, little-endian."""

import math

import numpy as np

__all__ = ["row_bytes", "stride", "empty", "pack", "from_bytes", "to_bytes"]


def row_bytes(width):
    """Bytes of one value of so many bits: 1, 2, 4 or 8 up to 64 bits, as few as hold it above."""
    if width > 64:
        return (width + 7) // 8
    return next(size for size in (1, 2, 4, 8) if width <= 8 * size)


def stride(array):
    """Bytes from one row of a port's contiguous array to the next; numpy's own is arbitrary where there is one row."""
    return array.itemsize * math.prod(array.shape[1:])


def empty(width, count):
    """Array for ``count`` values of a port: unsigned integers up to 64 bits wide, rows of bytes above."""
    if width > 64:
        return np.empty((count, row_bytes(width)), np.uint8)
    return np.empty(count, f"<u{row_bytes(width)}")


def pack(name, width, array):
    """An array as a port of ``width`` bits takes it, contiguous.

    Parameters
    ----------
    name : str
        For messages.
    width : int
        Bits of the port.
    array : numpy.ndarray
        Integers or Booleans, one a value, up to 64 bits; ``uint8`` rows of ``row_bytes(width)`` bytes above.

    Raises
    ------
    TypeError, ValueError
        The array is of another kind or shape, or holds a value that does not fit.
    """
    array = np.asarray(array)
    size = row_bytes(width)
    if width > 64:
        if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] != size:
            raise TypeError(f"{name} of {width} bits needs uint8 rows of {size} bytes, not {array.dtype} "
                            f"of shape {array.shape}")
        array = np.ascontiguousarray(array)
        top = array[:, -1].max(initial=0)
        if width % 8 and top >> width % 8:
            raise ValueError(f"{name} has {width} bits: the last byte of a row must be below {1 << width % 8}, "
                             f"not {top}")
        return array
    if array.dtype.kind not in "bui" or array.ndim != 1:
        raise TypeError(f"{name} of {width} bits needs integers in one dimension, not {array.dtype} "
                        f"of shape {array.shape}")
    if len(array):
        low, high = int(array.min()), int(array.max())
        if low < 0 or high >> width:
            raise ValueError(f"{name} has {width} bits: its values must be 0 to {(1 << width) - 1:#x}, not "
                             f"{low if low < 0 else high:#x}")
    return np.ascontiguousarray(array, f"<u{size}")


def from_bytes(width, matrix):
    """Rows of bytes, lowest first, in the form that a port of ``width`` bits takes; short rows are filled with zeros."""
    size = row_bytes(width)
    filled = np.zeros((len(matrix), size), np.uint8)
    filled[:, :matrix.shape[1]] = matrix
    return filled if width > 64 else filled.reshape(-1).view(f"<u{size}")


def to_bytes(array):
    """A port's values as rows of bytes, lowest first."""
    return np.ascontiguousarray(array).view(np.uint8).reshape(len(array), -1)
