"""The random numbers of a core: xorwow, a stream for each lane of the vector engine (N12)."""

import numpy as np

from spec.vector import RANDOM_START, RANDOM_WEYL, SEED_DISCARDS, SEED_MULTIPLIER

__all__ = ["RandomStreams"]


class RandomStreams:
    """``lanes`` generators side by side.

    Parameters
    ----------
    lanes : int
    """

    def __init__(self, lanes):
        self._state = np.empty((6, lanes), np.uint32)
        self.reset()

    def reset(self):
        """All streams begin as before any seed."""
        self._state[:] = np.array(RANDOM_START, np.uint32)[:, None]

    def seed(self, words):
        """Stream p starts from word p and p; uint32 ``[partitions]``."""
        count = len(words)
        self._state[:, :count] = np.array(RANDOM_START, np.uint32)[:, None]
        self._state[0, :count] ^= words
        self._state[1, :count] ^= np.arange(count, dtype=np.uint32) * np.uint32(SEED_MULTIPLIER)
        self.draw(count, SEED_DISCARDS)

    def draw(self, partitions, count):
        """The next draws of the first streams: uint32 ``[partitions, count]``."""
        x, y, z, w, v, d = self._state[:, :partitions]
        draws = np.empty((partitions, count), np.uint32)
        for index in range(count):
            t = x ^ x >> 2
            x, y, z, w, v = y, z, w, v, v ^ v << 4 ^ t ^ t << 1
            d = d + np.uint32(RANDOM_WEYL)
            draws[:, index] = v + d
        self._state[:, :partitions] = x, y, z, w, v, d
        return draws
