"""The tensor engine in the C++ loop, against golden: every legal product, stalls, resets, hazards, latency, throughput."""

from itertools import product as pairs

import numpy as np
import pytest

from golden.engine import TensorEngine as GoldenEngine
from golden.tensor import matmul_tiled, transpose
from hdl.tensor.engine import read_latency
from sim.errors import OutOfCycles
from sim.tensor import Program, TensorDriver
from spec.errors import SpecError
from spec.formats import TENSOR_FORMATS
from spec.presets import PRESETS, configure
from spec.tensor import Matmul, Opcode, check_matmul, check_transpose, encode_command
from tests.corners import random_bits
from tests.engine_programs import random_program, read_everything

CORES = {name: system.chip.core for name, system in PRESETS.items()}
CORES["deep"] = configure("nano", "adder_stages=3 formats=bf16,fp8,int8").chip.core
QUICK = ("nano", "mini", "deep")
OTHERS = tuple(name for name in CORES if name not in QUICK)
ALL_FORMS = [Matmul(a, b, paired) for a, b, paired in pairs(TENSOR_FORMATS, TENSOR_FORMATS, (False, True))]


@pytest.fixture(scope="module")
def drivers():
    """Drivers of the engines of :data:`CORES`, built when first asked for."""
    built = {}

    def driver(name):
        if name not in built:
            built[name] = TensorDriver(CORES[name])
        built[name].model.reset()
        return built[name]

    return driver


def is_legal(check, *arguments):
    try:
        check(*arguments)
    except SpecError:
        return False
    return True


def assert_equal(results, expected):
    for number, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        wrong = np.argwhere(result != wanted)
        assert not len(wrong), (f"product {number}: {len(wrong)} of {result.size} words differ, the first at "
                                f"{wrong[0]}: {result[tuple(wrong[0])]:08x}, not {wanted[tuple(wrong[0])]:08x}")


def every_product(rng, core):
    """One ragged product for every legal combination of formats, transposes among them, and what they must give."""
    program, expected = Program(core), []
    for form in ALL_FORMS:
        if not is_legal(check_matmul, core, form):
            continue
        contraction, outputs, columns = (int(rng.integers(1, limit)) for limit in (3 * core.rows, 2 * core.cols, 24))
        stationary = random_bits(rng, form.stationary, (contraction, outputs))
        moving = random_bits(rng, form.moving, (contraction, columns))
        program.matmul(stationary, moving, form)
        expected.append(matmul_tiled(core, stationary, moving, form))
        if is_legal(check_transpose, core, form.stationary):
            program.transpose(stationary, form.stationary)
            expected.append(transpose(stationary))
    return program, expected


@pytest.mark.parametrize("preset", [*QUICK, *(pytest.param(name, marks=pytest.mark.long) for name in OTHERS)])
def test_every_product_of_a_preset(drivers, preset, rng):
    driver = drivers(preset)
    for stall in (0.0, 0.4):
        program, expected = every_product(rng, driver.core)
        assert_equal(driver.run(program, stall=stall, seed=int(rng.integers(1 << 30))).results, expected)


@pytest.mark.parametrize("preset", PRESETS)
def test_every_other_product_is_refused(preset):
    core = CORES[preset]
    program = Program(core)
    for form in ALL_FORMS:
        if not is_legal(check_matmul, core, form):
            operand = np.zeros((2, 2), np.uint8)
            with pytest.raises(SpecError, match="is not allowed; allowed: "):
                program.matmul(operand, operand, form)
    for name in TENSOR_FORMATS:
        if not is_legal(check_transpose, core, name):
            with pytest.raises(SpecError, match="is not allowed; allowed: "):
                program.transpose(np.zeros((2, 2), np.uint8), name)


def run_commands(driver, commands, stationary, moving, words, **options):
    """Results of bare commands through the model."""
    program = Program(driver.core, commands, [stationary], [moving])
    program.placements.append((0, slice(0, driver.core.cols), slice(0, words)))
    program.shapes.append((driver.core.cols, words))
    return driver.run(program, **options).results[0].T


@pytest.mark.parametrize("preset", QUICK)
@pytest.mark.parametrize("stall", [0.0, 0.3])
@pytest.mark.parametrize("programs", [8, pytest.param(500, marks=pytest.mark.long)])
def test_random_commands(drivers, preset, stall, programs, rng):
    driver, golden = drivers(preset), GoldenEngine(CORES[preset])
    clean_buffer(driver)
    for _ in range(programs):
        driver.model.reset()
        golden.reset()
        commands, stationary, moving = random_program(rng, driver.core, 60)
        commands += read_everything(driver.core)
        expected = golden.execute(commands, stationary, moving)
        given = run_commands(driver, commands, stationary, moving, len(expected), stall=stall,
                             seed=int(rng.integers(1 << 30)))
        assert_equal([given], [expected])


def clean_buffer(driver):
    """Zero the whole partial-sum buffer: the model may hold what an earlier test left."""
    core = driver.core
    program = Program(core)
    form = next(form for form in ALL_FORMS if is_legal(check_matmul, core, form))
    zeros = np.zeros((1, core.cols), np.uint32), np.zeros((1, core.psum_bank_words), np.uint32)
    for _ in range(core.psum_banks):
        program.matmul(*zeros, form)
    driver.run(program)


def test_reset_in_mid_run(drivers, rng):
    """After a reset at any moment the next program gives its own results."""
    driver = drivers("nano")
    for cycles in (1, 5, 23, 60, 111, 400):
        program, _ = every_product(rng, driver.core)
        with pytest.raises(OutOfCycles, match="results collected"):
            driver.run(program, max_cycles=cycles)
        driver.model.reset(cycles=1)
        program, expected = every_product(rng, driver.core)
        assert_equal(driver.run(program, stall=0.2, seed=cycles).results, expected)


def test_a_wrong_bit_is_noticed(drivers, rng):
    driver = drivers("nano")
    program, expected = every_product(rng, driver.core)
    expected[-1][-1, -1] ^= 1
    with pytest.raises(AssertionError, match="1 of .* words differ"):
        assert_equal(driver.run(program).results, expected)


def bf16_product(program, contraction, outputs, columns):
    ones = np.uint16(0x3F80)
    program.matmul(np.full((contraction, outputs), ones), np.full((contraction, columns), ones), Matmul("bf16", "bf16"))


@pytest.mark.parametrize("preset", QUICK)
def test_latency(drivers, preset):
    """The first word of weights is taken, 4 cycles later the wave starts, is stored, is read, and the result is taken."""
    driver = drivers(preset)
    program = Program(driver.core)
    bf16_product(program, 1, 1, 1)
    assert driver.run(program).cycles == read_latency(driver.core) + 6


def test_long_products_keep_the_array_busy(drivers):
    driver = drivers("mini")
    program = Program(driver.core)
    for _ in range(20):
        bf16_product(program, driver.core.rows, driver.core.cols, 512)
    run = driver.run(program)
    assert run.counters["multiplying"] == 20 * 512
    assert run.busy_fraction >= 0.999


def test_weights_change_without_a_gap(drivers):
    """Products with little more than half as many columns as the array take new weights each time without a gap."""
    driver = drivers("mini")
    program = Program(driver.core)
    bf16_product(program, 100 * driver.core.rows, driver.core.cols, driver.core.cols // 2 + 1)
    assert driver.run(program).busy_fraction >= 0.99


def test_fp32_runs_at_a_quarter_of_the_rate(drivers, rng):
    driver = drivers("mini")
    operand = random_bits(rng, "fp32", (8, 64))
    program = Program(driver.core)
    program.matmul(operand[:, :8], operand, Matmul("fp32", "fp32"))
    run = driver.run(program)
    assert run.counters["multiplying"] == run.counters["span"] == 4 * 64


def test_pairs_run_at_twice_the_rate(drivers, rng):
    driver = drivers("mini")
    operand = random_bits(rng, "fp8_e4m3", (16, 64))
    program = Program(driver.core)
    program.matmul(operand[:, :8], operand, Matmul("fp8_e4m3", "fp8_e4m3", True))
    run = driver.run(program)
    assert run.counters["multiplying"] == run.counters["span"] == 64


def test_commands_beyond_the_engine_are_refused():
    core = configure("mini").chip.core
    for fields, message in (
        ({"columns": 9}, "columns: 9 is not allowed; allowed: 0 to 8 here"),
        ({"contraction": 9}, "contraction: 9 is not allowed; allowed: 0 to 8 here"),
        ({"contraction": 7, "first_row": 2}, "contraction: 7 is not allowed; allowed: 0 to 6 here"),
        ({"contraction": 17, "paired": 1}, "contraction: 17 is not allowed; allowed: 0 to 16 here"),
        ({"count": 513}, "count: 513 is not allowed; allowed: 0 to 512 here"),
        ({"count": 2, "offset": 511}, "count: 2 is not allowed; allowed: 0 to 1 here"),
        ({"bank": 8}, "bank: 8 is not allowed; allowed: 0 to 7"),
        ({"colour": 1}, "command field: 'colour' is not allowed; allowed: opcode, "),
    ):
        with pytest.raises(SpecError) as refused:
            encode_command(core, opcode=Opcode.LOAD, **fields)
        assert str(refused.value).startswith(message)
