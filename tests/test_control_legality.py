# amaranth: UnusedElaboratable=no
"""hdl/control/legality.py against ``spec.isa``'s decoder: every instruction whole, with a bit wrong, and under other opcodes."""

import collections

import numpy as np
import pytest

from hdl.control.legality import Legality
from hdl.emit import emit
from sim.model import Model
from spec.errors import SpecError
from spec.isa import INSTRUCTION_BYTES, OPCODES, STREAMS, UPDATES, Access, Cause, Instruction, Update, Wait, decode, encode
from spec.formats import FORMATS


def random_instruction(rng, opcode):
    """Legal in every field, whatever an engine would say of it."""
    accesses = {role: Access(str(rng.choice(["sbuf", "psum"])), str(rng.choice(list(FORMATS))), int(rng.integers(128)),
                             int(rng.integers(1, 129)), int(rng.integers(1 << 15)),
                             tuple((int(rng.integers(-99, 99)), int(rng.integers(1, 99))) for _ in range(rng.integers(1, 5))),
                             None if rng.random() < 0.5 else int(rng.integers(64))) for role in opcode.accesses}
    return Instruction(opcode.name, accesses, {name: int(rng.integers(2)) for name, _, _ in opcode.fields},
                       tuple(Wait(int(rng.integers(256)), ">=", 1) for _ in range(rng.integers(4))),
                       tuple(Update(int(rng.integers(256)), str(rng.choice(UPDATES)), 1) for _ in range(rng.integers(3))))


def random_content(rng):
    opcode = OPCODES[str(rng.choice(list(OPCODES)))]
    content = bytearray(encode(random_instruction(rng, opcode)))
    kind = rng.random()
    if kind < 0.5:
        content[int(rng.integers(INSTRUCTION_BYTES))] ^= 1 << int(rng.integers(8))
    elif kind < 0.6:
        content[0] = int(rng.choice([int(rng.integers(256)), *(other.code for other in OPCODES.values())]))
    return bytes(content)


def cause_of(content, stream):
    """As the decoder has it; a stream runs what is decoded where it is one of its own."""
    try:
        instruction = decode(content)
    except SpecError as error:
        return error.cause
    return Cause.NONE if stream in OPCODES[instruction.opcode].streams else Cause.ILLEGAL_OPCODE


@pytest.mark.parametrize("stream", STREAMS)
def test_causes(rng, stream):
    contents = [random_content(rng) for _ in range(2000)]
    rows = np.frombuffer(b"".join(contents), np.uint8).reshape(-1, INSTRUCTION_BYTES)
    seen = Model.build(emit(Legality(stream))).vectors({"i": rows}, ["cause"])["cause"]
    causes = [cause_of(content, stream) for content in contents]
    for content, cause, got in zip(contents, causes, seen):
        assert cause == got, f"{Cause(int(got)).name}, not {cause.name}: {content.hex()}"
    kinds = collections.Counter(causes)
    assert all(kinds[cause] > len(contents) / 50 for cause in (Cause.NONE, Cause.ILLEGAL_FIELD, Cause.ILLEGAL_OPCODE)), kinds
