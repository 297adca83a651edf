"""From the normalised operand form to a format's bits: round, underflow gradually, overflow or saturate."""

from amaranth import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from spec.formats import FORMAT_CODES, FORMATS, FloatFormat

from .checks import checked_formats
from .layouts import EXPONENT_BITS

__all__ = ["Encode"]


class Encode(wiring.Component):
    """Encode an operand in any of several formats, chosen at run time (rule N7); combinational.

    Every target is seen as steps of one size below its ``pivot`` exponent: a float's steps double with each exponent from
    its smallest normal one, an integer's steps stay 1 up to the highest exponent there is room for.

    Parameters
    ----------
    formats : collection of str
        Formats, floating-point and integer, that may be asked for.
    operand : OperandFormat
        The form to read.

    Members
    -------
    i : In(operand.layout)
    format : In(4)
        A code of :data:`spec.formats.FORMAT_CODES`; one outside ``formats`` gives arbitrary bits.
    saturate : In(1)
        Overflow and infinities give the largest finite number of that sign. Integers always saturate.
    o : Out(widest format)
        The element in the low bits, zeros above.

    Raises
    ------
    TypeError, ValueError
        Formats that do not exist.
    """

    def __init__(self, formats, operand):
        self._formats = [FORMATS[name] for name in checked_formats("Formats", formats)]
        self._operand = operand
        super().__init__({
            "i": In(operand.layout),
            "format": In(4),
            "saturate": In(1),
            "o": Out(max(f.width for f in self._formats)),
        })

    def elaborate(self, platform):
        m = Module()
        i, operand = self.i, self._operand
        is_zero, is_infinity, is_nan = operand.is_zero(i), operand.is_infinity(i), operand.is_nan(i)

        # The significand stands at the top of the window; shifted by ``base`` its last kept bit is the lowest.
        window = max([operand.fraction_bits + 1] + [f.fraction_bits + 1 if isinstance(f, FloatFormat) else f.width
                                                    for f in self._formats])
        base, pivot, above = Signal(range(window)), Signal(signed(EXPONENT_BITS)), Signal(signed(EXPONENT_BITS + 1))
        m.d.comb += above.eq(i.exponent - pivot)
        distance, shift = Signal(EXPONENT_BITS + 1), Signal(range(window + 2))
        m.d.comb += [
            distance.eq(base + Mux(above < 0, -above, 0)),
            shift.eq(Mux(distance > window, window + 1, distance)),
        ]
        extended, shifted = Signal(window + 1), Signal(window + 1)
        significand = Mux(is_zero, 0, Cat(i.fraction, Const(1, 1)))
        m.d.comb += [
            extended.eq(significand << (window - operand.fraction_bits)),
            shifted.eq(extended >> shift),
        ]
        half, kept = shifted[0], shifted[1:]
        rest = (extended & ((Const(1, 1) << shift) - 1)) != 0

        # The hidden bit, and a carry out of rounding, add one to a float's exponent field. Zero has no exponent, though its
        # code, in the short form, stands above the smallest ones of a long target.
        steps, magnitude = Signal(33), Signal(34)
        m.d.comb += magnitude.eq(steps + kept + (half & (rest | kept[0])))
        largest, infinity, nan = Signal(32), Signal(32), Signal(32)
        is_integer, has_infinity = Signal(), Signal()
        overflow, saturates, gives_nan = Signal(), Signal(), Signal()
        m.d.comb += [
            overflow.eq(is_infinity | (magnitude > largest) | (is_integer & (above > 0))),
            saturates.eq(self.saturate | is_integer),
            gives_nan.eq(is_nan | (overflow & ~saturates & ~has_infinity)),
        ]
        result, sign = Signal(32), Signal()
        m.d.comb += [
            result.eq(Mux(gives_nan, nan, Mux(overflow, Mux(saturates, largest, infinity), magnitude))),
            sign.eq(i.sign & ~gives_nan),
        ]

        with m.Switch(self.format):
            for f in self._formats:
                with m.Case(FORMAT_CODES[f.name]):
                    if isinstance(f, FloatFormat):
                        m.d.comb += [
                            pivot.eq(f.min_exponent + operand.bias), base.eq(window - 1 - f.fraction_bits),
                            steps.eq(Mux(is_zero | (above < 0), 0, above) << f.fraction_bits),
                            largest.eq(f.max_finite >> f.padding), nan.eq(f.nan >> f.padding),
                            infinity.eq((f.infinity or 0) >> f.padding), has_infinity.eq(f.has_infinity),
                            self.o.eq(Cat(Const(0, f.padding), result[:f.width - 1 - f.padding], sign)),
                        ]
                    else:
                        m.d.comb += [
                            is_integer.eq(1), pivot.eq(window - 1 + operand.bias), largest.eq(Mux(i.sign, -f.min, f.max)),
                            self.o.eq(Mux(sign, -result, result)[:f.width]),
                        ]
        return m
