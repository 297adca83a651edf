"""The pyverilator object: peek, poke and sweep."""

import os

from hdl.emit import emit
from sim.interactive import interactive
from tests.sim_designs import Adder


def test_peek_poke_and_sweep(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = interactive(emit(Adder()))
    model.io.rst = 1
    model.clock.tick()
    model.io.rst = 0
    for a in (0, 1, 0xFFFF):
        model.io.a = a
        model.io.b = 0xFFFF
        assert model.io["the__total"] == (0 if a == 0 else before)
        model.clock.tick()
        before = a + 0xFFFF
        assert model.io.the__total == before
    model.io.wide = 1 << 99
    model.clock.tick()
    assert model.io.inverse == (1 << 99) - 1
    assert os.listdir(tmp_path) == []  # it builds elsewhere
