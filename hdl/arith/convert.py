"""Conversion between number formats."""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from spec.formats import FLOAT_FORMATS, FORMAT_CODES, FORMATS, INT_FORMATS

from .checks import checked_formats
from .encode import Encode
from .layouts import OperandFormat
from .recode import Recode
from .recode_integer import RecodeInteger

__all__ = ["Convert"]


def _mask(names):
    return sum(1 << FORMAT_CODES[name] for name in names)


class Convert(wiring.Component):
    """Cast an element from one format to another, both chosen at run time (rules N0, N7).

    Integers reach other integers and floats narrower than binary32 through binary32, so they are rounded twice. Equal
    formats move the bits untouched.

    Latency: 1 cycle. Throughput: one a cycle. The inputs and ``o`` are not registered.

    Parameters
    ----------
    sources, targets : collection of str
        Names of :data:`spec.formats.FORMATS` that may be asked for; those left out cost no gates.

    Members
    -------
    bits : In(widest source)
        The element in the low bits; what is above it is ignored.
    source, target : In(4)
        Codes of :data:`spec.formats.FORMAT_CODES`; those outside ``sources`` and ``targets`` give arbitrary bits.
    saturate : In(1)
        Overflow and infinities give the largest finite number of that sign. Integers always saturate.
    o : Out(widest target)
        The result in the low bits, zeros above.

    Raises
    ------
    TypeError
        Formats that are not named by strings.
    ValueError
        No format, or one that does not exist.
    """

    latency = 1

    def __init__(self, sources, targets):
        self.sources = checked_formats("Sources", sources)
        self.targets = checked_formats("Targets", targets)
        super().__init__({
            "bits": In(max(FORMATS[name].width for name in self.sources)),
            "source": In(4), "target": In(4), "saturate": In(1),
            "o": Out(max(FORMATS[name].width for name in self.targets)),
        })

    @property
    def module_name(self):
        """Names the formats by a bit each, at the place of its code."""
        return f"onc_convert_{_mask(self.sources):x}_{_mask(self.targets):x}"

    @property
    def facts(self):
        """Formats and latency for the manifest."""
        return {"sources": self.sources, "targets": self.targets, "latency_cycles": self.latency}

    def elaborate(self, platform):
        m = Module()
        floats = [name for name in self.sources if name in FLOAT_FORMATS]
        integers = [name for name in self.sources if name in INT_FORMATS]

        # Integers of 8 bits fit bf16's significand, longer ones are rounded to binary32.
        has_long = any(INT_FORMATS[name].width > 8 for name in integers)
        operand = OperandFormat(floats + ["fp32" if has_long else "bf16"] * bool(integers))

        read = Signal(operand.layout)
        if floats:
            m.submodules.recode = recode = Recode(floats, operand)
            m.d.comb += [recode.bits.eq(self.bits), recode.format.eq(self.source), read.eq(recode.o)]
        if integers:
            m.submodules.recode_integer = recode_integer = RecodeInteger(integers, operand)
            m.d.comb += [recode_integer.bits.eq(self.bits), recode_integer.format.eq(self.source)]
            with m.Switch(self.source):
                with m.Case(*(FORMAT_CODES[name] for name in integers)):
                    m.d.comb += read.eq(recode_integer.o)

        m.submodules.encode = encode = Encode(self.targets, operand)
        m.d.sync += [encode.i.eq(read), encode.format.eq(self.target), encode.saturate.eq(self.saturate)]

        copied = [FORMATS[name] for name in self.sources if name in self.targets]
        if copied:
            copy, is_copy = Signal.like(self.o), Signal()
            with m.Switch(self.source):
                for f in copied:
                    with m.Case(FORMAT_CODES[f.name]):
                        m.d.sync += copy.eq(self.bits[:f.width])
            m.d.sync += is_copy.eq(self.source == self.target)
            m.d.comb += self.o.eq(Mux(is_copy, copy, encode.o))
        else:
            m.d.comb += self.o.eq(encode.o)
        return m
