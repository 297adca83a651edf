"""The C++ loop: right results pass, wrong ones show, and no run is endless."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.emit import emit, place
from sim.cache import BuildError
from sim.errors import OutOfCycles, StreamRuleBroken
from sim.model import Model
from tests.sim_designs import Adder, Doubler, Rogue, Xor

PAYLOADS = np.random.default_rng(5).integers(0, 1 << 16, 400)


class Tile(wiring.Component):
    module_name = "sim_tile"

    def __init__(self):
        super().__init__({"a": In(16), "b": In(16), "y": Out(16)})

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.y.eq(self.a + self.b)
        return m


class Row(wiring.Component):
    """Four tiles in a row; tile n adds n."""

    module_name = "sim_row"

    def __init__(self):
        super().__init__({"a": In(16), "y": Out(16)})

    def elaborate(self, platform):
        m = Module()
        passed = self.a
        for number in range(4):
            tile = Tile()
            m.submodules[f"tile_{number}"] = place(platform, tile)
            m.d.comb += [tile.a.eq(passed), tile.b.eq(number)]
            passed = tile.y
        m.d.comb += self.y.eq(passed)
        return m


class Loop(wiring.Component):
    """Two gates in a circle, each in a module of its own, where Amaranth does not see it."""

    module_name = "sim_loop"

    def __init__(self):
        super().__init__({"a": In(8), "y": Out(8)})

    def elaborate(self, platform):
        m = Module()
        first, second = Xor(), Xor()
        m.submodules.first = place(platform, first)
        m.submodules.second = place(platform, second)
        m.d.comb += [first.a.eq(self.a), first.b.eq(second.y), second.a.eq(first.y), second.b.eq(3), self.y.eq(first.y)]
        return m


@pytest.fixture(scope="module")
def adder():
    return Model.build(emit(Adder()))


@pytest.fixture(scope="module")
def built_doubler():
    return Model.build(emit(Doubler()))


@pytest.fixture
def doubler(built_doubler):
    built_doubler.reset()
    return built_doubler


@pytest.fixture(scope="module")
def rogue():
    return Model.build(emit(Rogue()))


def double(model, fault, max_cycles=9000, **arguments):
    model.reset()
    model.poke("fault", fault)
    return model.streams({"i": PAYLOADS}, {"o": len(PAYLOADS)}, max_cycles=max_cycles, **arguments)


def sums(model, count=1000, cycles=None):
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 1 << 16, (2, count))
    return a + b, model.vectors({"a": a, "b": b}, ["the__total"], cycles)["the__total"]


def test_peek_poke_step(adder):
    adder.reset()
    before = adder.cycle
    adder.poke("a", 0xFFFF)
    adder.poke("b", 1)
    adder.poke("wide", 1 << 99)
    assert adder.peek("the__total") == 0 and adder.peek("a") == 0xFFFF
    adder.step()
    assert adder.peek("the__total") == 0x10000
    assert adder.peek("inverse") == (1 << 99) - 1
    assert adder.cycle == before + 1


def test_reset_in_the_middle_of_a_run(adder):
    adder.poke("a", 1)
    adder.step()
    assert adder.peek("the__total") != 0
    adder.reset(1)
    assert adder.peek("the__total") == 0


def test_vectors_are_read_in_the_cycle_of_their_inputs(adder):
    adder.reset()
    expected, got = sums(adder, cycles=1001)
    assert got[0] == 0
    assert (got[1:] == expected).all()


def test_vectors_of_wide_ports(adder):
    wide = np.random.default_rng(2).integers(0, 256, (500, 13), np.uint8)
    wide[:, 12] &= 15
    expected = ~wide
    expected[:, 12] &= 15
    assert (adder.vectors({"wide": wide}, ["inverse"], 501)["inverse"][1:] == expected).all()


def test_vectors_drive_reset_too(adder):
    rst = np.array([0, 0, 1, 1, 0, 0])
    got = adder.vectors({"rst": rst, "a": np.full(6, 7), "b": np.zeros(6, int)}, ["the__total"])["the__total"]
    assert list(got[1:]) == [7, 7, 0, 0, 7]


def test_combinational_design():
    model = Model.build(emit(Xor()))
    a, b = np.random.default_rng(3).integers(0, 256, (2, 100), np.uint8)
    assert (model.vectors({"a": a, "b": b}, ["y"])["y"] == a ^ b).all()
    model.reset()
    model.poke("a", 5)
    model.poke("b", 3)
    assert model.peek("y") == 6


def test_models_of_one_design_are_apart():
    emission = emit(Xor())
    first, second = Model.build(emission), Model.build(emission)
    first.poke("a", 1)
    second.poke("a", 2)
    assert (first.peek("y"), second.peek("y")) == (1, 2)


def test_vectors_are_fast(adder):
    a = np.zeros(1_000_000, np.uint16)
    began = time.perf_counter()
    adder.vectors({"a": a, "b": a}, ["the__total"])
    assert len(a) / (time.perf_counter() - began) > 500_000  # 13 million measured on an idle machine


def test_progress_is_reported(adder):
    calls = []
    sums_of = np.zeros(3000, int)
    adder.vectors({"a": sums_of}, ["the__total"], 5000, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (5000, 5000) and calls == sorted(calls)


@pytest.mark.parametrize(("inputs", "error", "message"), [
    ({"c": [1]}, KeyError, "no input 'c': it has clk, rst, a, b, wide"),
    ({"the__total": [1]}, KeyError, "no input 'the__total'"),
    ({"a": [1 << 16]}, ValueError, "a has 16 bits: its values must be 0 to 0xffff, not 0x10000"),
    ({"a": [-1]}, ValueError, "not -0x1"),
    ({"a": [0.5]}, TypeError, "needs integers in one dimension, not float64"),
    ({"a": [1, 2], "b": [1]}, ValueError, "one length, not a 2, b 1"),
    ({"wide": [1]}, TypeError, "wide of 100 bits needs uint8 rows of 13 bytes, not int64"),
    ({"wide": np.full((1, 13), 255, np.uint8)}, ValueError, "last byte of a row must be below 16, not 255"),
    ({"clk": [1]}, ValueError, "clock cannot be driven"),
])
def test_wrong_vectors_are_rejected(adder, inputs, error, message):
    with pytest.raises(error, match=message):
        adder.vectors(inputs, ["the__total"])


def test_wrong_pokes_are_rejected(adder):
    with pytest.raises(ValueError, match="Input a of 16 bits must be 0 to 0xffff, not 0x10000"):
        adder.poke("a", 1 << 16)
    with pytest.raises(KeyError, match="has no input 'the__total'"):
        adder.poke("the__total", 0)
    with pytest.raises(KeyError, match="has no port 'x'"):
        adder.peek("x")


@pytest.mark.parametrize("stall", [0.0, 0.5, {"i": 0.9}, {"o": 0.9}])
def test_streams(doubler, stall):
    payloads = np.random.default_rng(4).integers(0, 1 << 16, 2000)
    run = doubler.streams({"i": payloads}, {"o": 2000}, max_cycles=50_000, stall=stall, seed=7)
    assert run.finished and (run["o"] == 2 * payloads).all()
    assert run.transfers == {"i": 2000, "o": 2000}
    if stall == 0.0:
        assert run.first["o"] - run.first["i"] == 2
        assert run.last["o"] - run.first["o"] == 1999
        assert run.cycles == run.last["o"] + 1 - run.start
    else:
        assert run.cycles > 2500


def test_equal_seeds_give_equal_runs(doubler):
    def cycles(seed):
        doubler.reset()
        return doubler.streams({"i": np.arange(500)}, {"o": 500}, max_cycles=9000, stall=0.5, seed=seed).cycles

    assert cycles(1) == cycles(1)
    assert len({cycles(seed) for seed in range(8)}) > 1


def test_a_wrong_result_shows_in_streams(rogue):
    assert (double(rogue, Rogue.NONE)["o"] == 2 * PAYLOADS).all()
    assert (double(rogue, Rogue.WRONG)["o"] != 2 * PAYLOADS).any()


def test_a_payload_read_before_it_is_valid_shows(rogue):
    assert (double(rogue, Rogue.PEEKS, stall={"i": 0.5})["o"] != 2 * PAYLOADS).any()


@pytest.mark.parametrize(("fault", "message"), [(Rogue.DROPS, "valid dropped"), (Rogue.CHANGES, "payload changed")])
def test_a_broken_stream_rule_is_reported(rogue, fault, message):
    with pytest.raises(StreamRuleBroken,
                       match=rf"stream o of sim_rogue broke a rule in cycle \d+: {message} before ready \(seed 3\)"):
        double(rogue, fault, stall={"o": 0.9}, seed=3)
    assert (double(rogue, Rogue.NONE)["o"] == 2 * PAYLOADS).all()  # after a reset it is as good as new


def test_a_hang_is_reported_within_max_cycles(rogue):
    before = rogue.cycle
    with pytest.raises(OutOfCycles, match=rf"sim_rogue did not finish in 100 cycles \(seed 0\): i sent 3 of 400, "
                                          rf"waiting for ready since cycle {before + 4}; o collected 0 of 400, "
                                          r"waiting for valid"):
        double(rogue, Rogue.STOPS, max_cycles=100)
    assert rogue.cycle == before + 102


def test_a_partial_run_is_resumed(doubler):
    run = doubler.streams({"i": np.arange(1000)}, {"o": 1000}, max_cycles=100, stall=0.4, partial=True)
    assert not run.finished and 0 < len(run["o"]) < 100 and run.cycles == 100
    with pytest.raises(ValueError, match="resume it or reset"):
        doubler.step()
    whole = run.resume(10_000)
    assert whole.finished and (whole["o"] == 2 * np.arange(1000)).all()
    with pytest.raises(ValueError, match="This run is over"):
        run.resume(10)


def test_a_partial_run_is_given_up_by_reset(doubler):
    run = doubler.streams({"i": np.arange(1000)}, {"o": 1000}, max_cycles=100, partial=True)
    doubler.reset()
    assert not doubler.peek("o__valid") and not doubler.peek("i__valid")
    with pytest.raises(ValueError, match="This run is over"):
        run.resume(10)
    assert (doubler.streams({"i": [5]}, {"o": 1}, max_cycles=10)["o"] == [10]).all()


@pytest.mark.parametrize(("arguments", "error", "message"), [
    (({"x": [1]}, {}), KeyError, "no input stream 'x': it has i"),
    (({}, {"i": 1}), KeyError, "no output stream 'i': it has o"),
    (({"i": [1 << 16]}, {}), ValueError, "Stream i has 16 bits"),
])
def test_wrong_streams_are_rejected(doubler, arguments, error, message):
    with pytest.raises(error, match=message):
        doubler.streams(*arguments, max_cycles=1)


def test_wrong_stalls_are_rejected(doubler):
    with pytest.raises(ValueError, match="Stall of stream i must be from 0 to below 1, not 1"):
        doubler.streams({"i": [1]}, {"o": 1}, max_cycles=1, stall=1)
    with pytest.raises(KeyError, match="Stall names the stream 'x': this run has i, o"):
        doubler.streams({"i": [1]}, {"o": 1}, max_cycles=1, stall={"x": 0.5})
    doubler.step()  # nothing is left of the refused runs


def test_a_combinational_loop_is_refused():
    with pytest.raises(BuildError, match="UNOPTFLAT.*Circular combinational logic"):
        Model.build(emit(Loop()))


def test_hierarchical_modules():
    model = Model.build(emit(Row()), hierarchical=("sim_tile", "not_there"))
    a = np.arange(500)
    assert (model.vectors({"a": a}, ["y"], 504)["y"][4:] == a + 6).all()


def test_models_of_one_design_go_one_by_one():
    """Verilator keeps names in the thread's context: deleting a second model once reached into the first one's, and hung
    or crashed. In a process of its own, with a time limit."""
    script = """
from hdl.emit import emit
from sim.model import Model
from tests.test_sim_model import Row
models = [Model.build(emit(Row()), hierarchical=("sim_tile",)) for _ in range(2)]
while models:
    models.pop().step()
"""
    subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[1], check=True, timeout=60)


def test_one_row_that_numpy_gives_no_stride(adder):
    one = np.broadcast_to(np.uint16(1234), 1)
    assert adder.vectors({"a": one, "b": one}, ["the__total"], 2)["the__total"][-1] == 2468


def test_traced_model_writes_what_happened(tmp_path):
    pywellen = pytest.importorskip("pywellen")
    model = Model.build(emit(Adder()), trace=True)
    model.reset()
    with model.trace_to(tmp_path / "deep" / "adder.fst") as path:
        expected, _ = sums(model, 100)
    trace = {var.full_name: var for var in pywellen.Waveform(str(path)).all_vars()}
    changes = [value for _, value in trace["sim_adder.the__total"].tv]
    assert changes[-10:] == list(expected[-10:])


def test_tracing_needs_a_traced_build(adder, tmp_path):
    with pytest.raises(ValueError, match="build it with trace=True"):
        adder.trace_to(tmp_path / "x.fst")
