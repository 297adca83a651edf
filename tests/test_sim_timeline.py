"""sim/timeline.py: spans of streams, waits and transfers agree with what the core counted, and the file opens as a trace."""

import json

import numpy as np
import pytest

from sim.checked import random_operands
from sim.core import CoreDriver, build_core
from sim.matmul_plan import Product
from sim.matmul_program import MatmulProgram
from spec.assembly import assemble
from spec.dma import DESCRIPTOR_BYTES
from spec.isa import INSTRUCTION_BYTES
from spec.presets import configure
from spec.tensor import Matmul

NANO = configure("nano").chip.core
FORM = Matmul("bf16", "bf16")


@pytest.fixture(scope="module")
def recorded():
    product = Product(10, 30, 17, FORM)
    program = MatmulProgram(NANO, [product])
    driver = CoreDriver(NANO, program.end, latency=(20, 40))
    program.load(driver)
    program.put(driver, 0, *random_operands(np.random.default_rng(1), FORM, 17, 10, 30))
    driver.clear_counters()
    with driver.timeline() as timeline:
        program.start(driver)
        driver.run()
    return driver, program, timeline


def lasted(timeline, track, name=None):
    return sum(span["end"] - span["begin"] for span in timeline.spans if span["track"] == track and name in (None, span["name"]))


def test_the_tensor_engine_s_spans_are_its_counters(recorded):
    driver, _, timeline = recorded
    counters = driver.counters
    assert lasted(timeline, "multiplying") == counters["multiplying"] and lasted(timeline, "loading") == counters["loading"]
    instructions = [span for span in timeline.spans if span["track"] == "tensor" and not span["name"].startswith("wait")]
    waits = sum(span["end"] - span["begin"] for span in timeline.spans
                if span["track"] == "tensor" and span["name"].startswith("wait"))
    # The counter has the cycle in which an instruction without waits is looked at for some.
    assert waits + sum("wait" not in span["text"] for span in instructions) == counters["waiting"]


def test_every_transfer_has_its_span(recorded):
    _, program, timeline = recorded
    moves = [span for span in timeline.spans if span["track"].startswith("dma")]
    assert len(moves) == len(program.descriptors) // DESCRIPTOR_BYTES
    assert {span["name"] for span in moves} == {"memory to sbuf", "psum to memory"}
    assert "bf16 to bf16" in moves[0]["text"]


def test_spans_of_a_track_lie_beside_or_within_each_other(recorded):
    timeline = recorded[2]
    for track in {span["track"] for span in timeline.spans}:
        open_until = []
        for span in sorted((span for span in timeline.spans if span["track"] == track), key=lambda s: (s["begin"], -s["end"])):
            assert timeline.begin <= span["begin"] < span["end"] <= timeline.end
            while open_until and open_until[-1] <= span["begin"]:
                open_until.pop()
            assert not open_until or span["end"] <= open_until[-1]
            open_until.append(span["end"])


def test_streams_show_their_instructions_in_order(recorded):
    _, _, timeline = recorded
    spans = [span for span in timeline.spans if span["track"] == "gpsimd" and not span["name"].startswith("wait")]
    assert [span["name"] for span in spans] == ["dma_start", "nop", "halt"]
    waits = [span for span in timeline.spans if span["track"] == "gpsimd" and span["name"].startswith("wait")]
    assert [span["name"] for span in waits] == ["wait s2>=1", "wait s4==3"]


def test_the_file_is_a_trace(recorded, tmp_path):
    driver, _, timeline = recorded
    trace = json.loads(timeline.write(tmp_path / "new" / "trace.json").read_text())
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert len(events) == len(timeline.spans) and all(event["dur"] > 0 <= event["ts"] for event in events)
    named = [event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "thread_name"]
    assert named == ["tensor", "vector", "scalar", "gpsimd", "sync", "dma_0", "multiplying", "loading", "vector_busy"]


def test_what_is_no_instruction_is_said(recorded):
    driver = CoreDriver(NANO, 1 << 12, model=build_core(NANO))
    program = assemble("nop")
    driver.memory[:len(program)] = np.frombuffer(program, np.uint8)
    driver.memory[INSTRUCTION_BYTES:2 * INSTRUCTION_BYTES] = 0xFF
    with driver.timeline() as timeline:
        driver.start("sync", 0)
        driver.run()
    assert [span["name"] for span in timeline.spans] == ["nop", "illegal"] and "sync" in driver.failures


def test_changes_are_those_of_the_port(recorded):
    """Against the port read in every cycle."""
    model = build_core(NANO)
    driver = CoreDriver(NANO, 1 << 12, model=model)
    program = assemble("nop\nmove r1, 3\nhalt")
    driver.memory[:len(program)] = np.frombuffer(program, np.uint8)
    with model.changes("activity") as changes:
        driver.start("sync", 0)
        first = model.cycle
        seen = model.vectors({}, ["activity"], 200)["activity"]
    values = [int.from_bytes(row, "little") for row in seen]
    expected = [(first + index, value) for index, value in enumerate(values) if index and value != values[index - 1]]
    assert [(cycle, value) for cycle, value in zip(changes.cycles.tolist(), changes.values) if cycle > first] == expected
    assert changes.end == first + 200 and len(expected) > 3
