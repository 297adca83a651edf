"""golden/vector_instructions.py: what instructions leave in the memories of a core, and the first reason for which each is refused."""

import ml_dtypes
import numpy as np
import pytest

from golden.core import Core
from spec.assembly import assemble
from spec.isa import OPCODES, Cause
from spec.presets import configure

CORE = configure("nano").chip.core
WORDS = CORE.psum_bank_words


def run(text, core=None, stream="vector"):
    """A core that has run a program; a new one with random memories where none is given."""
    if core is None:
        core = Core(CORE, bytearray(1 << 14))
        rng = np.random.default_rng(3)
        core.memories.sbuf[:] = rng.integers(0, 256, core.memories.sbuf.shape)
    program = assemble(text + "\nhalt")
    core.memory[:len(program)] = program
    core.start(stream, 0)
    core.run()
    return core


def numbers(core, at, count, dtype=np.float32):
    """Put random numbers into the state buffer of all partitions."""
    elements = np.random.default_rng(at).standard_normal((CORE.rows, count)).astype(dtype)
    core.memories.sbuf[:, at:at + elements.dtype.itemsize * count] = elements.view(np.uint8)
    return elements


def at(core, offset, count, dtype=np.float32):
    """What is in the state buffer."""
    return core.memories.sbuf[:, offset:offset + np.dtype(dtype).itemsize * count].copy().view(dtype)


@pytest.fixture
def core():
    return Core(CORE, bytearray(1 << 14))


def test_two_operators_with_scalars_in_formats_of_their_own(core):
    data = numbers(core, 0, 12, ml_dtypes.bfloat16)
    scalars = numbers(core, 64, 1)
    run("tensor_scalar data=sbuf[0+4, 0, bf16, 1*12] result=sbuf[0+4, 128, fp16, 1*12] op0=multiply op1=subtract "
        "scalar0=64 scalar0_stored=1 scalar1=0.5f reverse1=1", core)
    assert np.array_equal(at(core, 128, 12, np.float16),
                          (np.float32(0.5) - data.astype(np.float32) * scalars).astype(np.float16))


def test_operands_begin_at_any_quarter_and_walk_backwards(core):
    a, b = numbers(core, 0, 8), numbers(core, 256, 8)
    before = core.memories.sbuf.copy()
    run("tensor_tensor data=sbuf[1+2, 0, fp32, 2*4] operand=sbuf[2+2, 284, fp32, -1*4] result=sbuf[0+2, 512, fp32, 3*2, 1*2] "
        "op0=subtract", core)
    expected = a[1:3, ::2] - b[2:4, ::-1][:, :4]
    got = at(core, 512, 5)[:2]
    assert np.array_equal(got[:, [0, 3, 1, 4]], expected)
    before[:2, 512:532].view(np.float32)[:, [0, 3, 1, 4]] = expected
    assert np.array_equal(core.memories.sbuf, before)


def test_bits_stay_as_they_are():
    core = run("tensor_scalar data=sbuf[0+4, 0, int16, 1*20] result=sbuf[0+4, 100, uint16, 1*20] op0=right_shift op1=bitwise_xor "
               "scalar0=3 scalar1=0xff\n"
               "tensor_tensor data=sbuf[0+4, 0, int8, 1*20] operand=sbuf[0+4, 40, uint8, 1*20] result=sbuf[0+4, 200, int8, 1*20] "
               "op0=bitwise_and")
    data = at(core, 0, 20, np.uint16)
    assert np.array_equal(at(core, 100, 20, np.uint16), data >> 3 ^ 0xFF)
    assert np.array_equal(at(core, 200, 20, np.uint8), at(core, 0, 20, np.uint8) & at(core, 40, 20, np.uint8))


def test_copies_move_bits_or_convert(core):
    core.memories.sbuf[0, :8] = np.array([0x7FA5, 0xFFFF, 0x3F80, 0x0001], np.uint16).view(np.uint8)
    run("tensor_copy data=sbuf[0+1, 0, bf16, 1*4] result=sbuf[0+1, 16, bf16, 1*4]\n"
        "tensor_copy data=sbuf[0+1, 0, bf16, 1*4] result=sbuf[0+1, 32, fp32, 1*4]", core)
    assert at(core, 16, 4, np.uint16)[0].tolist() == [0x7FA5, 0xFFFF, 0x3F80, 0x0001]
    assert at(core, 32, 4, np.uint32)[0].tolist() == [0x7FC0_0000, 0x7FC0_0000, 0x3F80_0000, 0x0001_0000]


def test_a_predicate_chooses_what_is_copied_and_what_is_kept():
    core = run("tensor_copy_predicated data=sbuf[0+4, 0, fp16, 1*16] predicate=sbuf[0+4, 64, uint8, 1*16] "
               "result=sbuf[0+4, 128, fp16, 1*16] reverse0=1")
    fresh = run("nop")
    data, old, chosen = at(fresh, 0, 16, np.uint16), at(fresh, 128, 16, np.uint16), at(fresh, 64, 16, np.uint8) == 0
    assert np.array_equal(at(core, 128, 16, np.uint16), np.where(chosen, data, old))


def test_selections_fill_in_what_they_do_not_take(core):
    data = numbers(core, 0, 12)
    core.memories.sbuf[:, 64:76] = np.arange(12) % 3
    run("select data=sbuf[0+4, 0, fp32, 1*12] predicate=sbuf[0+4, 64, uint8, 1*12] result=sbuf[0+4, 128, fp32, 1*12] scalar0=-1f\n"
        "range_select data=sbuf[0+4, 0, fp32, 1*12] result=sbuf[0+4, 256, fp32, 1*12] comparison0=>= comparison1=< scalar0=5f "
        "scalar1=9f start=2 fill=-3.4028235e38f", core)
    assert np.array_equal(at(core, 128, 12), np.where(np.arange(12) % 3 > 0, data, np.float32(-1)))
    inside = (np.arange(12) + 2 >= 5) & (np.arange(12) + 2 < 9)
    assert np.array_equal(at(core, 256, 12), np.where(inside, data, np.finfo(np.float32).min))


def test_affine_values_mask_a_triangle(core):
    data = numbers(core, 0, 4)
    run("affine_select data=sbuf[0+4, 0, fp32, 1*4] result=sbuf[0+4, 64, fp32, 1*4] base=0 multiplier=1 step0=-1 comparison0=>= "
        "fill=0\niota result=sbuf[0+4, 128, int32, 1*2, 2*3] base=10 multiplier=100 step0=1 step1=-20", core, stream="gpsimd")
    assert np.array_equal(at(core, 64, 4), np.tril(data))
    assert at(core, 128, 6, np.int32)[3].tolist() == [310, 311, 290, 291, 270, 271]


def test_memset_writes_low_bits(core):
    run("memset result=sbuf[2+2, 10, uint8, 2*5] value=0x1234ab", core)
    assert core.memories.sbuf[2:, 10:20:2].tolist() == [[0xAB] * 5] * 2 and core.memories.sbuf.sum() == 10 * 0xAB


def test_reductions_over_the_fastest_axes(core):
    data = numbers(core, 0, 24)
    run("tensor_reduce data=sbuf[0+4, 0, fp32, 1*4, 4*2, 8*3] result=sbuf[0+4, 128, fp32, 1*3] op0=maximum axes=2 negate=1\n"
        "tensor_scalar_reduce data=sbuf[0+4, 0, fp32, 1*24] result=sbuf[0+4, 256, fp32, 1*24] reduced=sbuf[0+4, 400, fp32, 1*1] "
        "op0=multiply op1=minimum scalar0=2f", core)
    assert np.array_equal(at(core, 128, 3), -data.reshape(4, 3, 8).max(2))
    assert np.array_equal(at(core, 256, 24), 2 * data) and np.array_equal(at(core, 400, 1)[:, 0], 2 * data.min(1))


def test_scans_begin_with_their_scalar(core):
    data = numbers(core, 0, 10)
    run("tensor_scalar_cumulative data=sbuf[0+4, 0, fp32, 1*10] result=sbuf[0+4, 64, fp32, 1*10] op0=bypass op1=add scalar1=1f\n"
        "tensor_tensor_scan data=sbuf[0+4, 0, fp32, 1*10] operand=sbuf[0+4, 64, fp32, 1*10] result=sbuf[0+4, 128, fp32, 1*10] "
        "op0=multiply op1=add scalar0=3f", core)
    sums = np.cumsum(np.concatenate([np.ones((4, 1), np.float32), data], 1), 1, np.float32)[:, 1:]
    assert np.array_equal(at(core, 64, 10), sums)
    assert np.array_equal(at(core, 128, 1)[:, 0], data[:, 0] * np.float32(3) + sums[:, 0])


def test_the_partial_sum_buffer_is_written_and_read(core):
    data = numbers(core, 0, 8)
    run(f"tensor_copy data=sbuf[0+4, 0, fp32, 1*8] result=psum[0+4, {3 * CORE.psum_bank_bytes + 40}, fp32, 1*8]\n"
        f"reciprocal data=psum[0+4, {3 * CORE.psum_bank_bytes + 68}, fp32, -1*8] result=sbuf[0+4, 64, fp32, 1*8]", core)
    assert np.array_equal(core.memories.psum[:, 3 * WORDS + 10:3 * WORDS + 18].view(np.float32), data)
    assert np.array_equal(at(core, 64, 8), (1 / data)[:, ::-1]) and core.memories.written.tolist() == [False] * 3 + [True] + [False] * 4


def test_infinite_results_are_counted(core):
    core.memories.sbuf[:, :16] = np.array([1, 0, -2, 0], np.float32).view(np.uint8)
    run("reciprocal data=sbuf[0+4, 0, fp32, 1*4] result=sbuf[0+4, 64, fp16, 1*4] ; count_special", core)
    assert core.special == 2 * CORE.rows


def test_the_eight_largest(core):
    data = numbers(core, 0, 20)
    run("max8 data=sbuf[0+4, 0, fp32, 1*20] result=sbuf[0+4, 128, fp32, 2*8]", core)
    assert np.array_equal(at(core, 128, 16)[:, ::2], -np.sort(-data, axis=1)[:, :8])


def test_the_eight_largest_are_found_and_replaced(core):
    """numpy's stable sort is the referee, of small integers, equal ones among them."""
    data = np.random.default_rng(3).integers(-9, 10, (CORE.rows, 20)).astype(np.int8)
    core.memories.sbuf[:, :20] = data.view(np.uint8)
    run("""max8 data=sbuf[0+4, 0, int8, 1*20] result=sbuf[0+4, 64, fp32, 1*8]
           find_index8 data=sbuf[0+4, 0, int8, 1*20] values=sbuf[0+4, 64, fp32, 1*8] result=sbuf[0+4, 128, uint16, 1*8]
           match_replace8 data=sbuf[0+4, 0, int8, 1*20] values=sbuf[0+4, 64, fp32, 1*8] result=sbuf[0+4, 192, int8, 1*20] fill=-100.0f
           find_index8 data=sbuf[0+4, 192, int8, 1*20] values=sbuf[0+4, 64, fp32, 1*8] result=sbuf[0+4, 160, uint16, 1*8]""", core)
    order = np.argsort(-data.astype(int), axis=1, kind="stable")[:, :8]
    assert np.array_equal(core.memories.sbuf[:, 128:144].view(np.uint16), order)
    np.put_along_axis(data, order, -100, 1)
    assert np.array_equal(core.memories.sbuf[:, 192:212].view(np.int8), data)
    later = core.memories.sbuf[:, 160:176].view(np.uint16)
    assert ((later == 0xFFFF) | (later < 20)).all() and (later == 0xFFFF).any()


def test_partitions_are_exchanged_and_reduced(core):
    """numpy's take and transpose are the referees, and for the sum binary32 additions pair by pair."""
    data = numbers(core, 0, 4).copy()
    masks = " ".join(f"mask{index}={value}" for index, value in enumerate((2, 0, 255, 2, *[0] * 28)))
    before = at(core, 64, 4).copy()
    run(f"""stream_shuffle data=sbuf[0+4, 0, fp32, 1*4] result=sbuf[0+4, 64, fp32, 1*4] {masks}
            transpose data=sbuf[0+4, 0, fp32, 1*3] result=sbuf[0+3, 128, fp32, 1*4]""", core)
    shuffled, turned = at(core, 64, 4), at(core, 128, 4)[:3]
    assert np.array_equal(shuffled[[0, 1, 3]], data[[2, 0, 2]]) and np.array_equal(shuffled[2], before[2])
    assert np.array_equal(turned, data[:, :3].T)
    reduce = "tensor_partition_reduce data=sbuf[0+{}, 0, fp32, 1*4] result=sbuf[0+1, 192, fp32, 1*4] op0=add average={}"
    for partitions, expected in ((4, (data[0] + data[1]) + (data[2] + data[3])), (3, (data[0] + data[1]) + data[2])):
        for average in (0, 1):
            run(reduce.format(partitions, average), core, "gpsimd")
            wanted = expected * (np.float32(1) / np.float32(partitions)) if average else expected
            assert np.array_equal(at(core, 192, 4)[0], wanted)


COPY = "tensor_copy data=sbuf[0+4, 0, fp32, 1*8] result=sbuf[0+4, 64, fp32, 1*8]"


@pytest.mark.parametrize(("text", "cause"), [
    ("tensor_tensor data=sbuf[0+4, 0, fp32, 1*8] operand=sbuf[0+4, 0, fp32, 1*8] result=sbuf[0+4, 64, fp32, 1*8] op0=bypass",
     Cause.ILLEGAL_FIELD),
    ("tensor_tensor data=sbuf[0+4, 0, fp32, 1*8] operand=sbuf[0+4, 0, fp32, 1*8] result=sbuf[0+4, 64, fp32, 1*8] op0=31",
     Cause.ILLEGAL_FIELD),
    ("tensor_tensor data=sbuf[0+4, 0, int8, 1*8] operand=sbuf[0+4, 0, int16, 1*8] result=sbuf[0+4, 64, int8, 1*8] op0=bitwise_or",
     Cause.ILLEGAL_FIELD),
    ("tensor_tensor data=sbuf[0+4, 0, bf16, 1*8] operand=sbuf[0+4, 0, int16, 1*8] result=sbuf[0+4, 64, int16, 1*8] op0=invert",
     Cause.ILLEGAL_FIELD),
    ("tensor_tensor data=psum[0+4, 0, fp32, 1*8] operand=psum[0+4, 0, fp32, 1*8] result=sbuf[0+4, 64, fp32, 1*8] op0=add",
     Cause.ILLEGAL_FIELD),
    ("tensor_scalar data=sbuf[0+4, 0, int8, 1*8] result=sbuf[0+4, 64, int8, 1*8] op0=invert op1=add", Cause.ILLEGAL_FIELD),
    ("tensor_scalar data=sbuf[0+4, 0, int8, 1*8] result=sbuf[0+4, 64, int8, 1*8] op0=add scalar0_partition=2", Cause.ILLEGAL_FIELD),
    ("tensor_scalar_cumulative data=sbuf[0+4, 0, fp32, 1*8] result=sbuf[0+4, 64, fp32, 1*8] op1=equal", Cause.ILLEGAL_FIELD),
    ("scalar_tensor_tensor data=sbuf[0+4, 0, int8, 1*8] operand=sbuf[0+4, 0, int8, 1*8] result=sbuf[0+4, 64, int8, 1*8] "
     "op0=bitwise_or", Cause.ILLEGAL_FIELD),
    ("tensor_reduce data=sbuf[0+4, 0, fp32, 1*8] result=sbuf[0+4, 64, fp32, 1*1] op0=add axes=0", Cause.ILLEGAL_FIELD),
    ("tensor_reduce data=sbuf[0+4, 0, fp32, 1*8] result=sbuf[0+4, 64, fp32, 1*1] op0=subtract axes=1", Cause.ILLEGAL_FIELD),
    ("tensor_reduce data=sbuf[0+4, 0, int8, 1*8] result=sbuf[0+4, 64, int8, 1*1] op0=bitwise_or axes=1 negate=1",
     Cause.ILLEGAL_FIELD),
    ("select data=sbuf[0+4, 0, fp32, 1*8] predicate=sbuf[0+4, 0, int8, 1*8] result=sbuf[0+4, 64, fp32, 1*8]", Cause.ILLEGAL_FIELD),
    ("tensor_copy_predicated data=sbuf[0+4, 0, fp32, 1*8] predicate=sbuf[0+4, 0, uint8, 1*8] result=sbuf[0+4, 64, int32, 1*8]",
     Cause.ILLEGAL_FIELD),
    ("range_select data=sbuf[0+4, 0, fp32, 1*8] result=sbuf[0+4, 64, fp32, 1*8] comparison0=6", Cause.ILLEGAL_FIELD),
    ("tensor_copy data=sbuf[0+4, 0, fp32, 1*8] result=psum[0+4, 0, bf16, 1*8]", Cause.ILLEGAL_FIELD),
    (COPY + " ; count_special", Cause.ILLEGAL_FIELD),
    ("reciprocal data=sbuf[0+4, 0, fp32, 1*8] result=sbuf[0+4, 64, int32, 1*8] ; count_special", Cause.ILLEGAL_FIELD),
    (COPY.replace("sbuf[0+4, 0,", "sbuf[2+4, 0,"), Cause.PARTITION_RANGE),
    (COPY.replace("0, fp32, 1*8] r", "2, fp32, 1*8] r"), Cause.ADDRESS_RANGE),
    (COPY.replace("0, fp32, 1*8] r", "8, fp32, -1*8] r"), Cause.ADDRESS_RANGE),
    ("tensor_copy data=sbuf[0+4, 0, fp32, 1*8] result=psum[0+4, 2040, fp32, 1*8]", Cause.ADDRESS_RANGE),
    ("tensor_copy data=sbuf[0+4, 9000, fp32, 1*8] result=sbuf[2+4, 0, fp32, 1*8]", Cause.ADDRESS_RANGE),
    ("tensor_scalar data=sbuf[0+4, 0, fp32, 1*8] result=sbuf[0+4, 64, fp32, 1*8] op0=add scalar0_stored=1 scalar0_partition=1",
     Cause.PARTITION_RANGE),
    ("tensor_scalar data=sbuf[0+4, 0, fp32, 1*8] result=sbuf[0+4, 64, fp32, 1*7] op0=add scalar0_stored=1 scalar0=4094",
     Cause.ADDRESS_RANGE),
    (COPY.replace("1*8] result", "1*7] result"), Cause.ILLEGAL_FIELD),
    (COPY.replace("sbuf[0+4, 0,", "sbuf[0+3, 0,"), Cause.ILLEGAL_FIELD),
    ("memset result=sbuf[0+4, 0, uint8, 0*65535, 0*2]", Cause.ILLEGAL_FIELD),
    ("tensor_reduce data=sbuf[0+4, 0, fp32, 1*8] result=sbuf[0+4, 64, fp32, 1*2] op0=add axes=1", Cause.ILLEGAL_FIELD),
    ("tensor_scalar_reduce data=sbuf[0+4, 0, fp32, 1*8] result=sbuf[0+4, 64, fp32, 1*8] reduced=sbuf[0+4, 400, fp32, 1*2] op1=add",
     Cause.ILLEGAL_FIELD),
    ("max8 data=sbuf[0+4, 0, fp32, 1*8] result=sbuf[0+4, 64, fp32, 1*9]", Cause.ILLEGAL_FIELD),
    ("find_index8 data=sbuf[0+4, 0, fp32, 1*8] values=sbuf[0+4, 0, fp32, 1*7] result=sbuf[0+4, 64, uint16, 1*8]", Cause.ILLEGAL_FIELD),
    ("find_index8 data=sbuf[0+4, 0, fp32, 1*8] values=sbuf[0+4, 0, fp32, 1*8] result=sbuf[0+4, 64, int16, 1*8]", Cause.ILLEGAL_FIELD),
    ("find_index8 data=sbuf[0+4, 0, fp32, 1*9] values=sbuf[0+4, 0, fp32, 1*8] result=sbuf[0+4, 64, uint16, 1*9]", Cause.ILLEGAL_FIELD),
    ("match_replace8 data=sbuf[0+4, 0, fp32, 1*9] values=sbuf[0+4, 0, fp32, 1*8] result=sbuf[0+4, 64, fp32, 1*8] fill=0",
     Cause.ILLEGAL_FIELD),
    ("max8 data=sbuf[0+4, 0, fp32, 1*7] result=sbuf[0+4, 64, fp32, 1*8]", Cause.ILLEGAL_FIELD),
    ("max8 data=sbuf[0+4, 0, uint8, 0*16385] result=sbuf[0+4, 64, fp32, 1*8]", Cause.ILLEGAL_FIELD),
    ("tensor_copy data=psum[0+4, 0, fp32, 1*7] result=sbuf[0+4, 64, fp32, 1*8]", Cause.ILLEGAL_FIELD),
    ("tensor_copy data=psum[0+4, 0, fp32, 1*8] result=sbuf[0+4, 64, fp32, 1*8]", Cause.BANK_INVALID),
    ("tensor_copy_predicated data=sbuf[0+4, 0, fp32, 1*8] predicate=sbuf[0+4, 0, uint8, 1*8] result=psum[0+4, 0, fp32, 1*8]",
     Cause.BANK_INVALID),
])
def test_refusals(text, cause):
    fresh, core = run("nop"), run(text)
    assert core.streams["vector"].failure.cause == cause and core.streams["vector"].failure.address == 0
    assert np.array_equal(core.memories.sbuf, fresh.memories.sbuf) and not core.memories.written.any()


@pytest.mark.parametrize("name", [name for name, opcode in OPCODES.items() if opcode.streams == ("gpsimd",)])
def test_instructions_of_another_stream(name):
    roles = " ".join(f"{role}=sbuf[0+4, 0, fp32, 1*8]" for role in OPCODES[name].accesses)
    assert run(f"{name} {roles}").streams["vector"].failure.cause == Cause.ILLEGAL_OPCODE
