"""Seeds of random runs: drawn once, printed, and repeatable."""

import os

__all__ = ["fresh_seed"]


def fresh_seed():
    """A seed for a run that was given none: ``$OPENNEURONCORE_SEED``, else drawn anew, below 2^31."""
    text = os.environ.get("OPENNEURONCORE_SEED")
    if text is None:
        return int.from_bytes(os.urandom(4), "little") >> 1
    if not text.isdecimal():
        raise ValueError(f"OPENNEURONCORE_SEED must be a whole number from 0, not {text!r}")
    return int(text)
