"""golden/core.py and memory.py: programs against plain numpy and Python, every refusal with its cause."""

import numpy as np
import pytest

from golden.core import Core, OutOfInstructions
from golden import formats
from golden.tensor import matmul_tiled, transpose
from spec.assembly import assemble
from spec.errors import SpecError
from spec.isa import INSTRUCTION_BYTES, Cause, Instruction, encode
from spec.presets import configure
from spec.tensor import Matmul

NANO = configure("nano").chip.core


def run(text, core=NANO, stream="tensor", prepare=lambda core: None, **options):
    """A core after it has run one program on one stream."""
    machine = Core(core, bytearray(assemble(text)))
    prepare(machine)
    machine.start(stream, 0)
    machine.blocked = machine.run(**options)
    return machine


def registers(text):
    return run(text).streams["tensor"].registers.values


@pytest.mark.parametrize(("text", "expected"), [
    ("move r1, -1\nhalt", 0xFFFF_FFFF),
    ("move r2, 5\nmove r1, r2\nhalt", 5),
    ("move r2, 2147483647\nadd r1, r2, 1\nhalt", 0x8000_0000),
    ("move r2, -7\nmove r3, 3\nadd r1, r2, r3\nhalt", 0xFFFF_FFFC),
])
def test_registers(text, expected):
    assert registers(text)[1] == expected


@pytest.mark.parametrize(("comparison", "taken"), [
    ("==", [False, True, False]), ("!=", [True, False, True]), ("<", [True, False, False]), ("<=", [True, True, False]),
    (">", [False, False, True]), (">=", [False, True, True])])
def test_branches_compare_signed(comparison, taken):
    for left, expected in zip((-5, 3, 2**31 - 1), taken):
        text = f"move r1, {left}\nbranch r1 {comparison} 3, there\nmove r2, 1\nthere: halt"
        assert (registers(text)[2] == 0) == expected


def test_a_loop_of_ten_thousand():
    machine = run("again: add r1, r1, 1 ; then s7+=1\nbranch r1 < 10000, again\nhalt")
    assert machine.streams["tensor"].registers.values[1] == machine.semaphores[7] == 10_000


def test_semaphores_order_two_streams():
    """Each stream counts on only when the other has: the semaphores say who was when."""
    machine = Core(NANO, bytearray(assemble("""\
        tensor: nop ; wait s0==0 ; then s0=1
                nop ; wait s0==2 ; then s0=3, s1-=1
                halt
        sync:   nop ; wait s0==1 ; then s0=2
                halt
    """)))
    machine.start("tensor", 0)
    machine.start("sync", 3 * INSTRUCTION_BYTES)
    assert machine.run() == []
    assert machine.semaphores[:2] == [3, 0xFFFF]


def test_a_deadlock_says_who_waits_for_what():
    machine = run("nop ; then s1=4\nnop ; wait s1>=4, s2!=0, s3>5\nhalt")
    (blocked,) = machine.blocked
    assert (blocked.stream, blocked.address, blocked.values) == ("tensor", INSTRUCTION_BYTES, (0, 0))
    assert [wait.semaphore for wait in blocked.waits] == [2, 3]


def test_an_endless_loop_is_stopped():
    with pytest.raises(OutOfInstructions, match="^More than 50 instructions; stream tensor is at address 0x80"):
        run("nop\nbranch r0 == 0, -1", limit=50)


def fill(machine, offset, elements):
    """Rows of elements into the partitions of the state buffer."""
    content = np.ascontiguousarray(elements).view(np.uint8)
    machine.memories.sbuf[:len(content), offset:offset + content.shape[1]] = content


def values(rng, shape, name="bf16"):
    return formats.encode(rng.standard_normal(shape, np.float32), name)


def test_a_contraction_in_two_tiles(rng):
    stationary, moving = values(rng, (7, 3)), values(rng, (7, 6))

    def prepare(machine):
        for tile, rows in enumerate((slice(0, 4), slice(4, 7))):
            fill(machine, 64 * tile, stationary[rows])
            fill(machine, 256 + 64 * tile, moving[rows])

    machine = run("""\
        load_stationary stationary=sbuf[0+4, 0, bf16, 1*3]
        multiply_moving moving=sbuf[0+4, 256, bf16, 1*6] result=psum[0+3, 2056, fp32, 1*6]
        move r9, 64
        load_stationary stationary=sbuf[0+3, 0+r9, bf16, 1*3]
        multiply_moving moving=sbuf[0+3, 256+r9, bf16, 1*6] result=psum[0+3, 2056, fp32, 1*6] accumulate=1 ; notify
        halt""", prepare=prepare)
    assert machine.streams["tensor"].failure is None and machine.interrupts == 1
    expected = matmul_tiled(NANO, stationary, moving, Matmul("bf16", "bf16"))
    np.testing.assert_array_equal(machine.memories.psum[:3, 514:520], expected)
    assert machine.memories.psum.astype(bool).sum() <= expected.size
    assert list(machine.memories.written) == [False, True] + 6 * [False]


@pytest.mark.parametrize("odd", [0, 1])
def test_pairs(rng, odd):
    stationary, moving = values(rng, (8 - odd, 2), "fp8_e4m3"), values(rng, (8 - odd, 3), "fp8_e4m3")

    def prepare(machine):
        machine.memories.sbuf[:] = 0x7C  # NaN: what is not there must not be read
        for offset, operand in ((0, stationary), (16, moving)):
            width = operand.shape[1]
            fill(machine, offset, operand[:4])
            fill(machine, offset + width, operand[4:])

    machine = run(f"""\
        load_stationary stationary=sbuf[0+4, 0, fp8_e4m3, 1*2, 0*1, 0*1, 2*2] paired=1 odd={odd}
        multiply_moving moving=sbuf[0+4, 16, fp8_e4m3, 1*3, 0*1, 0*1, 3*2] result=psum[0+2, 0, fp32, 1*3]
        halt""", prepare=prepare)
    assert machine.streams["tensor"].failure is None
    np.testing.assert_array_equal(machine.memories.psum[:2, :3],
                                  matmul_tiled(NANO, stationary, moving, Matmul("fp8_e4m3", "fp8_e4m3", True)))


def test_a_pattern_of_four_dimensions_and_a_negative_step(rng):
    """Columns of moving in an order that numpy's own strides describe."""
    stationary, stored = values(rng, (4, 4)), values(rng, (4, 64))

    def prepare(machine):
        fill(machine, 0, stationary)
        fill(machine, 128, stored)

    machine = run("""\
        load_stationary stationary=sbuf[0+4, 6, bf16, -1*4]
        multiply_moving moving=sbuf[0+4, 128, bf16, 16*2, 1*2, 32*2, 4*3] result=psum[0+4, 0, fp32, 1*24]
        halt""", prepare=prepare)
    assert machine.streams["tensor"].failure is None
    order = [a * 16 + b + c * 32 + d * 4 for d in range(3) for c in range(2) for b in range(2) for a in range(2)]
    expected = matmul_tiled(NANO, stationary[:, ::-1].copy(), stored[:, order], Matmul("bf16", "bf16"))
    np.testing.assert_array_equal(machine.memories.psum[:, :24], expected)


def test_transpose_and_special_results(rng):
    stationary = rng.integers(0, 1 << 16, (4, 3), np.uint16)

    def prepare(machine):
        fill(machine, 0, stationary)
        fill(machine, 64, np.full((4, 2), 0x7F80, np.uint16))
        fill(machine, 96, np.full((4, 1), 0x3F80, np.uint16))

    machine = run("""\
        load_stationary stationary=sbuf[0+4, 0, bf16, 1*3] transpose=1
        multiply_moving moving=sbuf[0+4, 0, bf16, 1*4] result=psum[0+3, 0, fp32, 1*4] ; count_special
        load_stationary stationary=sbuf[0+4, 96, bf16, 1*1]
        multiply_moving moving=sbuf[0+4, 64, bf16, 1*2] result=psum[0+1, 512, fp32, 1*2] ; count_special
        halt""", prepare=prepare)
    np.testing.assert_array_equal(machine.memories.psum[:3, :4], transpose(stationary))
    assert machine.special == 2


LOAD = "load_stationary stationary=sbuf[0+4, 0, bf16, 1*4]\n"
MOVING, RESULT = "moving=sbuf[0+4, 0, bf16, 1*2]", "result=psum[0+4, 0, fp32, 1*2]"


@pytest.mark.parametrize(("text", "cause", "index"), [
    ("nop", Cause.FETCH, 1),
    ("branch r0 == 0, -5", Cause.FETCH, -5),
    ("load_stationary stationary=psum[0+4, 0, bf16, 1*4]", Cause.ILLEGAL_FIELD, 0),
    ("load_stationary stationary=sbuf[0+4, 0, uint8, 1*4]", Cause.ILLEGAL_FIELD, 0),
    ("load_stationary stationary=sbuf[0+4, 0, bf16, 1*5]", Cause.ILLEGAL_FIELD, 0),
    ("load_stationary stationary=sbuf[0+4, 0, bf16, 1*4] odd=1", Cause.ILLEGAL_FIELD, 0),
    ("load_stationary stationary=sbuf[0+4, 0, fp8_e4m3, 1*3] paired=1", Cause.ILLEGAL_FIELD, 0),
    ("load_stationary stationary=sbuf[0+5, 0, bf16, 1*4]", Cause.PARTITION_RANGE, 0),
    ("load_stationary stationary=sbuf[4+1, 0, bf16, 1*4]", Cause.PARTITION_RANGE, 0),
    ("load_stationary stationary=sbuf[0+4, 1, bf16, 1*4]", Cause.ADDRESS_RANGE, 0),
    ("load_stationary stationary=sbuf[0+4, 4090, bf16, 1*4]", Cause.ADDRESS_RANGE, 0),
    ("load_stationary stationary=sbuf[0+4, 0, bf16, -1*2]", Cause.ADDRESS_RANGE, 0),
    ("move r1, -2\nload_stationary stationary=sbuf[0+4, 0+r1, bf16, 1*2]", Cause.ADDRESS_RANGE, 1),
    (f"multiply_moving {MOVING} {RESULT}", Cause.ILLEGAL_FIELD, 0),
    (LOAD + f"multiply_moving moving=sbuf[0+3, 0, bf16, 1*2] {RESULT}", Cause.ILLEGAL_FIELD, 1),
    (LOAD + f"multiply_moving moving=sbuf[0+4, 0, fp32, 1*2] {RESULT}", Cause.ILLEGAL_FIELD, 1),
    (LOAD + f"multiply_moving {MOVING} result=psum[0+3, 0, fp32, 1*2]", Cause.ILLEGAL_FIELD, 1),
    (LOAD + f"multiply_moving {MOVING} result=psum[0+4, 0, int32, 1*2]", Cause.ILLEGAL_FIELD, 1),
    (LOAD + f"multiply_moving {MOVING} result=psum[0+4, 0, fp32, 2*2]", Cause.ILLEGAL_FIELD, 1),
    (LOAD + f"multiply_moving {MOVING} result=sbuf[0+4, 0, fp32, 1*2]", Cause.ILLEGAL_FIELD, 1),
    (LOAD + f"multiply_moving {MOVING} result=psum[0+4, 2044, fp32, 1*2]", Cause.ADDRESS_RANGE, 1),
    (LOAD + f"multiply_moving {MOVING} result=psum[0+4, 16380, fp32, 1*2]", Cause.ADDRESS_RANGE, 1),
    (LOAD + f"multiply_moving {MOVING} {RESULT} accumulate=1", Cause.BANK_INVALID, 1),
    ("dma_start ring=0", Cause.ILLEGAL_FIELD, 0),
    ("move r1, r64", Cause.ILLEGAL_FIELD, 0),
])
def test_a_refused_instruction_stops_its_stream_and_changes_nothing(text, cause, index):
    text = "\n".join(line + " ; then s1+=1" for line in text.splitlines())
    machine = run(text)
    stream = machine.streams["tensor"]
    assert (stream.failure.cause, stream.failure.address) == (cause, index * INSTRUCTION_BYTES), stream.failure
    assert not stream.running and machine.blocked == []
    assert machine.semaphores[1] == max(index, 1 if index < 0 else 0) and not machine.memories.psum.any()


def test_a_comparison_that_is_none_is_refused():
    branch = Instruction("branch", fields={"comparison": 7})
    machine = Core(NANO, bytearray(encode(branch)))
    machine.start("sync", 0)
    machine.run()
    assert machine.streams["sync"].failure.cause == Cause.ILLEGAL_FIELD


def test_a_tensor_instruction_on_another_stream_is_refused():
    machine = run(LOAD, stream="vector")
    assert machine.streams["vector"].failure.cause == Cause.ILLEGAL_OPCODE


def test_reset_keeps_the_memories():
    machine = run("nop ; then s1=3\nhalt", prepare=lambda machine: fill(machine, 0, np.ones((4, 4), np.uint8)))
    machine.reset()
    assert machine.semaphores[1] == 0 and machine.memories.sbuf.sum() == 16


@pytest.mark.parametrize(("stream", "address", "message"), [
    ("matrix", 0, "stream: 'matrix' is not allowed; allowed: tensor, vector"), ("tensor", 4, "address: 4 is not allowed"),
    ("tensor", -128, "address: -128 is not allowed")])
def test_a_false_start_is_refused(stream, address, message):
    with pytest.raises(SpecError, match=f"^{message}"):
        Core(NANO, bytearray()).start(stream, address)
