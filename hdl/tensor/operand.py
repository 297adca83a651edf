"""What travels through the array: operands, their control bits, and terms, trimmed to the configured formats."""

from amaranth.lib import data

from spec.formats import FORMATS

from ..arith.layouts import SUM_FRACTION_BITS, OperandFormat, product_layout
from ..arith.quarter_product import chunk_layout, pass_layout

__all__ = ["OperandShapes"]

PAIR_ELEMENT_BITS = 8


class OperandShapes:
    """The shapes that one configuration's array needs; formats left out leave no bits behind.

    Parameters
    ----------
    core : spec.config.CoreConfig

    Attributes
    ----------
    float_formats : tuple of str
        Configured floating-point formats.
    main : OperandFormat or None
        Form of a row's first, or only, element.
    second : OperandFormat or None
        Form of a row's second element in pairs (N5); None where no such pair is configured.
    has_quarter, has_integer, has_transpose : bool
        Whether fp32 (N4), int8 (N13) and transpose (N14) are configured.
    adder_stages : int
        Cycles that a running sum spends in a row: 2, or 3 with a register between alignment and addition.
    weight : StructLayout
        A weight register: ``main`` and ``second``, or ``raw`` bits for integers and transposes.
    moving : StructLayout
        The moving register: the same, but with fp32 only one half of the significand at a time, and ``control``.
    term : StructLayout
        What a row adds to the running sum: an exact ``product``, or ``raw`` bits, with ``control``.
    """

    def __init__(self, core):
        self.float_formats = tuple(name for name in core.formats if name != "int8")
        second_formats = [name for name in core.pair_formats if name != "int8"]
        self.main = OperandFormat(self.float_formats) if self.float_formats else None
        self.second = OperandFormat(second_formats) if second_formats else None
        self.has_quarter = "fp32" in core.formats
        self.has_integer = "int8" in core.formats
        self.has_transpose = core.transpose
        self.adder_stages = core.adder_stages
        self.raw_bits = max([2 * PAIR_ELEMENT_BITS] * self.has_integer
                            + [FORMATS[name].width for name in core.formats] * self.has_transpose, default=0)
        self.weight = self._operands(self.main and self.main.layout, self.raw_bits)
        self.moving = self._moving()
        self.term = self._term()

    @property
    def product_latency(self):
        """Cycles from a moving register to the term register: 2 where pairs are summed or fp32 gathered, else 1."""
        return 2 if self.second or self.has_quarter else 1

    def _operands(self, main, raw_bits):
        """An element, or two, seen as numbers or as raw bits in the same place."""
        numbers = {}
        if main is not None:
            numbers["main"] = main
        if self.second:
            numbers["second"] = self.second.layout
        views = {}
        if numbers:
            views["numbers"] = data.StructLayout(numbers)
        if raw_bits:
            views["raw"] = raw_bits
        return data.UnionLayout(views)

    def _control(self):
        """Bits that choose among what is configured; they travel with the moving operand and the term."""
        fields = {}
        if self.second:
            fields["paired"] = 1
        if self.has_integer and self.float_formats:
            fields["integer"] = 1
        if self.has_transpose:
            fields |= {"transpose": 1, "selected": 1}
        return fields

    def _moving(self):
        main = self.main and (chunk_layout(self.main) if self.has_quarter else self.main.layout)
        control = {"swap": 1, **self._control()}
        if self.has_quarter:
            control["step"] = pass_layout
        return data.StructLayout({
            "operand": self._operands(main, 2 * PAIR_ELEMENT_BITS if self.has_integer else 0),
            "control": data.StructLayout(control),
        })

    def _term(self):
        views = {}
        if self.main:
            fraction = 2 * self.main.fraction_bits
            views["product"] = product_layout(max(fraction, SUM_FRACTION_BITS) if self.second else fraction)
        if self.has_integer:
            views["integer"] = 17
        if self.has_transpose:
            views["raw"] = self.raw_bits
        control = {name: width for name, width in self._control().items() if name != "paired"}
        return data.StructLayout({"value": data.UnionLayout(views), "control": data.StructLayout(control)})
