"""golden/engine.py against products and transposes put together by hand, and the variety of random programs."""

import numpy as np
import pytest

from golden import engine as engine_module
from golden.engine import TensorEngine
from golden.tensor import accumulate, matmul, transpose
from spec.config import CoreConfig
from spec.errors import SpecError
from spec.formats import FORMAT_CODES
from spec.presets import PRESETS
from spec.tensor import Matmul, Opcode, command_fields, encode_command
from tests.corners import random_bits
from tests.engine_programs import legal_forms, moving_words, random_program, read_everything, stationary_words
from tests.matmul_cases import matmul_operands

NANO = PRESETS["nano"].chip.core
BYTES = CoreConfig(rows=4, cols=8, tile=4, formats=("fp8_e3m4",))  # slots of one byte, no pairs, no transpose
TWELVE = CoreConfig(rows=12, cols=8, tile=4, formats=("int8", "bf16"), transpose=True)
CORES = {"nano": NANO, "bytes": BYTES, "twelve": TWELVE}
BF16, INT8 = Matmul("bf16", "bf16"), Matmul("int8", "int8", paired=True)


def load(core, name, **fields):
    return encode_command(core, opcode=Opcode.LOAD, format=FORMAT_CODES[name], **fields)


def multiply(core, name, **fields):
    return encode_command(core, opcode=Opcode.MULTIPLY, format=FORMAT_CODES[name], **fields)


def read(core, **fields):
    return encode_command(core, opcode=Opcode.READ, **fields)


def no_words(core):
    slot_bytes = core.slot_bits // 8
    return np.zeros((0, 2 * core.rows * slot_bytes), np.uint8), np.zeros((0, core.rows * slot_bytes), np.uint8)


def contents(engine):
    """The whole buffer ``[cols, banks, words]``, as the results stream shows it."""
    results = engine.execute(read_everything(engine.core), *no_words(engine.core))
    return results.T.reshape(engine.core.cols, engine.core.psum_banks, -1)


@pytest.mark.parametrize("core, form", [(core, form) for core in CORES.values() for form in legal_forms(core)],
                         ids=lambda value: str(value.rows) if isinstance(value, CoreConfig) else
                         f"{value.stationary}-{value.moving}{'-paired' * value.paired}")
def test_a_product_of_every_form(rng, core, form):
    for first_row, columns in ((0, core.cols), (1, core.cols - 1), (core.rows - 1, 1)):
        for k in {1, (1 + form.paired) * (core.rows - first_row) - form.paired}:
            stationary, moving = matmul_operands(rng, form, k, columns, 6)
            engine = TensorEngine(core)
            engine.psum[:] = old = rng.integers(0, 1 << 32, engine.psum.shape, np.uint32)
            results = engine.execute(
                [load(core, form.stationary, first_row=first_row, contraction=k, columns=columns, paired=form.paired),
                 multiply(core, form.moving, count=6, bank=3, offset=5), read(core, count=8, bank=3, offset=4)],
                stationary_words(rng, core, stationary, first_row, form.paired),
                moving_words(rng, core, moving, first_row, form.paired))
            expected = old.copy()
            expected[:columns, 3, 5:11] = matmul(stationary, moving, form)
            assert results.dtype == np.uint32 and np.array_equal(results, expected[:, 3, 4:12].T)
            assert np.array_equal(contents(engine), expected)


UNUSED = 99
PAIR_STATIONARY = np.array([  # element k of column m is 1 + k + 10 * m; k = 3 and 4 share rows with k = 0 and 1
    [[[UNUSED] * 2] * 2, [[1, 4], [11, 14]], [[2, 5], [12, 15]], [[3, UNUSED], [13, UNUSED]]],
    [[[UNUSED] * 2] * 2, [[21, 24], [UNUSED] * 2], [[22, 25], [UNUSED] * 2], [[23, UNUSED], [UNUSED] * 2]],
], np.uint8).reshape(2, 16)
PAIR_MOVING = np.array([[[UNUSED] * 2, [1, 255], [10, 246], [100, UNUSED]]], np.uint8).reshape(1, 8)


def pair_sums(stationary, moving):
    core = CoreConfig(rows=4, cols=4, tile=4, formats=("int8",))
    commands = [load(core, "int8", first_row=1, contraction=5, columns=3, paired=1), multiply(core, "int8", count=1),
                read(core, count=1)]
    return TensorEngine(core).execute(commands, stationary, moving).tolist()


def test_the_layout_of_pairs_byte_by_byte():
    expected = [[1 + 20 + 300 - 4 - 50, 11 + 120 + 1300 - 14 - 150, 21 + 220 + 2300 - 24 - 250, 0]]
    assert pair_sums(PAIR_STATIONARY, PAIR_MOVING) == expected
    # Every byte that holds an element makes a difference, and no other does.
    for number, operand in enumerate((PAIR_STATIONARY, PAIR_MOVING)):
        for place in np.ndindex(*operand.shape):
            operands = [PAIR_STATIONARY, PAIR_MOVING]
            operands[number] = operand.copy()
            operands[number][place] ^= 1
            assert (pair_sums(*operands) == expected) == (operand[place] == UNUSED)


def test_the_layout_of_narrow_elements_in_wide_slots():
    word = [[0x34, 0x12, UNUSED, UNUSED], [0x78, 0x56, UNUSED, UNUSED], *[[UNUSED] * 4] * 6]
    commands = [load(NANO, "bf16", contraction=1, columns=2, transpose=1), multiply(NANO, "bf16", count=1),
                read(NANO, count=1)]
    results = TensorEngine(NANO).execute(commands, np.array(word, np.uint8).reshape(1, 32), no_words(NANO)[1])
    assert results.tolist() == [[0x1234, 0x5678, 0, 0]]


@pytest.mark.parametrize("form", [BF16, INT8, Matmul("fp32", "fp32"), Matmul("fp8_e5m2", "fp8_e4m3", paired=True)])
def test_accumulating_on_the_same_words_again_and_again(rng, form):
    stationary, moving = matmul_operands(rng, form, 4, 4, 9)
    sums = matmul(stationary, moving, form)
    # The word at offset 2 is written by every command: columns 1 to 4 alone, the next five overlapping.
    commands = [load(NANO, form.stationary, contraction=4, columns=4, paired=form.paired),
                multiply(NANO, form.moving, count=1, offset=2),
                *[multiply(NANO, form.moving, count=1, offset=2, accumulate=1)] * 3,
                multiply(NANO, form.moving, count=5, offset=0, accumulate=1), read(NANO, count=5)]
    expected = np.zeros((4, 5), np.uint32)
    expected[:, 2] = sums[:, 0]
    for column in (1, 2, 3):
        expected[:, 2] = accumulate(expected[:, 2], sums[:, column], form.is_integer)
    expected = accumulate(expected, sums[:, 4:], form.is_integer)
    results = TensorEngine(NANO).execute(commands, stationary_words(rng, NANO, stationary, paired=form.paired),
                                         moving_words(rng, NANO, moving, paired=form.paired))
    assert np.array_equal(results, expected.T)


def test_one_load_serves_products_of_several_formats(rng):
    names = ("fp32", "tf32", "fp32", "bf16", "fp8_e3m4")
    stationary = random_bits(rng, "tf32", (4, 4), specials=0)
    movings = [random_bits(rng, name, (4, 3), specials=0) for name in names]
    commands = [load(NANO, "bf16", contraction=2, columns=2), load(NANO, "tf32", contraction=4, columns=4),
                *[multiply(NANO, name, count=3, offset=3 * i) for i, name in enumerate(names)], read(NANO, count=15)]
    unused = stationary_words(rng, NANO, random_bits(rng, "bf16", (2, 2)))
    results = TensorEngine(NANO).execute(commands, np.concatenate([unused, stationary_words(rng, NANO, stationary)]),
                                         np.concatenate([moving_words(rng, NANO, moving) for moving in movings]))
    expected = [matmul(stationary, moving, Matmul("tf32", name)) for name, moving in zip(names, movings)]
    assert np.array_equal(results, np.concatenate(expected, axis=1).T)


@pytest.mark.parametrize("name", NANO.formats)
def test_transpose(rng, name):
    bits = random_bits(rng, name, (3, 4), specials=0.5)
    # Each of the two starts from the first row; accumulation on the bits is rule N3's or N13's, whatever they are.
    form = INT8 if name == "int8" else BF16
    stationary, moving = matmul_operands(rng, form, 4, 4, 3)
    commands = [load(NANO, name, first_row=1, contraction=3, columns=4, transpose=1),
                multiply(NANO, name, count=3, offset=4), multiply(NANO, name, count=2, offset=7),
                read(NANO, count=9, offset=2),
                load(NANO, form.stationary, contraction=4, columns=4, paired=form.paired),
                multiply(NANO, form.moving, count=3, offset=4, accumulate=1), read(NANO, count=3, offset=4)]
    words = stationary_words(rng, NANO, bits, first_row=1), stationary_words(rng, NANO, stationary, paired=form.paired)
    results = TensorEngine(NANO).execute(commands, np.concatenate(words), moving_words(rng, NANO, moving, paired=form.paired))
    expected = np.zeros((9, 4), np.uint32)
    expected[2:5], expected[5:7] = bits, bits[:2]
    assert np.array_equal(results[:9], expected)
    assert np.array_equal(results[9:].T, accumulate(transpose(bits), matmul(stationary, moving, form), form.is_integer))


def test_adding_to_a_transposed_nan_gives_the_canonical_one(rng):
    bits, one = np.array([[0xFFC12345]], np.uint32), np.array([[0x3F80]], np.uint16)
    commands = [load(NANO, "fp32", contraction=1, columns=1, transpose=1), multiply(NANO, "fp32", count=1),
                read(NANO, count=1), load(NANO, "bf16", contraction=1, columns=1),
                multiply(NANO, "bf16", count=1, accumulate=1), read(NANO, count=1)]
    results = TensorEngine(NANO).execute(
        commands, np.concatenate([stationary_words(rng, NANO, x) for x in (bits, one)]), moving_words(rng, NANO, one))
    assert results[:, 0].tolist() == [0xFFC12345, 0x7FC00000]


IDLE = {
    "LOAD without columns": load(NANO, "fp8_e5m2", contraction=3, first_row=1, paired=1),
    "LOAD without contraction": load(NANO, "fp32", columns=4, transpose=1),
    "MULTIPLY of no columns": multiply(NANO, "bf16", bank=1),
    "MULTIPLY of no columns of a wrong format": multiply(NANO, "int8", accumulate=1),
    "READ of no words": read(NANO, bank=1, offset=511),
    "another opcode": encode_command(NANO, opcode=3, format=15, count=4, columns=4, contraction=4),
}


@pytest.mark.parametrize("idle", IDLE)
def test_commands_that_ask_for_nothing_do_nothing(rng, idle):
    stationary, moving = matmul_operands(rng, BF16, 4, 3, 3)
    commands = [load(NANO, "bf16", contraction=4, columns=3), multiply(NANO, "bf16", count=1),
                multiply(NANO, "bf16", count=2, accumulate=1), read(NANO, count=3)]
    words = stationary_words(rng, NANO, stationary), moving_words(rng, NANO, moving)
    expected = TensorEngine(NANO).execute(commands, *words)
    for place in range(5):
        results = TensorEngine(NANO).execute([*commands[:place], IDLE[idle], *commands[place:]], *words)
        assert np.array_equal(results, expected)


def test_a_multiply_before_the_first_load_since_reset_does_nothing(rng):
    engine, ones = TensorEngine(NANO), np.full((1, 1), 0x3F80, np.uint16)
    loading, multiplying = load(NANO, "bf16", contraction=1, columns=1), multiply(NANO, "bf16", count=1, accumulate=1)
    assert len(engine.execute([multiplying, IDLE["LOAD without columns"], multiplying], *no_words(NANO))) == 0
    assert not engine.psum.any()
    words = stationary_words(rng, NANO, ones), moving_words(rng, NANO, ones)
    engine.execute([loading, multiplying], *words)
    words[0][:] = 0  # the weights were taken; what becomes of the caller's array is no matter
    engine.execute([multiplying], no_words(NANO)[0], words[1])
    assert engine.psum[0, 0, 0] == 0x40000000
    engine.reset()
    engine.execute([multiplying], *no_words(NANO))
    assert engine.psum[0, 0, 0] == 0x40000000 and np.count_nonzero(engine.psum) == 1


class Spy:
    """Calls a function of the engine's and keeps its last argument each time."""

    def __init__(self, monkeypatch, name):
        self.function, self.seen = getattr(engine_module, name), []
        monkeypatch.setattr(engine_module, name, self)

    def __call__(self, *args):
        self.seen.append(args[-1])
        return self.function(*args)


def decoded(core, command):
    fields = {}
    for name, width in command_fields(core):
        fields[name], command = command % (1 << width), command >> width
    return fields


@pytest.mark.parametrize("core", CORES.values(), ids=CORES)
def test_random_programs_do_everything(monkeypatch, core):
    rng = np.random.default_rng(0)  # always the same: what is rare turns up in most programs of this length, not in all
    forms, sums, bits = (Spy(monkeypatch, name) for name in ("matmul", "accumulate", "transpose"))
    commands, stationary, moving = random_program(rng, core, 600)
    engine = TensorEngine(core)
    results = engine.execute(commands, stationary, moving)
    assert len(commands) == 600 and results.any() and np.array_equal(contents(engine), engine.psum)
    executed = set(forms.seen)
    assert executed <= set(legal_forms(core)) and len(executed) > 0.7 * len(legal_forms(core))
    assert len(sums.seen) > 60 and set(sums.seen) == {form.is_integer for form in legal_forms(core)}
    assert {x.itemsize for x in bits.seen} == ({1, 2, 4} if core is NANO else {1, 2} if core is TWELVE else set())
    fields = [decoded(core, command) for command in commands]
    assert {x["opcode"] for x in fields} == {0, 1, 2, 3}
    multiplies = [x for x in fields if x["opcode"] == Opcode.MULTIPLY]
    counts = {x["count"] for x in multiplies}
    assert counts >= {0, 1, 2, 3} and max(counts) > core.psum_bank_words // 2
    at_once = [(a, b) for a, b in zip(fields, fields[1:]) if a["opcode"] == b["opcode"] and a["count"] == b["count"] == 1
               and (a["bank"], a["offset"]) == (b["bank"], b["offset"])]
    assert sum(b["opcode"] == Opcode.MULTIPLY and b["accumulate"] for _, b in at_once) > 10
    assert sum(a["opcode"] == b["opcode"] == Opcode.LOAD for a, b in zip(fields, fields[1:])) > 10


@pytest.mark.parametrize("core", CORES.values(), ids=CORES)
def test_random_programs_bring_exactly_the_words_they_take(rng, core):
    commands, stationary, moving = random_program(rng, core, 100)
    expected = TensorEngine(core).execute(commands, stationary, moving)
    extra = stationary[:1], moving[:1]
    longer = map(np.concatenate, zip((stationary, moving), extra))
    assert np.array_equal(TensorEngine(core).execute(commands, *longer), expected)
    for short, name in (((stationary[:-1], moving), "stationary"), ((stationary, moving[:-1]), "moving")):
        words = len(stationary if name == "stationary" else moving)
        with pytest.raises(SpecError, match=f"words of {name}: {words - 1} is not allowed; allowed: at least {words}, which"):
            TensorEngine(core).execute(commands, *short)


def test_a_program_in_pieces_gives_what_it_gives_at_once(rng):
    program = random_program(rng, NANO, 60)
    engine, whole, results = TensorEngine(NANO), TensorEngine(NANO), []
    expected = whole.execute(*program)
    taken = {"stationary": 0, "moving": 0}
    is_loaded = takes_moving = False
    for command in program[0]:
        results.append(engine.execute([command], program[1][taken["stationary"]:], program[2][taken["moving"]:]))
        fields = decoded(NANO, command)
        if fields["opcode"] == Opcode.LOAD and fields["columns"] and fields["contraction"]:
            is_loaded, takes_moving = True, not fields["transpose"]
            taken["stationary"] += (fields["columns"] + 1) // 2
        elif fields["opcode"] == Opcode.MULTIPLY and is_loaded and takes_moving:
            taken["moving"] += fields["count"]
    assert np.array_equal(np.concatenate(results), expected) and np.array_equal(engine.psum, whole.psum)


def at(core, **fields):
    """A command that ``encode_command`` would refuse."""
    word = position = 0
    for name, width in command_fields(core):
        word |= fields.get(name, 0) << position
        position += width
    return word


LOAD_BF16 = load(NANO, "bf16", contraction=4, columns=4)
MULTIPLY_BF16 = multiply(NANO, "bf16", count=1)
LOAD_BYTES = load(BYTES, "fp8_e3m4", contraction=1, columns=1, transpose=1)
LOAD_INT8_PAIRS = load(NANO, "int8", contraction=2, columns=4, transpose=1, paired=1)
LOAD_TRANSPOSE = load(NANO, "bf16", contraction=2, columns=4, transpose=1)


@pytest.mark.parametrize("core, commands, message", [
    (NANO, [LOAD_BF16] * 3, "words of stationary: 5 is not allowed; allowed: at least 6, which the commands take"),
    (NANO, [LOAD_BF16, MULTIPLY_BF16, multiply(NANO, "fp16", count=7)], "words of moving: 5 .* at least 8, which"),
    (NANO, [at(NANO, contraction=1, columns=5)], "columns: 5 is not allowed; allowed: 0 to 4 here"),
    (NANO, [at(NANO, contraction=3, columns=1, first_row=2)], "contraction: 3 .* 0 to 2 here"),
    (NANO, [at(NANO, contraction=5, columns=1, first_row=2, paired=1)], "contraction: 5 .* 0 to 4 here"),
    (TWELVE, [at(TWELVE, contraction=1, columns=1, first_row=12)], "first_row: 12 .* 0 to 11 here"),
    (NANO, [LOAD_BF16, at(NANO, opcode=1, format=2, count=2, offset=511)], "count: 2 .* 0 to 1 here"),
    (NANO, [at(NANO, opcode=2, count=513)], "count: 513 .* 0 to 512 here"),
    (NANO, [1 << sum(width for _, width in command_fields(NANO))], "command: .* is not allowed; allowed: .* bits"),
    (NANO, [-1], "command: -1 is not allowed"),
    (NANO, [LOAD_BF16, multiply(NANO, "int8", count=1)], "moving: 'int8' .* fp8_e4m3fn with bf16"),
    (NANO, [LOAD_BF16, multiply(NANO, "uint16", count=1)], "moving: 'uint16'"),
    (NANO, [at(NANO, format=15, contraction=1, columns=1), MULTIPLY_BF16], "stationary: 15"),
    (TWELVE, [load(TWELVE, "fp32", contraction=1, columns=1), multiply(TWELVE, "fp32", count=1)], "stationary: 'fp32'"),
    (BYTES, [LOAD_BYTES, multiply(BYTES, "fp8_e3m4", count=1)], "transpose"),
    (NANO, [load(NANO, "uint8", contraction=1, columns=1, transpose=1), MULTIPLY_BF16], "stationary: 'uint8'"),
    (NANO, [LOAD_TRANSPOSE, multiply(NANO, "bf16", count=1, accumulate=1)], "accumulate: 1 .* 0 with transpose"),
    (NANO, [LOAD_TRANSPOSE, multiply(NANO, "bf16", count=3)], "count: 3 .* 0 to 2 here"),
    (NANO, [LOAD_INT8_PAIRS, MULTIPLY_BF16], "paired: 1 .* 0 with transpose"),
])
def test_commands_that_are_not_legal_are_rejected(core, commands, message):
    stationary, moving = (np.zeros((5, words.shape[1]), np.uint8) for words in no_words(core))
    with pytest.raises(SpecError, match=message):
        TensorEngine(core).execute(commands, stationary, moving)


def test_streams_of_the_wrong_kind_are_rejected():
    stationary, moving = no_words(NANO)
    for operands, message in (((stationary.astype(np.uint32), moving), "dtype of stationary: 'uint32' .* uint8"),
                              ((stationary, stationary), r"shape of moving: \(0, 32\) .* words of 16 bytes"),
                              ((stationary[0:0, 0], moving), "shape of stationary: .* words of 32 bytes")):
        with pytest.raises(SpecError, match=message):
            TensorEngine(NANO).execute([], *operands)
