"""golden/dma.py: transfers against plain loops, every refusal with its cause, rings."""

import itertools

import numpy as np
import pytest

from golden.core import Core
from golden.formats import storage_dtype
from spec.dma import Side, Transfer, decode_transfer, encode_transfer
from spec.errors import SpecError
from spec.formats import FORMATS
from spec.isa import Cause, Update
from spec.memory import local_address
from spec.presets import configure

NANO = configure("nano").chip.core
SIZE = 1 << 16


def machine(rng=None, faulty=()):
    core = Core(NANO, bytearray(SIZE if rng is None else rng.integers(0, 256, SIZE, np.uint8).tobytes()), faulty)
    if rng is not None:
        core.memories.sbuf[:] = rng.integers(0, 256, core.memories.sbuf.shape, np.uint8)
        core.memories.psum[:] = rng.integers(0, 1 << 32, core.memories.psum.shape, np.uint32)
        core.memories.written[:] = True
    return core


def carry_out(core, *transfers, at=0xF000):
    content = b"".join(map(encode_transfer, transfers))
    core.memory[at:at + len(content)] = content
    core.set_ring(2, at, len(transfers))
    core.ring_doorbell(2, len(transfers))
    core.run()
    return core.rings[2].failure


def addresses(side):
    """One address an element, by counting loops."""
    for indices in itertools.product(*(range(count) for _, count in reversed(side.dims))):
        yield side.address + sum(index * step for index, (step, _) in zip(reversed(indices), side.dims))


def byte(core, space, address):
    """Where a byte is: a flat array and an index."""
    if space == "memory":
        return np.frombuffer(core.memory, np.uint8), address
    partition, offset = divmod(address, 1 << 20)
    return getattr(core.memories, space)[partition].view(np.uint8), offset


def random_side(rng, space, size, counts):
    if space == "memory":
        return 0x4000, [size * int(rng.integers(-9, 10)) for _ in counts]
    steps = [size * int(rng.integers(-9, 10)) for _ in counts]
    across = int(rng.integers(len(counts)))
    if counts[across] <= 2:
        steps[across] = local_address(1, 0)
    return local_address(1, 2048), steps


@pytest.mark.parametrize("name", ["uint8", "bf16", "fp32"])
def test_bits_are_moved_as_loops_would(rng, name):
    size, moved = FORMATS[name].width // 8, 0
    for _ in range(60):
        counts = [int(rng.integers(1, 4)) for _ in range(rng.integers(1, 5))]
        spaces = str(rng.choice(["memory", "sbuf", *(["psum"] if size == 4 else [])])), str(rng.choice(["memory", "sbuf"]))
        sides = []
        for space, order in zip(spaces, (counts, list(rng.permutation(counts)))):
            order = [int(count) for count in order]
            address, steps = random_side(rng, space, size, order)
            if space == spaces[0] and sides:
                address += 1024
            sides.append(Side(space, name, address, tuple(zip(steps, order))))
        places = [list(addresses(side)) for side in sides]
        if len(set(places[1])) < len(places[1]):
            continue
        core = machine(rng)
        expected = machine()
        expected.memory[:] = core.memory
        expected.memories.sbuf[:], expected.memories.psum[:] = core.memories.sbuf, core.memories.psum
        for source, target in zip(*places):
            for lane in range(size):
                array, index = byte(expected, spaces[1], target + lane)
                held, where = byte(core, spaces[0], source + lane)
                array[index] = held[where]
        assert carry_out(core, Transfer(*sides)) is None
        assert core.memory[:0xF000] == expected.memory[:0xF000]
        assert (core.memories.sbuf == expected.memories.sbuf).all()
        moved += 1
    assert moved > 20


def test_casts_and_accumulation_against_numpy(rng):
    core = machine()
    first, second = rng.standard_normal(40).astype(np.float32), rng.standard_normal(40).astype(np.float16)
    core.memory[0x1000:0x10A0], core.memory[0x2000:0x2050] = first.tobytes(), second.tobytes()
    target = Side("memory", "fp32", 0x1000, ((4, 40),))
    failure = carry_out(core, Transfer(Side("memory", "fp16", 0x2000, ((2, 40),)), target, accumulate=True),
                        Transfer(target, Side("sbuf", "fp16", 64, ((2, 40),))))
    assert failure is None
    total = first + second.astype(np.float32)
    assert bytes(core.memory[0x1000:0x10A0]) == total.tobytes()
    assert (core.memories.sbuf[0, 64:144].view(np.float16) == total.astype(np.float16)).all()
    assert core.bytes_read == 80 + 160 and core.bytes_written == 160


def test_a_transpose_is_exchanged_steps():
    core = machine()
    matrix = np.arange(12, dtype=np.uint16).reshape(3, 4)
    core.memory[0x100:0x118] = matrix.tobytes()
    carry_out(core, Transfer(Side("memory", "bf16", 0x100, ((2, 4), (8, 3))), Side("memory", "bf16", 0x200, ((6, 4), (2, 3)))))
    assert (np.frombuffer(core.memory[0x200:0x218], storage_dtype("bf16")).reshape(4, 3) == matrix.T).all()


MEMORY, SBUF = Side("memory", "fp32", 0x1000, ((4, 8),)), Side("sbuf", "fp32", 0, ((4, 8),))
ACROSS = local_address(1, 0)


@pytest.mark.parametrize(("source", "destination", "options", "cause"), [
    (MEMORY, Side("psum", "fp32", 0, ((4, 8),)), {}, Cause.ILLEGAL_FIELD),
    (Side("psum", "bf16", 0, ((2, 8),)), MEMORY, {}, Cause.ILLEGAL_FIELD),
    (MEMORY, Side("sbuf", "bf16", 0, ((2, 8),)), {"accumulate": True}, Cause.ILLEGAL_FIELD),
    (MEMORY, Side("sbuf", "fp32", 0, ((4, 7),)), {}, Cause.ILLEGAL_FIELD),
    (MEMORY, Side("sbuf", "fp32", 0, ((ACROSS + 4, 8),)), {}, Cause.ILLEGAL_FIELD),
    (MEMORY, Side("sbuf", "fp32", 1 << 30, ((4, 8),)), {}, Cause.ILLEGAL_FIELD),
    (Side("memory", "fp32", 2, ((4, 8),)), SBUF, {}, Cause.ADDRESS_RANGE),
    (Side("memory", "fp32", 0, ((6, 8),)), SBUF, {}, Cause.ADDRESS_RANGE),
    (Side("memory", "fp32", 0, ((-4, 8),)), SBUF, {}, Cause.ADDRESS_RANGE),
    (Side("memory", "fp32", (1 << 40) - 4, ((4, 8),)), SBUF, {}, Cause.ADDRESS_RANGE),
    (MEMORY, Side("sbuf", "fp32", 4096 - 28, ((4, 8),)), {}, Cause.ADDRESS_RANGE),
    (MEMORY, Side("sbuf", "fp32", 0, ((ACROSS, 8),)), {}, Cause.PARTITION_RANGE),
    (MEMORY, Side("sbuf", "fp32", 0, ((-ACROSS, 8),)), {}, Cause.PARTITION_RANGE),
    (Side("memory", "fp32", 2, ((4, 8),)), Side("sbuf", "fp32", 0, ((ACROSS, 8),)), {}, Cause.ADDRESS_RANGE),
    (Side("psum", "fp32", 0, ((4, 8),)), MEMORY, {}, Cause.BANK_INVALID),
    (Side("memory", "fp32", SIZE - 4, ((4, 8),)), SBUF, {}, Cause.MEMORY),
    (SBUF, Side("memory", "fp32", 0x2000, ((4, 8),)), {}, Cause.MEMORY),
])
def test_a_refused_descriptor_stops_its_ring_and_changes_nothing(source, destination, options, cause):
    core = machine(faulty=[(0x2010, 0x2011)])
    transfer = Transfer(source, destination, update=Update(3, "=", 1), notify=True, **options)
    failure = carry_out(core, transfer)
    assert (failure.cause, failure.address) == (cause, 0xF000), failure
    assert not core.memories.sbuf.any() and not core.semaphores[3] and not core.interrupts and core.rings[2].pending == 1
    assert decode_transfer(encode_transfer(transfer)) == transfer


def test_a_ring_goes_round_and_others_go_on():
    core = machine()
    core.memory[0xF000:0xF080] = encode_transfer(Transfer(MEMORY, SBUF, update=Update(1, "+=", 1)))
    core.memory[0xF080:0xF100] = b"\xff" * 128
    core.set_ring(0, 0xF000, 1)
    core.set_ring(1, 0xF080, 1)
    core.set_ring(5, SIZE, 1)
    for ring in (0, 1, 5):
        core.ring_doorbell(ring, 3)
    assert core.run() == [] and core.semaphores[1] == 3
    assert {name: failure.cause for name, failure in core.failures.items()} == {
        "ring 1": Cause.ILLEGAL_FIELD, "ring 5": Cause.FETCH}


@pytest.mark.parametrize(("ring", "base", "size", "message"), [
    (16, 0, 1, "ring: 16"), (0, 64, 1, "base: 64"), (0, 1 << 40, 1, "base: "), (0, 0, 65536, "size: 65536")])
def test_a_ring_that_cannot_be_is_refused(ring, base, size, message):
    with pytest.raises(SpecError, match=f"^{message}"):
        machine().set_ring(ring, base, size)
