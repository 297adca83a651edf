"""Configurations: presets as the published parts have them, overrides, and every refusal word for word."""

import pytest

from spec.errors import SpecError
from spec.presets import PRESETS, configure


@pytest.mark.parametrize("settings, message", [
    ("rows=12", "rows: 12 is not allowed; allowed: a multiple of the tile, 8, up to 1024"),
    ("cols=0", "cols: 0 is not allowed; allowed: a whole number from 1 to 1024"),
    ("cols=4096", "cols: 4096 is not allowed; allowed: a whole number from 1 to 1024"),
    ("rows=eight", "rows: 'eight' is not allowed; allowed: a whole number"),
    ("tile=3", "tile: 3 is not allowed; allowed: 2, 4, 8 or 16"),
    ("formats=bf17", "formats: 'bf17' is not allowed; allowed: fp32, tf32, bf16, fp16, fp8_e5m2, fp8_e4m3, fp8_e3m4, "
                     "fp8_e4m3fn, int8, fp8 or all"),
    ("formats=", "formats: () is not allowed; allowed: at least one of fp32, tf32, bf16, fp16, fp8_e5m2, fp8_e4m3, "
                 "fp8_e3m4, fp8_e4m3fn or int8"),
    ("fp8_pairs=maybe", "fp8_pairs: 'maybe' is not allowed; allowed: true or false"),
    ("adder_stages=4", "adder_stages: 4 is not allowed; allowed: a whole number from 2 to 3"),
    ("sbuf_kib=0", "sbuf_kib: 0 is not allowed; allowed: a whole number from 1 to 1024"),
    ("psum_banks=6", "psum_banks: 6 is not allowed; allowed: a power of two from 2 to 16"),
    ("psum_bank_bytes=1000", "psum_bank_bytes: 1000 is not allowed; allowed: a power of two from 16 to 16384"),
    ("rows=128 psum_bank_bytes=256", "psum_bank_bytes: 256 is not allowed; allowed: at least 512, a row of 128 words "
                                     "of 4 bytes"),
    ("tensor_clock_ghz=0", "tensor_clock_ghz: 0.0 is not allowed; allowed: a number above 0, up to 10"),
    ("tensor_clock_ghz=fast", "tensor_clock_ghz: 'fast' is not allowed; allowed: a number"),
    ("cores=0", "cores: 0 is not allowed; allowed: a whole number from 1 to 64"),
    ("link_ports=9", "link_ports: 9 is not allowed; allowed: a whole number from 0 to 8"),
    ("fused_off=2", "fused_off: 2 is not allowed; allowed: a whole number from 0 to 1"),
    ("fused_off=0,1", "fused_off: (0, 1) is not allowed; allowed: different cores, at most 1 of 2"),
    ("fused_off=a", "fused_off: 'a' is not allowed; allowed: whole numbers joined by commas"),
    ("chips=0", "chips: 0 is not allowed; allowed: a whole number from 1 to 4096"),
    ("topology=star", "topology: 'star' is not allowed; allowed: ring or torus"),
    ("colour=red", "SET: 'colour' is not allowed; allowed: adder_stages, chips, cols, cores, formats, fp8_pairs, fused_off, "
                   "link_ports, parity, psum_bank_bytes, psum_banks, rows, sbuf_banks, sbuf_kib, tensor_clock_ghz, tile, topology "
                   "or transpose"),
    ("rows", "SET: 'rows' is not allowed; allowed: pairs such as \"rows=64 formats=bf16,fp16\""),
    ("rows=8 rows=16", "SET: 'rows=16' is not allowed; allowed: rows once"),
])
def test_settings_are_refused(settings, message):
    with pytest.raises(SpecError) as refused:
        configure("mini", settings)
    assert str(refused.value) == message


def test_an_unknown_preset_is_refused():
    with pytest.raises(SpecError) as refused:
        configure("trn9")
    assert str(refused.value) == ("CONFIG: 'trn9' is not allowed; allowed: nano, mini, small, inf1, trn1, inf2 or trn2")


def test_settings_override_every_level():
    system = configure("trn2", "rows=64 cores=4 fused_off=1 chips=16 formats=fp8,bf16 transpose=no")
    core = system.chip.core
    assert (core.rows, core.cols, system.chip.cores, system.chip.fused_off, system.chips) == (64, 128, 4, (1,), 16)
    assert core.formats == ("bf16", "fp8_e5m2", "fp8_e4m3", "fp8_e3m4")
    assert not core.transpose


@pytest.mark.parametrize("preset, tflops", [("inf1", 16), ("trn1", 92), ("inf2", 92), ("trn2", 79)])
def test_presets_have_the_published_peak(preset, tflops):
    """16-bit TFLOPS of one core as AWS publishes them, to the nearest."""
    core = PRESETS[preset].chip.core
    assert round(2 * core.rows * core.cols * core.tensor_clock_ghz / 1000) == tflops


@pytest.mark.parametrize("preset, bytes_per_cycle", [("mini", 8), ("small", 32), ("trn2", 128)])
def test_memory_bandwidth_follows_the_rows(preset, bytes_per_cycle):
    assert PRESETS[preset].chip.core.memory_bytes_per_cycle == bytes_per_cycle


@pytest.mark.parametrize("settings, bits", [
    ("formats=fp8_e4m3 fp8_pairs=no", 8), ("formats=fp8_e4m3", 16), ("formats=int8", 16), ("formats=bf16", 16),
    ("formats=tf32", 32), ("formats=bf16,fp32", 32),
])
def test_slots_hold_the_widest_operand(settings, bits):
    assert configure("mini", settings).chip.core.slot_bits == bits
