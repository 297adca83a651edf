"""Area of memories: a model of SRAM macros, and a user's own table."""

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from spec.errors import SpecError, choices

__all__ = ["SRAMModel", "is_sram"]

_NAME = re.compile(r"onc_sram_(\d+)x(\d+)")
_KEYS = ("node_nm", "bit_f2", "periphery_f2", "second_port", "register_bit_um2", "macro")


def is_sram(module):
    """Whether a module is a memory, which is never synthesised: ``onc_sram_<depth>x<width>``."""
    return _NAME.fullmatch(module) is not None


@dataclass(frozen=True)
class SRAMModel:
    """Area of a memory of one read and one write port, in um2.

    ``macro = (bit_f2 * bits + periphery_f2) * second_port * node**2``; a small memory is built of flip-flops instead,
    ``register_bit_um2`` a bit, where that is smaller. Fitted on the published single-port macros that
    ``docs/area.md`` lists, each within 25 %; the factor for a second port is an assumption of ours.

    Parameters
    ----------
    node_nm : float
        Feature size F.
    bit_f2 : float
        Bit-cell with its share of the array, in F2.
    periphery_f2 : float
        Decoders, sense amplifiers, timing, in F2; the published macros show no dependence on width or depth.
    second_port : float
        Factor for the second port.
    register_bit_um2 : float
        A flip-flop and its share of the read multiplexer and the write enable.
    macros : dict
        Areas that the user knows, by ``(depth, width)``; they go before the model.
    """

    node_nm: float = 45
    bit_f2: float = 140
    periphery_f2: float = 5.0e6
    second_port: float = 1.5
    register_bit_um2: float = 9.0
    macros: dict = field(default_factory=dict)

    @classmethod
    def from_path(cls, path):
        """The model in a user's ``SRAM=`` file: any of the parameters, and ``[[macro]]`` tables with ``depth``,
        ``width`` and ``area_um2``."""
        try:
            values = tomllib.loads(Path(path).expanduser().read_text())
        except OSError as error:
            raise SpecError("SRAM", path, f"a TOML file that can be read ({error.strerror})") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SpecError("SRAM", path, f"a TOML file ({error})") from None
        for name, value in values.items():
            if name not in _KEYS:
                raise SpecError("SRAM", name, choices(_KEYS))
            if name != "macro" and (isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0):
                raise SpecError(name, value, "a number above 0")
        macros = {}
        for row in values.pop("macro", []):
            if set(row) != {"depth", "width", "area_um2"} or not all(value > 0 for value in row.values()):
                raise SpecError("macro", row, "depth, width and area_um2, each above 0")
            macros[row["depth"], row["width"]] = float(row["area_um2"])
        return cls(**values, macros=macros)

    @staticmethod
    def shape(module):
        """Depth and width of the memory called ``module``."""
        return tuple(int(number) for number in _NAME.fullmatch(module).groups())

    def macro_um2(self, depth, width, ports=2):
        """Area of an SRAM macro with one or two ports, in um2."""
        area = (self.bit_f2 * depth * width + self.periphery_f2) * (self.node_nm / 1000) ** 2
        return area * (self.second_port if ports == 2 else 1)

    def area_um2(self, depth, width):
        """Area of a memory with one read and one write port, in um2."""
        if (depth, width) in self.macros:
            return self.macros[depth, width]
        return min(self.macro_um2(depth, width), self.register_bit_um2 * depth * width)
