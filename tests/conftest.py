"""Fixtures shared by all tests."""

import os

import numpy as np
import pytest


@pytest.fixture
def rng():
    """A numpy ``Generator``; ``SEED=<number>`` in the environment repeats or varies a run."""
    seed = int(os.environ.get("SEED", "1"))
    print(f"repeat with SEED={seed}")  # pytest shows it when the test fails
    return np.random.default_rng(seed)
