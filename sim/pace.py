"""Long runs in pieces, between which Python shows progress and can be interrupted."""

import time

__all__ = ["paced"]

_SECONDS = 0.2  # of one piece


def paced(total, *stops):
    """Cut a count of cycles into pieces that take about a fifth of a second each, however fast the design is.

    Parameters
    ----------
    total : int
        The cycles.
    stops : int
        Places where a piece must end.

    Yields
    ------
    tuple of int
        Where the piece begins and where it ends; the time until the next one is asked for is taken as its cost.
    """
    begin, size = 0, 256
    while begin < total:
        end = min([total, begin + size, *(stop for stop in stops if stop > begin)])
        began = time.perf_counter()
        yield begin, end
        spent = time.perf_counter() - began
        if end - begin == size:
            size = max(1, int(size * min(8.0, _SECONDS / max(spent, 1e-9))))
        begin = end
