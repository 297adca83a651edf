"""What can go wrong in a run of a design."""

__all__ = ["SimulationError", "StreamRuleBroken", "BusRuleBroken", "OutOfCycles", "HostError", "BenchFailed"]


class SimulationError(RuntimeError):
    """A run of a design went wrong."""


class StreamRuleBroken(SimulationError):
    """The design dropped ``valid``, or changed a payload, before it was accepted."""


class BusRuleBroken(SimulationError):
    """The design broke a rule of the AXI4 bus."""


class HostError(SimulationError):
    """The design answered an access of the host with an error, or not at all."""


class OutOfCycles(SimulationError):
    """A run did not finish within its cycles."""


class BenchFailed(SimulationError):
    """A bench had a failing test, or no test at all."""
