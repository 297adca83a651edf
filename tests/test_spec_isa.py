"""spec/isa.py and assembly.py: instructions to bytes, to text, and back; every mistake refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docs.pages.isa import PAGE, page
from spec.assembly import assemble, disassemble, format_instruction, parse_instruction
from spec.errors import SpecError
from spec.formats import FORMATS
from spec.isa import (COMPARISONS, HEADER, INSTRUCTION_BYTES, OPCODES, PATTERN, SPACES, UPDATES, Access, Cause, Instruction,
                      Update, Wait, decode, encode)

PROGRAM = """\
# Eight products in a loop.
start:  load_stationary stationary=sbuf[0+8, 0x100, bf16, 1*8] ; wait s3>=1, s4==0 ; then s4+=1
        multiply_moving moving=sbuf[0+8, 512+r1, bf16, 1*64] result=psum[0+8, 0, fp32, 1*64] accumulate=1 ; notify
        add r1, r1, 128
        branch r1 < 1024, start
        halt
"""

words = st.integers(0, 65535)
semaphores = st.integers(0, 255)
accesses = st.builds(
    Access, space=st.sampled_from(SPACES), format=st.sampled_from(list(FORMATS)), partition=st.integers(0, 1023),
    partitions=st.integers(1, 2047), offset=st.integers(0, (1 << 20) - 1),
    dims=st.lists(st.tuples(st.integers(-32768, 32767), st.integers(1, 65535)), min_size=1, max_size=4)
    .filter(lambda dims: len(dims) == 1 or dims[-1] != (0, 1)).map(tuple),
    register=st.none() | st.integers(0, 63))


def own_field(name, bits):
    if name == "comparison":
        return st.integers(0, len(COMPARISONS) - 1)
    return st.integers(-(1 << -bits - 1), (1 << -bits - 1) - 1) if bits < 0 else st.integers(0, (1 << bits) - 1)


@st.composite
def instructions(draw):
    opcode = OPCODES[draw(st.sampled_from(list(OPCODES)))]
    fields = {name: draw(own_field(name, bits)) for name, bits, _ in opcode.fields}
    if fields.get("is_register"):
        fields["right"] = draw(st.integers(0, 63))
    return Instruction(
        opcode.name, {role: draw(accesses) for role in opcode.accesses}, fields,
        tuple(draw(st.lists(st.builds(Wait, semaphores, st.sampled_from(COMPARISONS), words), max_size=3))),
        tuple(draw(st.lists(st.builds(Update, semaphores, st.sampled_from(UPDATES), words), max_size=2))),
        draw(st.booleans()), draw(st.booleans()))


@settings(max_examples=400, deadline=None)
@given(instructions())
def test_bytes_and_text_give_the_instruction_back(instruction):
    content = encode(instruction)
    assert len(content) == INSTRUCTION_BYTES
    assert decode(content) == instruction
    assert parse_instruction(format_instruction(instruction)) == instruction


@settings(max_examples=300, deadline=None)
@given(instructions(), st.integers(0, 8 * INSTRUCTION_BYTES - 1))
def test_a_flipped_bit_is_another_instruction_or_illegal(instruction, bit):
    """No bit is ignored: whatever decodes encodes to the same bytes."""
    content = bytearray(encode(instruction))
    content[bit // 8] ^= 1 << bit % 8
    try:
        other = decode(bytes(content))
    except SpecError:
        return
    assert other != instruction and encode(other) == bytes(content)


@settings(max_examples=100, deadline=None)
@given(st.lists(instructions(), max_size=6))
def test_a_program_survives_disassembly(program):
    content = b"".join(map(encode, program))
    assert assemble(disassemble(content)) == content


def test_a_program_with_labels():
    content = assemble(PROGRAM)
    assert len(content) == 5 * INSTRUCTION_BYTES
    assert disassemble(content).splitlines() == [
        "load_stationary stationary=sbuf[0+8, 256, bf16, 1*8] ; wait s3>=1, s4==0 ; then s4+=1",
        "multiply_moving moving=sbuf[0+8, 512+r1, bf16, 1*64] result=psum[0+8, 0, fp32, 1*64] accumulate=1 ; notify",
        "add r1, r1, 128", "branch r1 < 1024, -3", "halt"]


def test_the_encoding_stays_as_it_is():
    """Programs outlive versions: a change of the encoding must be meant."""
    content = encode(parse_instruction("add r1, r2, -1 ; wait s3>=5 ; then s4+=1"))
    assert int.from_bytes(content, "little") >> 768 == 1 | 2 << 6 | 0 << 12 | 0xFFFF_FFFF << 13


def test_fields_fit_and_opcodes_differ():
    assert sum(bits for _, bits, _ in HEADER) <= 192 and sum(abs(bits) for _, bits, _ in PATTERN) <= 192
    for opcode in OPCODES.values():
        assert sum(abs(bits) for _, bits, _ in opcode.fields) <= 256 and len(opcode.accesses) <= 3
    assert len({opcode.code for opcode in OPCODES.values()}) == len(OPCODES)


@pytest.mark.parametrize(("line", "message"), [
    ("jump r1", "line 1: opcode: 'jump' is not allowed; allowed: nop, halt, move"),
    ("move r64, 1", "line 1: target: 64 is not allowed; allowed: a whole number from 0 to 63"),
    ("move x1, 1", "line 1: register: 'x1' is not allowed; allowed: r0 to r63"),
    ("move r1", "line 1: move: 'r1' is not allowed; allowed: rA, value"),
    ("move r1, 4294967296", "line 1: right: 4294967296 is not allowed; allowed: a whole number from -2147483648 to"),
    ("branch r1 < 5, there", "line 1: label: 'there' is not allowed; allowed: a label of the program"),
    ("branch r1, 5", "line 1: branch: 'r1, 5' is not allowed; allowed: rA < value, label"),
    ("nop ; wait s256>=1", "line 1: wait0_semaphore: 256 is not allowed; allowed: a whole number from 0 to 255"),
    ("nop ; wait s1+=1", "line 1: wait: 's1[+]=1' is not allowed; allowed: s<number> ==, !=, <, <=, > or >= <number>"),
    ("nop ; wait s1>0, s2>0, s3>0, s4>0", "line 1: waits: 4 is not allowed; allowed: at most 3"),
    ("nop ; maybe", "line 1: clause: 'maybe' is not allowed; allowed: wait …, then …, notify or count_special"),
    ("nop fast=1", "line 1: field of nop: 'fast' is not allowed; allowed: none"),
    ("nop fast", "line 1: operand: 'fast' is not allowed; allowed: name=number or name=memory"),
    ("load_stationary", "line 1: stationary of load_stationary: None is not allowed; allowed: an access pattern"),
    ("load_stationary moving=sbuf[0+8, 0, bf16, 1*8]", "line 1: operand of load_stationary: 'moving' is not allowed"),
    ("load_stationary stationary=dram[0+8, 0, bf16, 1*8]", "line 1: space: 'dram' is not allowed; allowed: sbuf or psum"),
    ("load_stationary stationary=sbuf[0+8, 0, bf17, 1*8]", "line 1: format: 'bf17' is not allowed; allowed: fp32"),
    ("load_stationary stationary=sbuf[0+8, 0, bf16]", "line 1: access pattern: '0[+]8, 0, bf16' is not allowed"),
    ("load_stationary stationary=sbuf[0, 0, bf16, 1*8]", "line 1: partitions: '0' is not allowed; allowed: first[+]part"),
    ("load_stationary stationary=sbuf[0+0, 0, bf16, 1*8]", "line 1: partitions: 0 is not allowed; allowed: a whole number"),
    ("load_stationary stationary=sbuf[0+8, 0, bf16, 1*0]", "line 1: count: 0 is not allowed; allowed: a whole number from 1"),
    ("load_stationary stationary=sbuf[0+8, 0, bf16, 8]", "line 1: dimension: '8' is not allowed; allowed: step[*]count"),
    ("load_stationary stationary=sbuf[0+8, 0, bf16, 1*8, 1*8, 1*8, 1*8, 1*8]", "line 1: stationary: .* 1 to 4"),
    ("a: nop\na: nop", "line 2: label: 'a' is not allowed; allowed: a name that is not used yet"),
])
def test_mistakes_in_assembly_are_refused(line, message):
    with pytest.raises(SpecError, match="^" + message.replace("(", "[(]")):
        assemble(line)


@pytest.mark.parametrize(("position", "value", "cause"), [
    (0, 0xFF, Cause.ILLEGAL_OPCODE), (127, 1, Cause.ILLEGAL_FIELD), (23, 0x80, Cause.ILLEGAL_FIELD)])
def test_illegal_bytes_name_the_cause(position, value, cause):
    content = bytearray(encode(Instruction("nop")))
    content[position] = value
    with pytest.raises(SpecError) as refused:
        decode(bytes(content))
    assert refused.value.cause == cause


@pytest.mark.parametrize("size", [0, 127, 129])
def test_a_part_of_an_instruction_is_refused(size):
    with pytest.raises(SpecError, match=f"^instruction: '{size} bytes' is not allowed; allowed: 128 bytes"):
        decode(bytes(size))
    if size:
        with pytest.raises(SpecError, match=f"^program: '{size} bytes'"):
            disassemble(bytes(size))


def test_the_page_is_current():
    """``python -m docs.pages.isa`` writes it anew."""
    assert PAGE.read_text() == page()
