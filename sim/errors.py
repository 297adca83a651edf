"""What can go wrong in a run of a design."""

__all__ = ["SimulationError", "StreamRuleBroken", "OutOfCycles", "BenchFailed"]


class SimulationError(RuntimeError):
    """A run of a design went wrong."""


class StreamRuleBroken(SimulationError):
    """The design dropped ``valid``, or changed a payload, before it was accepted."""


class OutOfCycles(SimulationError):
    """A run did not finish within its cycles."""


class BenchFailed(SimulationError):
    """A bench had a failing test, or no test at all."""
