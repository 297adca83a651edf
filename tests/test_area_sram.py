"""area/sram.py: the model against published macros, and a user's own."""

import pytest

from area.sram import SRAMModel, is_sram
from spec.errors import SpecError

PUBLISHED = [
    # Process, node in nm, depth, width, um2, ns; each of one port.
    ("FreePDK45, made by OpenRAM", 45, 256, 32, 14_870, 0.32),
    ("IHP SG13G2", 130, 1024, 32, 140_183, 4.33),
    ("GF180", 180, 512, 8, 209_400, 4.86),
]


@pytest.mark.parametrize("process, node, depth, width, um2, ns", PUBLISHED, ids=[row[0] for row in PUBLISHED])
def test_published_macros_are_met_within_25_percent(process, node, depth, width, um2, ns):
    model = SRAMModel(node_nm=node)
    assert model.macro_um2(depth, width, ports=1) == pytest.approx(um2, rel=0.25)
    assert model.macro_access_ns(depth, width) == pytest.approx(ns, rel=0.25)


def test_another_calibration_would_not_meet_them():
    model = SRAMModel(bit_f2=300, access_ns=0.5)
    assert any(model.macro_um2(depth, width, 1) != pytest.approx(um2, rel=0.25)
               for _, _, depth, width, um2, _ in PUBLISHED)


def test_large_memories_cost_their_bits_and_small_ones_registers():
    model = SRAMModel()
    assert model.area_um2("onc_sram_65536x64") / (65536 * 64) == pytest.approx(1.5 * 140 * 0.045**2, rel=0.02)
    assert model.area_um2("onc_sram_4x8") == 4 * 8 * model.register_bit_um2
    sizes = [model.area_um2(f"onc_sram_{depth}x32") for depth in (2, 16, 64, 256, 1024, 4096)]
    assert sizes == sorted(sizes)


def test_access_time_grows_with_size():
    times = [SRAMModel().access_ps(f"onc_sram_{depth}x32") for depth in (16, 256, 4096)]
    assert times == sorted(times) and times[1] == pytest.approx(320)


@pytest.mark.parametrize("name, yes", [("onc_sram_512x32", True), ("onc_pe", False), ("onc_sram_512x32_x", False)])
def test_a_memory_is_known_by_its_name(name, yes):
    assert is_sram(name) == yes


def test_a_users_own_memories_go_before_the_model(tmp_path):
    path = tmp_path / "sram.toml"
    path.write_text('node_nm = 28\n[[macro]]\ndepth = 512\nwidth = 32\narea_um2 = 4000\naccess_ns = 0.25\n'
                    '[[macro]]\ndepth = 16\nwidth = 32\narea_um2 = 500\n')
    model = SRAMModel.from_path(path)
    assert model.area_um2("onc_sram_512x32") == 4000 and model.access_ps("onc_sram_512x32") == 250
    assert model.area_um2("onc_sram_16x32") == 500
    assert model.access_ps("onc_sram_16x32") == SRAMModel(node_nm=28).access_ps("onc_sram_16x32")


@pytest.mark.parametrize("text, message", [
    ("volume = 3", "SRAM: 'volume' is not allowed; allowed: node_nm, bit_f2"),
    ("node_nm = -45", "node_nm: -45 is not allowed; allowed: a number above 0"),
    ("node_nm = true", "node_nm: True is not allowed"),
    ("macro = 3", "macro: 3 is not allowed; allowed: tables"),
    ("[[macro]]\ndepth = 512\nwidth = 32", "macro: .* allowed: depth, width, and area_um2 or access_ns or both"),
    ("[[macro]]\ndepth = 512\nwidth = 32\narea_um2 = 'big'", "macro: "),
    ("= 3", "SRAM: .*a TOML file"),
])
def test_a_table_that_makes_no_sense_is_rejected(tmp_path, text, message):
    path = tmp_path / "sram.toml"
    path.write_text(text)
    with pytest.raises(SpecError, match=message):
        SRAMModel.from_path(path)


def test_a_missing_table_is_rejected(tmp_path):
    with pytest.raises(SpecError, match="SRAM: .*a TOML file that can be read"):
        SRAMModel.from_path(tmp_path / "none.toml")
