"""Checks of the formats that arithmetic blocks are built for."""

from spec.errors import choices
from spec.formats import FORMATS

__all__ = ["checked_formats", "check_factors"]


def checked_formats(argument, names, allowed=tuple(FORMATS)):
    """``names`` as a tuple, each once and in the order of ``allowed``, so that equal sets build equal hardware.

    Parameters
    ----------
    argument : str
        What the caller's user calls ``names``.

    Raises
    ------
    TypeError
        ``names`` is not a collection of strings.
    ValueError
        It is empty or holds a name outside ``allowed``.
    """
    if isinstance(names, str) or not hasattr(names, "__iter__"):
        raise TypeError(f"{argument} must be a collection of format names, not {names!r}")
    names = tuple(names)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{argument} must hold format names, not {name!r}")
        if name not in allowed:
            raise ValueError(f"{argument} must be among {choices(allowed)}, not {name!r}")
    if not names:
        raise ValueError(f"{argument} must name at least one of {choices(allowed)}")
    return tuple(name for name in allowed if name in names)


def check_factors(a_format, b_format, allowed):
    """Refuse formats of a product that rule N1 does not have.

    Raises
    ------
    TypeError
        A format is not named by a string.
    ValueError
        A name outside ``allowed``, or two formats that do not go together.
    """
    for argument, name in (("First format", a_format), ("Second format", b_format)):
        checked_formats(argument, (name,), allowed)
    both = {a_format, b_format}
    if "fp32" in both and not both <= {"fp32", "tf32"}:
        raise ValueError(f"Formats with fp32 must be fp32 or tf32, not {a_format!r} and {b_format!r}")
    if both == {"fp8_e4m3", "fp8_e4m3fn"}:
        raise ValueError(f"Formats must not be fp8_e4m3 and fp8_e4m3fn together: {a_format!r} and {b_format!r}")
