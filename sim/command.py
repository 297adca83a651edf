"""What every command has in common: arguments of the form NAME=value, and errors without a traceback."""

import sys

from spec.errors import SpecError
from spec.presets import configure

from .cache import BuildError
from .errors import SimulationError
from .toolchain import ToolchainError

__all__ = ["run_command", "parse_arguments", "selected_system"]


def parse_arguments(arguments, allowed):
    """Arguments ``NAME=value`` as a dictionary over the defaults ``allowed``.

    Raises
    ------
    SpecError
        An argument that is not of the form, or has an unknown name.
    """
    values = dict(allowed)
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not equals or name not in allowed:
            raise SpecError("argument", argument, " ".join(f"{name}=…" for name in allowed) or "none")
        values[name] = value
    return values


def selected_system(values):
    """The :class:`spec.config.SystemConfig` that ``CONFIG`` and ``SET`` name."""
    return configure(values["CONFIG"], values["SET"])


def run_command(main, allowed):
    """Run ``main(values)`` with the command line's arguments, and exit with its status.

    A user's mistake, a missing tool, a file that cannot be written or a failed build ends with one message on standard
    error and status 2; an interrupted run with status 130.
    """
    try:
        sys.exit(main(parse_arguments(sys.argv[1:], allowed)))
    except (SpecError, SimulationError, BuildError, ToolchainError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("Interrupted", file=sys.stderr)
        sys.exit(130)
