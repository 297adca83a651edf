"""golden/random_numbers.py: against xorwow written with Python's integers, and against chance."""

import numpy as np
from scipy import stats

from golden.random_numbers import RandomStreams

MASK = 0xFFFF_FFFF


def stream(seed, partition):
    """Draws of one stream, as docs/vector-engine.md has it."""
    x, y, z, w, v, d = 123456789 ^ seed, 362436069 ^ partition * 0x9E3779B9 & MASK, 521288629, 88675123, 5783321, 6615241
    number = 0
    while True:
        t = x ^ x >> 2
        x, y, z, w, v = y, z, w, v, (v ^ v << 4 ^ t ^ t << 1) & MASK
        d = (d + 362437) & MASK
        if number >= 32:
            yield (v + d) & MASK
        number += 1


def test_draws_of_every_stream(rng):
    streams, seeds = RandomStreams(16), rng.integers(1 << 32, size=12, dtype=np.uint32)
    streams.seed(seeds)
    draws = np.concatenate([streams.draw(12, 20), streams.draw(12, 5)], axis=1)
    for partition, seed in enumerate(seeds):
        expected = stream(int(seed), partition)
        assert [next(expected) for _ in range(25)] == draws[partition].tolist()


def test_streams_keep_their_place():
    """Those that an instruction does not have draw nothing, and a reset goes back to before any seed."""
    streams, other = RandomStreams(4), RandomStreams(4)
    first = streams.draw(4, 3)
    assert (first == first[0]).all()
    streams.draw(2, 5)
    assert np.array_equal(streams.draw(4, 1)[2:], other.draw(4, 4)[2:, 3:])
    streams.reset()
    assert np.array_equal(streams.draw(4, 3), first)


def test_bits_are_even_and_streams_are_not_alike():
    """Seeds and partitions that differ little: chi square of bytes, and correlation of neighbours."""
    streams = RandomStreams(64)
    streams.seed(np.zeros(64, np.uint32))
    draws = streams.draw(64, 2000)
    counts = np.bincount(draws.view(np.uint8).ravel(), minlength=256)
    assert stats.chisquare(counts).pvalue > 1e-4
    fractions = draws / 2.0 ** 32 - 0.5
    assert np.abs(np.corrcoef(fractions)[np.triu_indices(64, 1)]).max() < 6 / np.sqrt(2000)
    streams.seed(np.ones(64, np.uint32))
    other = streams.draw(64, 2000) / 2.0 ** 32 - 0.5
    assert abs((fractions * other).mean() * 12) < 6 / np.sqrt(fractions.size)
