# amaranth: UnusedElaboratable=no
"""hdl/dma/check.py against golden/dma.py: the cause of random descriptors, most of them wrong somewhere."""

import collections

import numpy as np
import pytest

from golden.dma import check_transfer
from golden.memory import Memories, Refused
from hdl.dma.check import Check
from hdl.emit import emit
from sim.model import Model
from spec.dma import DESCRIPTOR, DESCRIPTOR_BYTES, decode_transfer
from spec.errors import SpecError
from spec.fields import pack_fields
from spec.formats import FORMATS
from spec.isa import Cause
from spec.memory import local_address
from spec.presets import configure

NANO = configure("nano").chip.core
CYCLES = 20
LATENCY = 17


def random_values(rng):
    """Fields of a descriptor near the edges of what is allowed."""
    total = int(rng.choice([1, 2, 6, 12, 24]))
    values = {"accumulate": int(rng.random() < 0.1), "saturate": int(rng.random() < 0.5), "notify": int(rng.random() < 0.5)}
    if rng.random() < 0.5:
        values |= {"update_used": 1, "update_kind": int(rng.integers(3 + (rng.random() < 0.05))),
                   "update_semaphore": int(rng.integers(256)), "update_value": int(rng.integers(1 << 16))}
    name = int(rng.integers(len(FORMATS)))
    for side in ("source", "destination"):
        space = int(rng.choice([0, 1, 2, 3], p=[0.45, 0.35, 0.19, 0.01]))
        form = list(FORMATS).index("fp32") if space == 2 and rng.random() < 0.9 else name
        size = FORMATS[list(FORMATS)[form]].width // 8
        counts, rest = [], total if rng.random() < 0.9 else int(rng.integers(1, 40))
        for _ in range(3):
            counts.append(int(rng.choice([number for number in range(1, rest + 1) if rest % number == 0])))
            rest //= counts[-1]
        counts.append(rest)
        if rng.random() < 0.02:
            counts[int(rng.integers(4))] = int(rng.choice([0, 65535]))
        length = NANO.sbuf_bytes if space == 1 else NANO.psum_banks * NANO.psum_bank_bytes
        address = (local_address(int(rng.integers(0, 5)), int(rng.choice([0, length - 8, rng.integers(0, length)])))
                   if space else int(rng.choice([0, rng.integers(1 << 40), (1 << 40) - 8])))
        values |= {f"{side}_space": space, f"{side}_format": form,
                   f"{side}_address": address // size * size + int(rng.random() < 0.03)}
        for index, count in enumerate(counts):
            step = size * int(rng.integers(-40, 41)) + int(rng.random() < 0.01)
            if space and rng.random() < 0.3:
                step = local_address(1, 0) * int(rng.integers(-2, 3)) + int(rng.random() < 0.02) * size
            values |= {f"{side}_count{index}": count, f"{side}_step{index}": step}
    return values


def expected_cause(content, written):
    memories = Memories(NANO)
    memories.written[:] = [written >> bank & 1 for bank in range(NANO.psum_banks)]
    try:
        check_transfer(memories, decode_transfer(content))
    except SpecError as error:
        return error.cause
    except Refused as refused:
        return refused.cause
    return Cause.NONE


@pytest.mark.parametrize("count", [4000, pytest.param(50_000, marks=pytest.mark.long)])
def test_causes(rng, count):
    contents, written = [], rng.integers(1 << NANO.psum_banks, size=count)
    for _ in range(count):
        word = pack_fields(DESCRIPTOR, random_values(rng))
        if rng.random() < 0.1:
            word ^= 1 << int(rng.integers(8 * DESCRIPTOR_BYTES))
        contents.append(word.to_bytes(DESCRIPTOR_BYTES, "little"))
    start = np.zeros(count * CYCLES, np.uint8)
    start[::CYCLES] = 1
    descriptors = np.frombuffer(b"".join(contents), np.uint8).reshape(count, -1)
    seen = Model.build(emit(Check(NANO))).vectors(
        {"start": start, "descriptor": descriptors.repeat(CYCLES, axis=0), "written": written.repeat(CYCLES)}, ["done", "cause"])
    done = np.flatnonzero(seen["done"])
    assert (done == np.arange(count) * CYCLES + LATENCY).all()
    causes = [expected_cause(content, int(bits)) for content, bits in zip(contents, written)]
    for number, (cause, got) in enumerate(zip(causes, seen["cause"][done])):
        assert cause == got, f"{Cause(int(got)).name}, not {cause.name}: {contents[number].hex()}"
    kinds = collections.Counter(causes)
    assert all(kinds[cause] > count / 200 for cause in (
        Cause.NONE, Cause.ILLEGAL_FIELD, Cause.ADDRESS_RANGE, Cause.PARTITION_RANGE, Cause.BANK_INVALID)), kinds
