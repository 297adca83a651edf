"""sim/utilisation.py: small and ragged products are exact, and quicker than the model that others use."""

import json

import pytest

from sim import utilisation
from sim.tensor import TensorDriver
from sim.utilisation import CONFIG, PRODUCTS, SCALE_SIM, SETTINGS, measure
from spec.presets import configure

LONGEST = (256, 256, 256)


@pytest.fixture(scope="module")
def driver():
    return TensorDriver(configure(CONFIG, SETTINGS).chip.core)


def check(rows, products):
    assert [(row["n"], row["m"], row["k"]) for row in rows] == list(products)
    for row in rows:
        n, m, k = row["n"], row["m"], row["k"]
        assert row["mismatches"] == 0 and row["bits_compared"] == 32 * n * m
        assert row["use"] == pytest.approx(n * m * k / (16 * 16 * row["cycles"]))
        if row["scale_sim_use"] is not None:
            assert row["scale_sim_use"] < row["use"] < 1


def test_products_are_exact_and_use_more_than_scale_sim(driver):
    products = [product for product in PRODUCTS if product != LONGEST]
    check(measure(driver, products), products)


@pytest.mark.long
def test_the_longest_product_too(driver):
    check(measure(driver, [LONGEST]), [LONGEST])


def test_a_figure_to_compare_with_belongs_to_a_product():
    assert SCALE_SIM.keys() <= set(PRODUCTS)


def test_measuring_repeats(driver):
    assert measure(driver, PRODUCTS[:4]) == measure(driver, PRODUCTS[:4])


@pytest.mark.parametrize(("mismatches", "status"), [(0, 0), (2, 1)])
def test_the_command_reports_and_fails_on_a_mismatch(monkeypatch, tmp_path, capsys, driver, mismatches, status):
    rows = [{"n": 1, "m": 1, "k": 1, "cycles": 50, "use": 0.5, "scale_sim_use": None, "bits_compared": 32,
             "mismatches": mismatches}]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(utilisation, "TensorDriver", lambda core: driver)
    monkeypatch.setattr(utilisation, "measure", lambda driver: rows)
    assert utilisation.main({}) == status
    report = json.loads((tmp_path / "build" / "reports" / "utilisation.json").read_text())
    assert report["products"] == rows and report["mismatches"] == mismatches and report["bits_compared"] == 32
    assert "16 x 16 processing elements" in capsys.readouterr().out
