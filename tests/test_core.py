"""hdl/core.py: random programs against the golden core, products memory to memory, registers, deadlock, reset in mid-run."""

import functools

import numpy as np
import pytest

from golden.core import Core
from golden.formats import convert
from golden.tensor import matmul_tiled
from sim.checked import random_operands
from sim.core import CoreDriver, build_core
from sim.errors import HostError, OutOfCycles
from sim.fuzz import Fuzzer
from sim.gemm import run_product
from sim.matmul_plan import Product
from sim.matmul_program import MatmulProgram
from spec.assembly import assemble
from spec.dma import Side, Transfer, encode_transfer
from spec.errors import SpecError
from spec.isa import Cause, Update
from spec.memory import local_address
from spec.presets import configure
from spec.registers import IDENTITY, find_register
from spec.tensor import Matmul

NANO = configure("nano").chip.core


@functools.cache
def model():
    return build_core(NANO)


def driver(size=1 << 16, **timing):
    return CoreDriver(NANO, size, model=model(), **timing)


def put(machine, at, content):
    machine.memory[at:at + len(content)] = np.frombuffer(content, np.uint8)


@pytest.mark.parametrize("programs", [40, pytest.param(2000, marks=pytest.mark.long)])
def test_random_legal_programs(rng, programs):
    fuzzer = Fuzzer(NANO, model())
    for seed in rng.integers(1 << 31, size=programs):
        assert not fuzzer.check(int(seed)), f"seed {seed}:\n{fuzzer.shrink(int(seed))}"


@pytest.mark.parametrize("programs", [15, pytest.param(600, marks=pytest.mark.long)])
def test_random_illegal_programs(rng, programs):
    fuzzer = Fuzzer(NANO, model())
    for seed in rng.integers(1 << 31, size=programs):
        assert not fuzzer.check(int(seed), illegal=True), f"seed {seed}:\n{fuzzer.shrink(int(seed), illegal=True)}"


def test_a_false_result_is_found_and_shrunk(rng, monkeypatch):
    """The golden core adds one to what a transfer moves: some program must show it, and a smaller one too."""
    from golden import dma

    def false_convert(bits, source, target, saturate=False):
        return convert(bits, source, target, saturate) + bits.dtype.type(1) if source == target else convert(
            bits, source, target, saturate)

    convert = dma.convert
    monkeypatch.setattr(dma, "convert", false_convert)
    fuzzer = Fuzzer(NANO, model())
    seed = next(seed for seed in range(1, 20) if fuzzer.check(seed))
    assert "differ" in fuzzer.check(seed) and fuzzer.shrink(seed).count("Transfer(") == 1


@pytest.mark.parametrize(("m", "n", "k", "name"), [(4, 16, 4, "bf16"), (11, 37, 9, "fp32"), (16, 600, 5, "fp8_e4m3")])
def test_products(rng, m, n, k, name):
    form = Matmul(name, name)
    outcome = run_product(NANO, Product(m, n, k, form), random_operands(rng, form, k, m, n), model=model())
    assert outcome["mismatches"] == 0


@pytest.mark.parametrize("k", [1, 7, 8, 13, 16, 33])
def test_products_in_pairs(rng, k):
    """Tiles of K that are whole, odd, and a single element."""
    for name, n in (("int8", 40), ("fp8_e4m3", 9)):
        form = Matmul(name, name, paired=True)
        outcome = run_product(NANO, Product(6, n, k, form), random_operands(rng, form, k, 6, n), model=model())
        assert outcome["mismatches"] == 0


def test_products_in_a_row_wait_for_the_host(rng):
    """The second product's operand is the first one's result, in another format; the program waits for it."""
    bf16, int8 = Matmul("bf16", "bf16"), Matmul("int8", "int8", paired=True)
    program = MatmulProgram(NANO, [Product(7, 20, 9, bf16), Product(5, 20, 7, bf16), Product(4, 3, 21, int8)])
    first, last = random_operands(rng, bf16, 9, 7, 20), random_operands(rng, int8, 21, 4, 3)
    weights = random_operands(rng, bf16, 7, 5, 20)[0]
    results = []
    for machine in (Core(NANO, bytearray(program.end)), driver(program.end, latency=(2, 30), stall=0.1)):
        program.load(machine)
        program.put(machine, 0, *first)
        program.put(machine, 2, *last)
        program.start(machine)
        assert {blocked.stream for blocked in machine.run()} == {"tensor", "sync", "gpsimd"} and machine.interrupts == 1
        middle = convert(program.result(machine, 0), "fp32", "bf16")
        program.put(machine, 1, weights, middle)
        program.release(machine)
        program.release(machine)
        assert machine.run() == [] and not machine.failures and machine.interrupts == 3
        results.append([program.result(machine, number) for number in range(3)])
        expected = [matmul_tiled(NANO, *first, bf16), matmul_tiled(NANO, weights, middle, bf16),
                    matmul_tiled(NANO, *last, int8)]
        assert all((result == wanted).all() for result, wanted in zip(results[-1], expected))


@pytest.mark.parametrize(("config", "size"), [("mini", 256), pytest.param("small", 1024, marks=pytest.mark.long)])
def test_a_large_product_keeps_the_array_busy(rng, config, size):
    core, form = configure(config).chip.core, Matmul("bf16", "bf16")
    outcome = run_product(core, Product(size, size, size, form), random_operands(rng, form, size, size, size))
    assert outcome["mismatches"] == 0 and outcome["busy_fraction"] >= 0.95


def test_a_program_s_length_does_not_depend_on_k():
    short, long = (
        len(MatmulProgram(NANO, [Product(16, 64, k, Matmul("bf16", "bf16"))]).program) for k in (16, 4000))
    assert short == long


@pytest.mark.parametrize(("sizes", "name", "message"), [
    ((0, 1, 1), "bf16", "M: 0 is not allowed"), ((1, 1, 1), "int8", "paired: False is not allowed"),
    ((1, 1, 1), "fp12", "stationary: 'fp12' is not allowed")])
def test_a_product_that_cannot_be_is_refused(sizes, name, message):
    with pytest.raises(SpecError, match=message):
        MatmulProgram(NANO, [Product(*sizes, Matmul(name, name))])


def test_a_deadlock_says_who_waits_for_what():
    machine = driver()
    put(machine, 0, assemble("nop ; then s1=4\nnop ; wait s1>=4, s2!=0, s3>5\nhalt"))
    machine.start("sync", 0)
    (blocked,) = machine.run()
    assert (blocked.stream, blocked.address, blocked.values) == ("sync", 128, (0, 0))
    assert [wait.semaphore for wait in blocked.waits] == [2, 3]


def test_an_endless_loop_is_stopped():
    machine = driver()
    put(machine, 0, assemble("again: branch r0 == 0, again"))
    machine.start("scalar", 0)
    with pytest.raises(OutOfCycles, match="scalar at 0x0"):
        machine.run(5000)


def transfer(source, target, **options):
    return encode_transfer(Transfer(source, target, **options))


def test_rings_wrap_stop_alone_and_start_again():
    """A ring goes round; one that fails keeps its place, rings others do not, and a new size starts it afresh."""
    machine = driver(seed=1)
    machine.memory[0x1000:0x1010] = np.arange(16)
    sides = Side("memory", "uint8", 0x1000, ((1, 16),)), Side("memory", "uint8", 0x2000, ((1, 16),))
    put(machine, 0x100, transfer(*sides, update=Update(7, "+=", 1), notify=True))
    put(machine, 0x180, transfer(*sides, update=Update(8, "+=", 1)))
    put(machine, 0x300, transfer(Side("memory", "uint8", 1 << 20, ((1, 16),)), sides[1], update=Update(9, "+=", 1)))
    machine.set_ring(3, 0x100, 2)
    machine.set_ring(4, 0x300, 1)
    machine.ring_doorbell(4, 1)
    machine.ring_doorbell(3, 5)
    assert machine.run() == []
    assert machine.semaphores[7:10] == [3, 2, 0] and machine.interrupts == 3
    assert {name: (failure.cause, failure.address) for name, failure in machine.failures.items()} == {
        "ring 4": (Cause.MEMORY, 0x300)}
    assert (machine.memory[0x2000:0x2010] == np.arange(16)).all()
    machine.set_ring(4, 0x180, 1)
    machine.ring_doorbell(4, 1)
    machine.run()
    assert not machine.failures and machine.semaphores[8] == 3


def test_a_long_copy_takes_a_word_a_cycle():
    machine = driver(1 << 17)
    put(machine, 0, transfer(Side("memory", "uint8", 0x1000, ((1, 1 << 14),)), Side("memory", "uint8", 0x8000, ((1, 1 << 14),)),
                             update=Update(1, "=", 1)))
    machine.memory[0x1000:0x5000] = np.arange(1 << 14) % 251
    machine.set_ring(0, 0, 1)
    machine.clear_counters()
    machine.host.write("interrupt_enable", 0)
    machine.ring_doorbell(0, 1)
    while not machine.host.read("semaphore", 1):
        pass
    assert machine.counters["cycles"] < 1.15 * (1 << 14) / 8
    assert (machine.memory[0x8000:0xC000] == machine.memory[0x1000:0x5000]).all()


def test_registers():
    machine = driver()
    host = machine.host
    assert [host.read(name) for name in ("identity", "rows", "cols", "sbuf_bytes", "psum_banks", "dma_engines")] == [
        IDENTITY, 4, 4, 4096, 8, 1]
    for index in range(16):
        host.write64("ring_base", 0x80 * (index + 1), index)
    assert [host.read64("ring_base", index) for index in range(16)] == [0x80 * (index + 1) for index in range(16)]
    host.write("semaphore", 0xFFFF, 200)
    host.write("semaphore_add", 3, 200)
    host.write("semaphore_subtract", 1, 200)
    assert host.read("semaphore", 200) == 1 and host.read("semaphore_add", 200) == 0
    put(machine, 0, assemble("halt ; notify"))
    machine.start("vector", 0)
    machine.model.run_until("irq", 1000)
    assert host.read("interrupt_status") == 0b1001
    host.write("interrupt_status", 0b1000)
    assert host.read("interrupt_status") == 1 and not machine.model.peek("irq")
    with pytest.raises(SpecError, match="register: 'nothing'"):
        host.read("nothing")


def test_a_result_that_is_not_finite_can_interrupt():
    """1 / 0 is infinite: one of 2 x 3 results is counted and raises the event, where the instruction counts at all."""
    machine = driver()
    bit = 1 << [name for name, _, _ in find_register("interrupt_status").fields].index("special")
    machine.host.write("interrupt_enable", bit)
    lines = ["memset result=sbuf[0+2, 0, fp32, 1*3] value=1.0f", "memset result=sbuf[1+1, 4, fp32, 1*1] value=0"]
    for flag, expected in (("", 0), (" ; count_special", 1)):
        reciprocal = f"reciprocal data=sbuf[0+2, 0, fp32, 1*3] result=sbuf[0+2, 64, fp32, 1*3]{flag}"
        put(machine, 0, assemble("\n".join([*lines, reciprocal, "halt"])))
        machine.start("vector", 0)
        machine.model.step(400)
        assert machine.model.peek("irq") == expected == machine.counters["special"]
        assert machine.host.read("interrupt_status") & bit == expected * bit


def test_half_a_register_cannot_be_written():
    machine = driver()
    poke = machine.model.poke
    for name, value in {"awaddr": 0x24, "awvalid": 1, "wdata": 5, "wstrb": 3, "wlast": 1, "wvalid": 1, "bready": 1}.items():
        poke(f"host__{name}", value)
    for _ in range(10):
        machine.model.step()
        if machine.model.peek("host__bvalid"):
            break
        if machine.model.peek("host__awready"):
            continue
        poke("host__awvalid", 0)
    assert machine.model.peek("host__bresp") == 2
    with pytest.raises(HostError, match="answered with error 2"):
        machine.host._checked("interrupt_enable", machine.model.peek("host__bresp"))


def test_reset_in_mid_run(rng):
    """Whatever was under way, the next program runs as the first."""
    form = Matmul("bf16", "bf16")
    product = Product(8, 32, 8, form)
    program = MatmulProgram(NANO, [product])
    operands = random_operands(rng, form, 8, 8, 32)
    for cycles in (100, 333, 700):
        machine = driver(program.end, latency=(3, 30), stall=0.2, reorder=True)
        program.load(machine)
        program.put(machine, 0, *operands)
        program.start(machine)
        machine.model.step(cycles)
        assert run_product(NANO, product, operands, model=model())["mismatches"] == 0


def test_accumulate_and_cast_on_the_way(rng):
    """numpy is the referee: fp16 in memory is added to fp32 in the state buffer, and goes back as bf16 bits."""
    machine = driver(latency=(2, 9), stall=0.2, reorder=True, seed=5)
    first, second = rng.standard_normal(64).astype(np.float32), rng.standard_normal(64).astype(np.float16)
    put(machine, 0x1000, first.tobytes())
    put(machine, 0x2000, second.tobytes())
    local = Side("sbuf", "fp32", local_address(2, 256), ((4, 64),))
    put(machine, 0, transfer(Side("memory", "fp32", 0x1000, ((4, 64),)), local))
    put(machine, 128, transfer(Side("memory", "fp16", 0x2000, ((2, 64),)), local, accumulate=True))
    put(machine, 256, transfer(local, Side("memory", "fp32", 0x3000, ((4, 64),))))
    machine.set_ring(1, 0, 3)
    machine.ring_doorbell(1, 3)
    machine.run()
    assert (machine.memory[0x3000:0x3100].view(np.float32) == first + second.astype(np.float32)).all()


def test_golden_and_rtl_take_the_same_calls():
    for machine in (Core(NANO, bytearray(1 << 12)), driver(1 << 12)):
        machine.memory[0:256] = (bytes if isinstance(machine.memory, bytearray) else lambda code: np.frombuffer(code, np.uint8))(
            assemble("nop ; then s5=9\nhalt"))
        machine.start("gpsimd", 0)
        assert machine.run() == [] and machine.semaphores[5] == 9 and not machine.failures
