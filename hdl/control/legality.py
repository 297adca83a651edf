"""Whether an instruction may run at all: the checks that every sequencer makes."""

from functools import reduce
from operator import or_

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from spec.formats import FORMATS
from spec.isa import COMPARISONS, DIMENSIONS, OPCODES, PATTERNS, UPDATES, UPDATES_EACH, WAITS, Cause

from .layouts import CAUSE_BITS, instruction_layout, own_fields_layout

__all__ = ["Legality"]


class Legality(wiring.Component):
    """The cause for which an instruction is refused before it waits; combinational.

    Parameters
    ----------
    name : str
        The stream, one of ``spec.isa.STREAMS``.

    Members
    -------
    i : In(instruction_layout)
    cause : Out(4)
        A :class:`spec.isa.Cause`: ``NONE``, ``ILLEGAL_OPCODE`` or ``ILLEGAL_FIELD``.
    """

    def __init__(self, name):
        self._name = name
        super().__init__({"i": In(instruction_layout), "cause": Out(CAUSE_BITS)})

    @property
    def module_name(self):
        return f"onc_legality_{self._name}"

    def elaborate(self, platform):
        m = Module()
        header, patterns = self.i.header, self.i.patterns
        wrong = [header.reserved != 0, *self._entries(header, "wait", WAITS, "comparison", COMPARISONS),
                 *self._entries(header, "update", UPDATES_EACH, "kind", UPDATES)]
        m.d.comb += self.cause.eq(Cause.ILLEGAL_OPCODE)
        with m.Switch(header.opcode):
            for opcode in OPCODES.values():
                with m.Case(opcode.code):
                    own = Signal(own_fields_layout(opcode.name), name=f"own_{opcode.name}")
                    m.d.comb += own.as_value().eq(self.i.own)
                    used = len(opcode.accesses)
                    bad = Signal(name=f"bad_{opcode.name}")
                    m.d.comb += bad.eq(reduce(or_, [
                        *wrong, own.reserved != 0, *(self._pattern_is_wrong(patterns[index]) for index in range(used)),
                        *(patterns[index].as_value() != 0 for index in range(used, PATTERNS))]))
                    if self._name in opcode.streams:
                        m.d.comb += self.cause.eq(bad * Cause.ILLEGAL_FIELD)
                    else:
                        # Bits that no field uses come first, as they do for whoever decodes the instruction.
                        with m.If(bad):
                            m.d.comb += self.cause.eq(Cause.ILLEGAL_FIELD)
        return m

    @staticmethod
    def _entries(header, kind, count, word, names):
        """Unused slots are all zeros and come after the used ones; a number stands for a name."""
        used = [header[f"{kind}{index}_used"] for index in range(count)]
        for index in range(count):
            rest = [header[f"{kind}{index}_{name}"] for name in (word, "semaphore", "value")]
            yield ~used[index] & reduce(or_, [field != 0 for field in rest])
            yield used[index] & (rest[0] >= len(names))
            if index:
                yield used[index] & ~used[index - 1]

    @staticmethod
    def _pattern_is_wrong(pattern):
        return reduce(or_, [
            pattern.reserved != 0, pattern.format >= len(FORMATS), pattern.partitions == 0,
            ~pattern.indexed & (pattern.register != 0),
            *(pattern[f"count{index}"] == 0 for index in range(DIMENSIONS))])
