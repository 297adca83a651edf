# amaranth: UnusedElaboratable=no
"""Arithmetic blocks refuse to be built for what they cannot do, and say what they can."""

import pytest

from hdl.arith.checks import checked_formats
from hdl.arith.encode import Encode
from hdl.arith.exact_product import ExactProduct
from hdl.arith.layouts import OperandFormat
from hdl.arith.multiply import Multiply
from hdl.arith.normalize_round import NormalizeRound
from hdl.arith.quarter_product import QuarterProduct
from hdl.arith.recode_integer import RecodeInteger

FP32, FP16 = OperandFormat(["fp32"]), OperandFormat(["fp16"])


def test_formats_are_sorted_and_counted_once():
    assert checked_formats("Formats", ["bf16", "fp32", "bf16"]) == ("fp32", "bf16")
    assert checked_formats("Formats", {"int8"}, ("fp32", "int8")) == ("int8",)


@pytest.mark.parametrize(("build", "error", "message"), [
    (lambda: OperandFormat(["int8"]), ValueError, "Formats must be among fp32, .* or fp8_e4m3fn, not 'int8'"),
    (lambda: OperandFormat([]), ValueError, "Formats must name at least one of fp32, .* or fp8_e4m3fn"),
    (lambda: RecodeInteger(["bf16"], FP32), ValueError, "Formats must be among int8, .* or uint32, not 'bf16'"),
    (lambda: RecodeInteger("int8", FP32), TypeError, "Formats must be a collection of format names, not 'int8'"),
    (lambda: RecodeInteger(["int8"], FP16), ValueError, "Operand must have 9 exponent bits, not 6"),
    (lambda: Encode(["fp4"], FP32), ValueError, "Formats must be among fp32, .* or uint32, not 'fp4'"),
    (lambda: Encode([], FP32), ValueError, "Formats must name at least one of fp32"),
    (lambda: ExactProduct(FP32, FP16), ValueError, "Exponents must be equally wide, not 9 and 6 bits"),
    (lambda: Multiply(latency=2), ValueError, "Latency must be 1 or 3, not 2"),
    (lambda: NormalizeRound(27), ValueError, "Window must be at least 28 bits, not 27"),
    (lambda: QuarterProduct(FP16), ValueError, "Operand must have 23 fraction bits, not 10"),
])
def test_what_a_block_cannot_do_is_rejected(build, error, message):
    with pytest.raises(error, match=message):
        build()
