# amaranth: UnusedElaboratable=no
"""hdl/control: sequencers and semaphores against the golden core, with late memory, resets and illegal programs."""

import numpy as np
import pytest

from golden.core import Core, OutOfInstructions
from hdl.control.semaphores import Semaphores
from spec.assembly import assemble, disassemble
from spec.isa import INSTRUCTION_BYTES, OPCODES, Cause, Instruction, Update, Wait, encode
from spec.memory import ADDRESS_BITS
from spec.presets import configure
from tests.control_bench import PROGRAM_INSTRUCTIONS, STREAMS, machine

NANO = configure("nano").chip.core
MOST_INSTRUCTIONS = 150  # so many end within the cycles that the hardware is given
HALF = PROGRAM_INSTRUCTIONS // 2
STARTS = {"tensor": 0, "sync": HALF * INSTRUCTION_BYTES}
SHARED = {"tensor": range(0, 4), "sync": range(4, 8)}
"""Semaphores that one stream counts up and the other waits for; from 16 on each stream has some of its own."""
PRIVATE = {"tensor": range(16, 20), "sync": range(20, 24)}


def random_instruction(rng, name, position, length, alone):
    """A control instruction whose effect does not depend on when the other stream comes by, or whether it does."""
    other = STREAMS[1 - STREAMS.index(name)]
    opcode = rng.choice(["nop", "move", "add", "branch"], p=[0.3, 0.2, 0.3, 0.2])
    value = int(rng.choice([rng.integers(-3, 4), rng.integers(-2**31, 2**31)]))
    fields = {"target": int(rng.integers(8)), "left": int(rng.integers(8)), "comparison": int(rng.integers(6)),
              "is_register": 0, "right": value, "distance": int(rng.integers(1, length - position + 1))}
    if rng.random() < 0.5:
        fields |= {"is_register": 1, "right": int(rng.integers(8))}
    fields = {field: fields[field] for field, _, _ in OPCODES[opcode].fields}
    waits, updates = [], []
    if not alone and rng.random() < 0.15:
        waits.append(Wait(int(rng.choice(SHARED[other])), ">=", int(rng.integers(0, 3))))
    for _ in range(rng.integers(0, 3 - len(waits))):
        waits.append(Wait(int(rng.choice(PRIVATE[name])), str(rng.choice(["!=", "<=", "<"])), int(rng.integers(40_000, 65_536))))
    for _ in range(rng.integers(0, 3)):
        if rng.random() < 0.5:
            updates.append(Update(int(rng.choice(SHARED[name])), "+=", int(rng.integers(1, 4))))
        else:
            updates.append(Update(int(rng.choice(PRIVATE[name])), str(rng.choice(["=", "+=", "-="])), int(rng.integers(1, 1000))))
    return Instruction(str(opcode), {}, fields, tuple(waits), tuple(updates), bool(rng.random() < 0.2))


def random_program(rng, illegal=False):
    """A program for each stream, at the addresses of :data:`STARTS`; ``illegal`` flips a few bits.

    A flipped bit may name another semaphore, and the end then depends on which stream is the faster; an illegal program is
    for one stream alone.
    """
    content = bytearray()
    for name in STREAMS:
        length = int(rng.integers(4, HALF))
        stream = [encode(random_instruction(rng, name, position, length, illegal)) for position in range(length)]
        stream.append(encode(Instruction("halt")))
        content += b"".join(stream).ljust(HALF * INSTRUCTION_BYTES, b"\0")
    if illegal:
        for _ in range(int(rng.integers(1, 4))):
            bit = int(rng.integers(0, 8 * len(content)))
            if rng.random() < 0.3:  # in an opcode
                bit = bit // (8 * INSTRUCTION_BYTES) * 8 * INSTRUCTION_BYTES + bit % 8
            content[bit // 8] ^= 1 << bit % 8
    return bytes(content)


def golden_state(program, starts=STARTS):
    core = Core(NANO, bytearray(program))
    for name, address in starts.items():
        core.start(name, address)
    core.run(limit=MOST_INSTRUCTIONS)
    state = {"semaphores": core.semaphores, "interrupts": core.interrupts}
    for name in STREAMS:
        stream = core.streams[name]
        state[name] = (stream.registers.values, stream.running, stream.address % (1 << ADDRESS_BITS),
                       int(stream.failure.cause) if stream.failure else 0)
    return state


def hardware_state(unit, program, rng, stall, starts=STARTS):
    unit.load(program)
    # Whatever the sequencer does not execute is refused, as the golden core does with what it has no engine for.
    seen = unit.run(starts, 9000, stall, rng, engine=int(Cause.ILLEGAL_OPCODE))
    state = {"semaphores": unit.semaphores().tolist(),
             "interrupts": sum(int(seen[f"interrupt_{name}"].sum()) for name in STREAMS)}
    for name in STREAMS:
        assert (seen[f"address_{name}"][-300:] == seen[f"address_{name}"][-1]).all(), "still going on after 9000 cycles"
        state[name] = (unit.registers(name).tolist(), bool(seen[f"running_{name}"][-1]), int(seen[f"address_{name}"][-1]),
                       int(seen[f"cause_{name}"][-1]))
    return state


@pytest.mark.parametrize("programs", [60, pytest.param(2000, marks=pytest.mark.long)])
@pytest.mark.parametrize("illegal", [False, True], ids=["legal", "illegal"])
def test_random_programs_end_as_in_golden(rng, programs, illegal):
    unit, ends, compared = machine(), set(), 0
    for number in range(programs):
        program = random_program(rng, illegal)
        name = STREAMS[number // 2 % 2]
        starts = {name: STARTS[name]} if illegal else STARTS
        try:
            expected = golden_state(program, starts)
        except OutOfInstructions:  # a flipped branch goes back for ever
            continue
        got = hardware_state(unit, program, rng, (0.0, 0.3)[number % 2], starts)
        compared += 1
        ends |= {("cause", expected[name][3]) for name in STREAMS} | {("waits", expected[name][1]) for name in STREAMS}
        assert got == expected, "program:\n" + (program.hex() if illegal else disassemble(program))
    assert ("waits", True) in ends and ("waits", False) in ends, "no program waited for ever, or none ended"
    assert compared >= (0.8 if illegal else 1) * programs
    if illegal:
        assert {("cause", Cause.ILLEGAL_OPCODE), ("cause", Cause.ILLEGAL_FIELD)} <= ends


def test_the_comparison_fails_for_another_program(rng):
    program = assemble("add r1, r1, 1 ; then s3+=2\nhalt").ljust(HALF * INSTRUCTION_BYTES, b"\0") + assemble("halt")
    other = program.replace(encode(Instruction("halt")), encode(Instruction("nop")), 1)
    assert hardware_state(machine(), program, rng, 0.0) == golden_state(program) != golden_state(other)


@pytest.mark.parametrize(("text", "cycles"), [
    ("nop", 21), ("add r1, r1, 1", 21), ("nop ; wait s1==0", 22), ("nop ; then s1=1", 21),
    ("nop ; wait s1==0, s2==0, s3==0 ; then s4=1, s5=2", 24)])
def test_latency(text, cycles):
    """Sixteen words are gathered; then check, wait, execute, retire, and whether to go on."""
    unit = machine()
    unit.load(assemble(f"{text}\n{text}\nhalt"))
    seen = unit.run({"tensor": 0}, 120)
    first, second = (int(np.flatnonzero(seen["address_tensor"] == count * INSTRUCTION_BYTES)[0]) for count in (1, 2))
    assert second - first == cycles


def test_an_engine_gets_the_instruction_and_its_offset():
    unit = machine()
    unit.load(assemble("move r5, -24\nload_stationary stationary=sbuf[0+4, 1000+r5, bf16, 1*4] ; then s9=7\nhalt"))
    seen = unit.run({"tensor": 0}, 120, finish_tensor=[90])
    (cycle,) = np.flatnonzero(seen["issued_tensor"])
    assert seen["opcode_tensor"][cycle] == OPCODES["load_stationary"].code and seen["offset_tensor"][cycle] == 976
    assert unit.semaphores()[9] == 7 and not seen["running_tensor"][-1]


def test_an_engine_that_refuses_stops_its_stream_alone():
    unit = machine()
    unit.load(assemble("load_stationary stationary=sbuf[0+4, 0, bf16, 1*4] ; then s9=7\nhalt")
              .ljust(HALF * INSTRUCTION_BYTES, b"\0") + assemble("nop ; then s10=1\nnop ; then s10+=1\nhalt"))
    seen = unit.run(STARTS, 160, engine=int(Cause.ADDRESS_RANGE))
    assert (seen["cause_tensor"][-1], seen["address_tensor"][-1]) == (Cause.ADDRESS_RANGE, 0)
    assert seen["cause_sync"][-1] == 0 and list(unit.semaphores()[9:11]) == [0, 2]


LOAD = "load_stationary stationary=sbuf[0+4, 0, bf16, 1*4]"


def test_a_stream_goes_on_while_its_engine_works():
    """Updates stay in order; a wait is held while an instruction under way will change its semaphore; the rest is not."""
    unit = machine()
    unit.load(assemble(f"{LOAD} ; then s1+=1\nadd r1, r1, 7 ; then s2+=1\nnop ; wait s3==0\nnop ; wait s1==1\n"
                       "move r2, 9\nhalt"))
    unit.run({"tensor": 0}, 250)
    assert unit.registers("tensor")[1] == 7 and unit.registers("tensor")[2] == 0 and not unit.semaphores().any()
    assert unit.model.peek("address_tensor") == 3 * INSTRUCTION_BYTES
    seen = unit.run({}, 150, finish_tensor=[3])
    assert unit.registers("tensor")[2] == 9 and list(unit.semaphores()[1:3]) == [1, 1] and not seen["running_tensor"][-1]


def test_a_refused_instruction_waits_for_those_before_it():
    unit = machine()
    unit.load(assemble(f"{LOAD} ; then s1+=1\nmove r1, r1") + bytes([0xFF]) * INSTRUCTION_BYTES)
    seen = unit.run({"tensor": 0}, 200)
    assert seen["running_tensor"][-1] and not unit.semaphores()[1]
    seen = unit.run({}, 10, finish_tensor=[0])
    assert (seen["cause_tensor"][-1], seen["address_tensor"][-1]) == (Cause.ILLEGAL_OPCODE, 2 * INSTRUCTION_BYTES)
    assert unit.semaphores()[1] == 1


def test_breakpoint_step_resume_and_halt():
    unit = machine()
    unit.load(assemble("".join("add r1, r1, 1\n" for _ in range(5)) + "again: branch r0 == 0, again"))

    def standing(seen):
        return int(seen["address_sync"][-1]) // INSTRUCTION_BYTES, bool(seen["running_sync"][-1]), int(seen["stopped_sync"].sum())

    every = range(10_000)
    assert standing(unit.run({"sync": 0}, 200, breakpoint_sync=every)) == (2, False, 1)
    assert standing(unit.run({}, 100, step_sync=[0], breakpoint_sync=every)) == (3, False, 1)
    assert standing(unit.run({}, 100, step_sync=[0])) == (4, False, 1)
    assert standing(unit.run({}, 300, resume_sync=[0])) == (5, True, 0)
    assert standing(unit.run({}, 100, halt_sync=[50])) == (5, False, 1)
    assert unit.registers("sync")[1] == 5


def test_halt_ends_a_wait_which_is_looked_at_again():
    unit = machine()
    unit.load(assemble("nop ; wait s1==1 ; then s2=5\nhalt").ljust(HALF * INSTRUCTION_BYTES, b"\0")
              + assemble("nop ; then s1=1\nhalt"))
    seen = unit.run({"tensor": 0}, 100, halt_tensor=[80])
    assert not seen["running_tensor"][-1] and seen["address_tensor"][-1] == 0
    unit.run({"sync": STARTS["sync"]}, 100)
    seen = unit.run({}, 150, resume_tensor=[0])
    assert unit.semaphores()[2] == 5 and seen["cause_tensor"][-1] == 0


def test_both_streams_get_their_turn():
    """Two streams that do nothing but update never wait more than a cycle for each other."""
    unit = machine()
    loop = "again: nop ; then s{0}+=1, s{0}+=1\nbranch r0 == 0, again\n"
    unit.load(assemble(loop.format(1)).ljust(HALF * INSTRUCTION_BYTES, b"\0") + assemble(loop.format(2)))
    unit.run(STARTS, 4000)
    first, second = map(int, unit.semaphores()[1:3])
    assert first > 50 and abs(first - second) <= 4


def test_reset_in_mid_run(rng):
    """Whatever was under way, registers and semaphores are zero after reset and the next program runs as the first."""
    unit = machine()
    for cycles in range(2, 120, 9):
        program = random_program(rng)
        unit.load(program)
        unit.run(STARTS, cycles)
        unit.model.reset()
        assert not unit.semaphores().any() and not unit.registers("sync").any()
        assert hardware_state(unit, program, rng, 0.2) == golden_state(program)


def test_semaphores_without_a_port_are_rejected():
    with pytest.raises(ValueError, match="^Ports must be at least 1, not 0"):
        Semaphores(0)
