"""What can go wrong with a cost estimate that is not the user's configuration."""

from sim.toolchain import ToolchainError

__all__ = ["CostError"]


class CostError(ToolchainError):
    """A library that cannot be had or read, or a tool that failed; the message says what to do."""
