"""Area and access time of memories: a model of SRAM macros, and a user's own table."""

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from spec.errors import SpecError, choices

from .macro import Macro

__all__ = ["SRAMModel", "is_sram"]

_NAME = re.compile(r"onc_sram_(\d+)x(\d+)(?:w\d+)?")
_KEYS = ("node_nm", "bit_f2", "periphery_f2", "second_port", "register_bit_um2", "access_ns", "macro")
_MACRO_KEYS = {"depth", "width", "area_um2", "access_ns"}

# Access time grows with the length of a word line or bit line, so with the square root of a side's cells; with the
# feature size by the exponent that fits the published macros, whose corners and voltages differ.
_ACCESS_NODE_NM, _ACCESS_BITS = 45, 8192
_ACCESS_NODE_EXPONENT, _ACCESS_BITS_EXPONENT = 2.15, 0.25
_SETUP_SHARE = 0.25  # of the access time: decoding, which precedes the clocked part


def is_sram(module):
    """Whether a module is a memory, which is never synthesised: ``onc_sram_<depth>x<width>``, with ``w<lane>`` behind where parts of a
    word can be written."""
    return _NAME.fullmatch(module) is not None


@dataclass(frozen=True)
class SRAMModel:
    """Area and access time of a memory of one read and one write port.

    ``macro = (bit_f2 * bits + periphery_f2) * second_port * node**2``; a small memory is built of flip-flops instead,
    ``register_bit_um2`` a bit, where that is smaller. Fitted on the published single-port macros that
    ``docs/area.md`` lists, each within 25 %; the factor for a second port is an assumption of ours. The access time is
    ``access_ns * (node / 45)**2.15 * (bits / 8192)**0.25``, within 25 % of the same macros.

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
    access_ns : float
        From the clock's edge to the word read, for 8192 bits at 45 nm.
    macros : dict
        Memories that the user knows, by ``(depth, width)``: a dict with ``area_um2``, or ``access_ns``, or both; they
        go before the model.
    """

    node_nm: float = 45
    bit_f2: float = 140
    periphery_f2: float = 5.0e6
    second_port: float = 1.5
    register_bit_um2: float = 9.0
    access_ns: float = 0.32
    macros: dict = field(default_factory=dict)

    @classmethod
    def from_path(cls, path):
        """The model in a user's ``SRAM=`` file, TOML: any of the parameters by name, and ``[[macro]]`` tables with
        ``depth``, ``width``, and ``area_um2`` or ``access_ns`` or both. Raises :class:`SpecError`."""
        try:
            values = tomllib.loads(Path(path).expanduser().read_text())
        except OSError as error:
            raise SpecError("SRAM", path, f"a TOML file that can be read ({error.strerror})") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SpecError("SRAM", path, f"a TOML file ({error})") from None
        rows = values.pop("macro", [])
        for name, value in values.items():
            if name not in _KEYS:
                raise SpecError("SRAM", name, choices(_KEYS))
            if not _is_positive(value):
                raise SpecError(name, value, "a number above 0")
        if not isinstance(rows, list):
            raise SpecError("macro", rows, "tables [[macro]]")
        macros = {}
        for row in rows:
            if not ({"depth", "width"} < set(row) <= _MACRO_KEYS and all(map(_is_positive, row.values()))):
                raise SpecError("macro", row, "depth, width, and area_um2 or access_ns or both, each above 0")
            macros[row["depth"], row["width"]] = row
        return cls(**values, macros=macros)

    @staticmethod
    def shape(module):
        """Depth and width of the memory called ``module``."""
        return tuple(int(number) for number in _NAME.fullmatch(module).groups())

    def macro_um2(self, depth, width, ports=2):
        """Area of an SRAM macro with one or two ports, in um2."""
        area = (self.bit_f2 * depth * width + self.periphery_f2) * (self.node_nm / 1000) ** 2
        return area * (self.second_port if ports == 2 else 1)

    def macro_access_ns(self, depth, width):
        """Access time of an SRAM macro, in ns."""
        return (self.access_ns * (self.node_nm / _ACCESS_NODE_NM) ** _ACCESS_NODE_EXPONENT
                * (depth * width / _ACCESS_BITS) ** _ACCESS_BITS_EXPONENT)

    def area_um2(self, module):
        """Area of the memory called ``module``, in um2."""
        depth, width = self.shape(module)
        known = self.macros.get((depth, width), {}).get("area_um2")
        return known or min(self.macro_um2(depth, width), self.register_bit_um2 * depth * width)

    def access_ps(self, module):
        """Access time of the memory called ``module``, in ps."""
        shape = self.shape(module)
        return 1000 * (self.macros.get(shape, {}).get("access_ns") or self.macro_access_ns(*shape))

    def macro(self, module):
        """The memory called ``module`` as its neighbours see it, a :class:`area.macro.Macro`."""
        depth, width = self.shape(module)
        address = ("input", (depth - 1).bit_length())
        ports = {"clk": ("input", None), "rst": ("input", None),
                 "read_enable": ("input", None), "read_address": address, "read_data": ("output", width),
                 "write_enable": ("input", None), "write_address": address, "write_data": ("input", width)}
        ports = {name: (direction, None if size == 1 else size) for name, (direction, size) in ports.items()}
        access_ns = self.access_ps(module) / 1000
        macro = Macro(module, ports, True, {}, {}, {})
        sampled = [name for name in ports if name not in ("clk", "rst", "read_data")]
        macro.setup.update((bit, _SETUP_SHARE * access_ns) for name in sampled for bit in macro.bits(name))
        macro.arrival.update((bit, access_ns) for bit in macro.bits("read_data"))
        return macro


def _is_positive(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0
