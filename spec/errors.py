"""The error that every refusal of a user's input raises."""

__all__ = ["SpecError", "choices"]


class SpecError(ValueError):
    """A configuration or request that is refused.

    Parameters
    ----------
    field : str
        What is wrong, by the name the user gave it.
    value
        The value that was given.
    allowed : str
        What would have been accepted.
    cause : spec.isa.Cause or None
        What hardware reports, where it is an instruction or a descriptor that is refused.
    """

    def __init__(self, field, value, allowed, cause=None):
        self.field, self.value, self.allowed, self.cause = field, value, allowed, cause
        super().__init__(f"{field}: {value!r} is not allowed; allowed: {allowed}")


def choices(values):
    """The allowed set as text: ``"a, b or c"``."""
    values = [str(value) for value in values]
    return values[0] if len(values) == 1 else ", ".join(values[:-1]) + " or " + values[-1]
