"""What the tensor engine refuses, word for word."""

import pytest

from spec.errors import SpecError
from spec.presets import configure
from spec.tensor import Matmul, check_matmul, check_transpose, contraction_tiles


@pytest.mark.parametrize("config, form, message", [
    ("mini", ("int8", "int8", True), "stationary: 'int8' is not allowed; allowed: fp8_e5m2 or fp8_e4m3 in pairs"),
    ("mini", ("tf32", "bf16", False), "stationary: 'tf32' is not allowed; allowed: fp32, bf16, fp16, fp8_e5m2, "
                                      "fp8_e4m3 or fp8_e3m4"),
    ("mini", ("fp32", "bf16", False), "moving: 'bf16' is not allowed; allowed: fp32 with fp32"),
    ("trn1", ("bf16", "fp32", False), "moving: 'fp32' is not allowed; allowed: tf32, bf16, fp16, fp8_e5m2, fp8_e4m3 "
                                      "or fp8_e3m4 with bf16"),
    ("nano", ("fp8_e4m3", "fp8_e4m3fn", True), "moving: 'fp8_e4m3fn' is not allowed; allowed: fp8_e5m2 or fp8_e4m3 "
                                               "with fp8_e4m3 in pairs"),
    ("mini", ("fp8_e3m4", "fp8_e4m3", True), "stationary: 'fp8_e3m4' is not allowed; allowed: fp8_e5m2 or fp8_e4m3 "
                                             "in pairs"),
    ("trn1", ("fp8_e4m3", "fp8_e4m3", True), "paired: True is not allowed; allowed: false where no format is "
                                             "configured for pairs"),
    ("inf1", ("int8", "int8", False), "paired: False is not allowed; allowed: true with int8"),
])
def test_products_are_refused(config, form, message):
    with pytest.raises(SpecError) as refused:
        check_matmul(configure(config).chip.core, Matmul(*form))
    assert str(refused.value) == message


@pytest.mark.parametrize("config, name, message", [
    ("trn1", "bf16", "transpose: True is not allowed; allowed: false where transpose is not configured"),
    ("small", "fp16", "stationary: 'fp16' is not allowed; allowed: bf16, fp8_e5m2, fp8_e4m3 or fp8_e3m4"),
])
def test_transposes_are_refused(config, name, message):
    with pytest.raises(SpecError) as refused:
        check_transpose(configure(config).chip.core, name)
    assert str(refused.value) == message


@pytest.mark.parametrize("rows, contraction, paired, pieces", [
    (8, 1, False, [(0, 1)]), (8, 8, False, [(0, 8)]), (8, 17, False, [(0, 8), (8, 16), (16, 17)]),
    (8, 17, True, [(0, 16), (16, 17)]),
])
def test_contractions_are_cut_ascending_with_the_remainder_last(rows, contraction, paired, pieces):
    assert [(piece.start, piece.stop) for piece in contraction_tiles(rows, contraction, paired)] == pieces
