"""Progress bars for what takes more than a few seconds."""

import contextlib

from tqdm import tqdm

__all__ = ["progress_bar"]

_DELAY_SECONDS = 2  # what is over sooner shows no bar


@contextlib.contextmanager
def progress_bar(what, unit="cycles"):
    """A bar on a terminal, nothing elsewhere, as the ``progress`` argument of ``sim.model.Model``'s runs.

    Yields
    ------
    callable
        To be called with how much is done and how much there is.
    """
    with tqdm(desc=what, unit=f" {unit}", unit_scale=True, delay=_DELAY_SECONDS, disable=None, leave=False) as bar:
        def show(done, total):
            bar.total = total
            bar.update(done - bar.n)

        yield show
