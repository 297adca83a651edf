# amaranth: UnusedElaboratable=no
"""hdl/arith/recode.py and leading_zeros.py: every value kept, every class right."""

import numpy as np
import pytest

from golden.formats import decode, storage_dtype
from hdl.arith.layouts import OperandFormat
from hdl.arith.recode import Recode
from spec.formats import FLOAT_FORMATS, FORMAT_CODES
from tests.arith_bench import RECODES, assert_same, small_blocks
from tests.corners import random_bits, special_bits

CASES = [(block, name) for block, (formats, _) in RECODES.items() for name in formats]


def patterns(rng, name):
    """All of a narrow format; corners and random ones of a wide one."""
    if FLOAT_FORMATS[name].width <= 16:
        return np.arange(1 << FLOAT_FORMATS[name].width).astype(storage_dtype(name))
    return np.concatenate([special_bits(name), random_bits(rng, name, 200_000)])


def expected_operand(values, operand):
    """The operand that stands for float32 ``values``, from their significand and exponent."""
    significand, exponent = np.frexp(np.abs(np.where(np.isfinite(values), values, 0)).astype(np.float64))
    fraction = np.ldexp(significand, operand.fraction_bits + 1).astype(np.int64) & ((1 << operand.fraction_bits) - 1)
    code = np.where(significand == 0, 0, exponent - 1 + operand.bias)
    code = np.where(np.isinf(values), operand.infinity, np.where(np.isnan(values), operand.nan, code))
    sign = np.signbit(values) & ~np.isnan(values)
    return fraction, code, sign


@pytest.mark.parametrize(("block", "name"), CASES)
def test_every_value_is_kept(rng, block, name):
    bits = patterns(rng, name)
    operand = OperandFormat(RECODES[block][1])
    result = small_blocks()[block](latency=0, bits=bits, format=FORMAT_CODES[name])
    values = decode(bits, name)
    fraction, code, sign = expected_operand(values, operand)
    assert_same(result >> operand.fraction_bits & ((1 << operand.exponent_bits) - 1), code, bits=bits)
    is_number = np.isfinite(values)
    assert_same((result & ((1 << operand.fraction_bits) - 1))[is_number], fraction[is_number], bits=bits[is_number])
    is_signed = ~np.isnan(values)
    assert_same((result >> (operand.width - 1))[is_signed], sign[is_signed], bits=bits[is_signed])


@pytest.mark.parametrize(("block", "name"), CASES)
def test_classes_are_those_of_the_exponents_top_bits(rng, block, name):
    """000 means zero, 110 infinity, 111 NaN, and no number has such an exponent."""
    bits, operand = patterns(rng, name), OperandFormat(RECODES[block][1])
    result = small_blocks()[block](latency=0, bits=bits, format=FORMAT_CODES[name])
    top = result >> (operand.width - 4) & 7
    values = decode(bits, name)
    for code, belongs in ((0, values == 0), (6, np.isinf(values)), (7, np.isnan(values))):
        assert_same(top == code, belongs, bits=bits)


@pytest.mark.parametrize("width", [1, 2, 3, 8, 11, 16])
def test_leading_zeros_of_every_value(width):
    values = np.arange(1 << width)
    expected = [width - int(value).bit_length() for value in values]
    expected[0] = (1 << len(small_blocks()[f"zeros_{width}"].component.o)) - 1
    assert_same(small_blocks()[f"zeros_{width}"](i=values), np.array(expected), i=values)


@pytest.mark.parametrize(("formats", "operand", "error", "message"), [
    ((), ("bf16",), ValueError, "Formats must name at least one of fp32, .* or fp8_e4m3fn"),
    (("int8",), ("bf16",), ValueError, "Formats must be among fp32, .* or fp8_e4m3fn, not 'int8'"),
    ("bf16", ("bf16",), TypeError, "Formats must be a collection of format names, not 'bf16'"),
    (("bf16",), ("fp16",), ValueError, "at least 9 exponent and 7 fraction bits, not 6 and 10"),
    (("tf32",), ("bf16",), ValueError, "at least 9 exponent and 10 fraction bits, not 9 and 7"),
    (("bf16",), (), ValueError, "Formats must name at least one of fp32"),
])
def test_wrong_formats_are_rejected(formats, operand, error, message):
    with pytest.raises(error, match=message):
        Recode(formats, OperandFormat(operand))
