"""Configurations of core, chip and system: the user's fields, their checks, derived values."""

from dataclasses import dataclass

from .dma import ENGINE_BYTES, RINGS
from .errors import SpecError, choices
from .formats import FORMATS, PAIR_FORMATS, TENSOR_FORMATS

__all__ = ["CoreConfig", "ChipConfig", "SystemConfig"]

FORMAT_GROUPS = {"fp8": ("fp8_e5m2", "fp8_e4m3", "fp8_e3m4"), "all": TENSOR_FORMATS}
"""Names that stand for several formats; ``fp8`` is what AWS calls cFP8."""

TILES = (2, 4, 8, 16)
TOPOLOGIES = ("ring", "torus")


def _check_int(field, value, low, high):
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise SpecError(field, value, f"a whole number from {low} to {high}")


def _check_bool(field, value):
    if not isinstance(value, bool):
        raise SpecError(field, value, "true or false")


def _check_power_of_two(field, value, low, high, why=""):
    if not isinstance(value, int) or not low <= value <= high or value & (value - 1):
        raise SpecError(field, value, f"a power of two from {low} to {high}{why}")


@dataclass(frozen=True)
class CoreConfig:
    """One core.

    Parameters
    ----------
    rows, cols : int
        Processing elements down (SBUF partitions, the contraction) and across (PSUM partitions);
        multiples of ``tile``, free of each other.
    tile : int
        Side of the square tile of which the array is built.
    formats : tuple of str
        Input formats of the tensor engine; ``fp8`` and ``all`` stand for several. Formats left out cost no gates.
    fp8_pairs : bool
        Whether those of ``formats`` that rule N5 names also go two elements a row, at double rate. int8 always does (N13).
    transpose : bool
        Exact transpose through the array (N14); public from NeuronCore-v3 on.
    adder_stages : int
        Pipeline stages of an element's addition, and so cycles from row to row: 2, or 3 for a higher clock.
    sbuf_kib : int
        State buffer, KiB per partition.
    sbuf_banks : int
        Banks of a partition, between which its 8-byte words alternate; each is read and written once a cycle.
    psum_banks, psum_bank_bytes : int
        Partial-sum buffer: banks per partition and bytes per bank; public: 8 banks of 2 KiB.
    parity : bool
        A parity bit for each byte of the state buffer and each word of the partial-sum buffer, checked at every read.
    tensor_clock_ghz : float
        Published clock of the tensor engine, for peak figures only.

    Raises
    ------
    SpecError
        Names the field, the value and what is allowed.
    """

    rows: int
    cols: int
    tile: int = 8
    formats: tuple = ("bf16",)
    fp8_pairs: bool = False
    transpose: bool = False
    adder_stages: int = 2
    sbuf_kib: int = 192
    sbuf_banks: int = 4
    psum_banks: int = 8
    psum_bank_bytes: int = 2048
    parity: bool = False
    tensor_clock_ghz: float = 1.0

    def __post_init__(self):
        if self.tile not in TILES:
            raise SpecError("tile", self.tile, choices(TILES))
        for field in ("rows", "cols"):
            value = getattr(self, field)
            _check_int(field, value, 1, 1024)
            if value % self.tile:
                raise SpecError(field, value, f"a multiple of the tile, {self.tile}, up to 1024")
        object.__setattr__(self, "formats", self._expanded_formats())
        _check_bool("fp8_pairs", self.fp8_pairs)
        _check_bool("transpose", self.transpose)
        _check_bool("parity", self.parity)
        _check_int("adder_stages", self.adder_stages, 2, 3)
        _check_int("sbuf_kib", self.sbuf_kib, 1, 1024)
        _check_power_of_two("sbuf_banks", self.sbuf_banks, 1, 16)
        _check_power_of_two("psum_banks", self.psum_banks, 2, 16)
        _check_power_of_two("psum_bank_bytes", self.psum_bank_bytes, 16, 16384)
        if self.psum_bank_bytes < 4 * self.rows:
            raise SpecError("psum_bank_bytes", self.psum_bank_bytes,
                            f"at least {4 * self.rows}, a row of {self.rows} words of 4 bytes")
        if not isinstance(self.tensor_clock_ghz, (int, float)) or not 0 < self.tensor_clock_ghz <= 10:
            raise SpecError("tensor_clock_ghz", self.tensor_clock_ghz, "a number above 0, up to 10")

    def _expanded_formats(self):
        names = (self.formats,) if isinstance(self.formats, str) else self.formats
        expanded = []
        for name in names:
            if name not in FORMAT_GROUPS and name not in TENSOR_FORMATS:
                raise SpecError("formats", name, choices((*TENSOR_FORMATS, *FORMAT_GROUPS)))
            expanded += FORMAT_GROUPS.get(name, (name,))
        if not expanded:
            raise SpecError("formats", self.formats, "at least one of " + choices(TENSOR_FORMATS))
        return tuple(name for name in TENSOR_FORMATS if name in expanded)

    @property
    def pair_formats(self):
        """Configured formats that can go two elements a row, floating-point and int8."""
        return tuple(f for f in self.formats if f in PAIR_FORMATS and (self.fp8_pairs or f == "int8"))

    @property
    def quadrant(self):
        """Partition starts are multiples of this many partitions."""
        return max(1, self.rows // 4)

    @property
    def sbuf_bytes(self):
        """Bytes of a partition of the state buffer."""
        return 1024 * self.sbuf_kib

    @property
    def psum_bank_words(self):
        """32-bit words per partition in one bank: the longest ``moving`` of one instruction."""
        return self.psum_bank_bytes // 4

    @property
    def slot_bits(self):
        """Bits of a row's operand slot: the widest format, or two 8-bit elements where pairs are configured."""
        return max([16 if self.pair_formats else 8] + [FORMATS[name].width for name in self.formats])

    @property
    def memory_bytes_per_cycle(self):
        """Memory bandwidth for measurements: trn2's 1.18 bytes a cycle for each row, down to a power of two."""
        return 1 << (int(1.18 * self.rows).bit_length() - 1)

    @property
    def dma_engines(self):
        """DMA engines, each with a memory port of its own: as many as that bandwidth takes, at least 1, at most 16 (public)."""
        return min(max(1, self.memory_bytes_per_cycle // ENGINE_BYTES), RINGS)


@dataclass(frozen=True)
class ChipConfig:
    """One chip: ``cores`` equal cores, some of which may be fused off.

    Parameters
    ----------
    name : str
        The preset that the configuration started from.
    core : CoreConfig
    cores : int
        Cores on the die.
    fused_off : tuple of int
        Physical numbers of the cores that are switched off for good.
    link_ports : int
        NeuronLink ports.
    """

    name: str
    core: CoreConfig
    cores: int = 1
    fused_off: tuple = ()
    link_ports: int = 0

    def __post_init__(self):
        _check_int("cores", self.cores, 1, 64)
        _check_int("link_ports", self.link_ports, 0, 8)
        for core in self.fused_off:
            _check_int("fused_off", core, 0, self.cores - 1)
        if len(set(self.fused_off)) != len(self.fused_off) or len(self.fused_off) >= self.cores:
            raise SpecError("fused_off", self.fused_off, f"different cores, at most {self.cores - 1} of {self.cores}")


@dataclass(frozen=True)
class SystemConfig:
    """``chips`` equal chips joined by NeuronLink in a ``topology``."""

    chip: ChipConfig
    chips: int = 1
    topology: str = "ring"

    def __post_init__(self):
        _check_int("chips", self.chips, 1, 4096)
        if self.topology not in TOPOLOGIES:
            raise SpecError("topology", self.topology, choices(TOPOLOGIES))
