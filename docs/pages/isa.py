"""``python -m docs.pages.isa``: writes docs/isa.md from spec/isa.py, so that the page cannot disagree with the code."""

from pathlib import Path

from spec.assembly import assemble, disassemble
from spec.isa import (COMPARISONS, HEADER, INSTRUCTION_BYTES, OPCODES, PATTERN, REGISTERS, SEMAPHORES, SPACES, STREAMS,
                      UPDATES, Cause)
from spec.vector import OPERATORS

__all__ = ["PAGE", "page"]

PAGE = Path(__file__).parents[1] / "isa.md"

EXAMPLE = """\
start:  load_stationary stationary=sbuf[0+8, 0, bf16, 1*8] ; wait s0>=1
        multiply_moving moving=sbuf[0+8, 512+r1, bf16, 1*64] result=psum[0+8, 0, fp32, 1*64] accumulate=1
        add r1, r1, 128
        branch r1 < 1024, start
        nop ; then s1+=1 ; notify
        halt
"""


def _table(header, rows):
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in (header, ["---"] * len(header), *rows))


def _fields(layout, first=0):
    rows = []
    for name, bits, meaning in layout:
        last = first + abs(bits) - 1
        rows.append((f"`{name}`", f"{last}:{first}" if last > first else first, meaning + (", signed" if bits < 0 else "")))
        first = last + 1
    return _table(("field", "bits", "meaning"), rows)


def page():
    """The text of docs/isa.md."""
    operations = _table(("operation", "code", "streams", "access patterns", "meaning"), [
        (f"`{opcode.name}`", f"0x{opcode.code:02x}", "all" if opcode.streams == STREAMS else ", ".join(opcode.streams),
         ", ".join(f"`{role}`" for role in opcode.accesses) or "–", opcode.meaning) for opcode in OPCODES.values()])
    own = "\n\n".join(f"**`{opcode.name}`**\n\n{_fields(opcode.fields, 768)}"
                      for opcode in OPCODES.values() if opcode.fields)
    causes = _table(("code", "cause", "meaning"), [
        (cause.value, f"`{cause.name}`", cause.meaning) for cause in Cause])
    return f"""\
<!-- Written by docs/pages/isa.py from spec/isa.py. Change those. -->
# The instruction set

Five streams run side by side on a core: {", ".join(STREAMS)}. Each fetches its own program from memory, has
{REGISTERS} registers of 32 bits, and shares {SEMAPHORES} semaphores with the others, which are the only order between them.
AWS publishes the streams, the registers, the semaphores, the access patterns and what the instructions can do; the
encoding is not public, and all of it below is our own.

The assembler is `spec/assembly.py`, the encoding `spec/isa.py`. Programs run on the golden model, `golden/core.py`, and on the
hardware, `hdl/core.py`.

An instruction is {INSTRUCTION_BYTES} bytes, little-endian, at an address that is a multiple of that. Its waits are
looked at one after the other: the second when the first was met, the third when the second was. Then it runs, and then it
changes the semaphores it names, in order. Bits that no field uses are zero, or the instruction is illegal.

## Example

```text
{EXAMPLE}```

A branch's label becomes a signed number of instructions; this is what the bytes say:

```text
{disassemble(assemble(EXAMPLE))}```

## Operations

{operations}

Codes 0x40 to 0x7f are the vector engine's; 0x80 to 0x9f are kept for the scalar engine, 0xa0 to 0xbf for gpsimd, 0xc0 to 0xcf for
collectives.

**Semaphores** count from 0 to 65,535 and wrap. **Registers** wrap at 32 bits; comparisons and offsets take them as signed. A
branch counts in instructions from itself; its waits and updates are done whether it is taken or not.

**Tensor engine.** A stationary operand gives row p of the array the elements of partition p, one for each column, at most
`cols`; a moving operand must lie in the same partitions, and each of its elements is a column of the product. With `paired`
a partition gives all its first elements, then as many second ones; `odd` says that the last partition has no second ones.
The result is one run of 32-bit words (fp32, or int32 for int8), step 1, inside one bank of the partial-sum buffer, in the
first partitions, as many as there are columns of the stationary operand. With `transpose`, word n is the bits of row n,
and only the moving operand's number of elements matters.

**Vector engine.** [vector-engine.md](vector-engine.md) says what its instructions compute and may name. Operators, from 0:
{", ".join(f"`{name}`" for name in OPERATORS)}. In assembly they stand by name, and a scalar of binary32 as a number with an f:
`op0=add scalar0=1.5f`.

**Memories.** A first partition is a multiple of a quarter of the memory's partitions. An element lies at a multiple of its
size. A bank that nothing was written to since reset cannot be accumulated onto.

## Where things stand

| bits | what |
|---|---|
| 191:0 | header |
| 383:192, 575:384, 767:576 | up to three access patterns, in the order of the table above |
| 1023:768 | the operation's own fields |

### Header

{_fields(HEADER)}

Comparisons, from 0: {", ".join(f"`{name}`" for name in COMPARISONS)}. Updates, from 0: {", ".join(f"`{name}`" for name in UPDATES)}.

### Access pattern

{_fields(PATTERN)}

Memories, from 0: {", ".join(f"`{name}`" for name in SPACES)}. Element (i0, i1, i2, i3) of a partition begins
(i0 step0 + i1 step1 + i2 step2 + i3 step3) elements after the offset.

### Own fields

{own}

## When an instruction is refused

The engine stops before it has changed anything, its error register holds the cause and the instruction's address, and
the rest of the core goes on.

{causes}

Where several things are wrong, the first of these counts. Every instruction: reserved bits, numbers that stand for
nothing, counts of 0 and what else is wrong whatever the operation (`ILLEGAL_FIELD`; for an unknown operation
`ILLEGAL_OPCODE` before that, for one on another stream after it); then its waits; then the operation itself.

`load_stationary`: a space or format that is not for the engine (`ILLEGAL_FIELD`); `PARTITION_RANGE`; `ADDRESS_RANGE`; the
last pair's count in pairs, more columns than the array has, `odd` without `paired`, a transpose that is not configured
(`ILLEGAL_FIELD`).

`multiply_moving`: no weights, other partitions than theirs, a space or format that is not for the engine
(`ILLEGAL_FIELD`); `PARTITION_RANGE` and `ADDRESS_RANGE` of `moving`; the last pair's count in pairs, a product that is not
configured, a transpose that accumulates or has more words than partitions, a result elsewhere than in the partial-sum buffer
or in another format than the sums' (`ILLEGAL_FIELD`); the result's `PARTITION_RANGE`; a result that is not one run of
words (`ILLEGAL_FIELD`), not at a multiple of 4 bytes, or not in one bank (`ADDRESS_RANGE`), of another size than the
product or not from partition 0 (`ILLEGAL_FIELD`); accumulation onto a bank that nothing was written to (`BANK_INVALID`).

The vector engine's: [vector-engine.md](vector-engine.md#when-an-instruction-is-refused).
"""


if __name__ == "__main__":
    PAGE.write_text(page())
