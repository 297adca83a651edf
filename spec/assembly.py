"""Assembly: programs as text, and back, without loss.

A line is a label with a colon, or an instruction: the operation, its operands, and after semicolons what it waits for,
what it changes when done, and flags. ``#`` begins a comment.

    start:  load_stationary stationary=sbuf[0+8, 256, bf16, 1*8] ; wait s3>=1 ; then s4+=1
            multiply_moving moving=sbuf[0+8, 512+r1, bf16, 1*64] result=psum[0+8, 0, fp32, 1*64] accumulate=1 ; notify
            add r1, r1, 128
            branch r1 < 1024, start

An access pattern is ``memory[first + partitions, byte offset (+ register), format, step*count, …]``, the fastest pair
first. A field is ``name=value``; its value is a number, a word for its place in a list, or binary32 as ``1.5f``. A branch goes
to a label or by a signed number of instructions. Numbers may be hexadecimal.
"""

import re
import struct

from .errors import SpecError, choices
from .isa import (COMPARISONS, FIELD_NAMES, INSTRUCTION_BYTES, OPCODES, UPDATES, Access, Instruction, Update, Wait, decode,
                  encode)

__all__ = ["assemble", "disassemble", "format_instruction", "parse_instruction"]

_ACCESS = re.compile(r"(\w+)=(\w+)\[([^\]]*)\]")
_FIELD = re.compile(r"(\w+)=(\S+)")
_SEMAPHORE = re.compile(r"s(\w+)\s*(==|!=|<=|>=|\+=|-=|<|>|=)\s*(\w+)")
_BITS = ("fill", "scalar0", "scalar1", "value")  # shown in hexadecimal
_LABEL = re.compile(r"([A-Za-z_]\w*):\s*")
_COMPARED = re.compile(r"(\S+)\s*(==|!=|<=|>=|<|>)\s*(\S+?)\s*,\s*(\S+)")


def _number(what, text):
    try:
        return int(text, 0)
    except ValueError:
        raise SpecError(what, text, "a number") from None


def _value(name, text):
    """A field's value: a word that stands for its place, a number of binary32 with an f behind it, or an integer."""
    if text in FIELD_NAMES.get(name, ()):
        return FIELD_NAMES[name].index(text)
    if re.fullmatch(r"[+-]?(\d+\.?\d*(e[+-]?\d+)?|inf|nan)f", text):
        try:
            return int.from_bytes(struct.pack("<f", float(text[:-1])), "little")
        except OverflowError:
            raise SpecError(name, text, "a number that binary32 holds") from None
    return _number(name, text)


def _register(text):
    match = re.fullmatch(r"r(\d+)", text.strip())
    if match is None:
        raise SpecError("register", text.strip(), "r0 to r63")
    return int(match[1])


def _right(text):
    text = text.strip()
    if text.startswith("r"):
        return {"is_register": 1, "right": _register(text)}
    return {"is_register": 0, "right": _number("value", text)}


def _access(text):
    parts = [part.strip() for part in text.split(",")]
    if len(parts) < 4:
        raise SpecError("access pattern", text, "[first+partitions, offset, format, step*count, …]")
    first, plus, partitions = parts[0].partition("+")
    offset, indexed, register = parts[1].partition("+")
    if not plus:
        raise SpecError("partitions", parts[0], "first+partitions")
    dims = []
    for part in parts[3:]:
        step, times, count = part.partition("*")
        if not times:
            raise SpecError("dimension", part, "step*count")
        dims.append((_number("step", step), _number("count", count)))
    return dict(format=parts[2], partition=_number("first partition", first), dims=tuple(dims),
                partitions=_number("partitions", partitions), offset=_number("offset", offset),
                register=_register(register) if indexed else None)


def parse_instruction(text, labels=(), position=0):
    """One instruction from its text; ``labels`` maps names to positions, ``position`` is this one's own.

    Raises
    ------
    SpecError
        What is wrong, and what is allowed there.
    """
    body, *clauses = [part.strip() for part in text.split(";")]
    name, _, operands = body.partition(" ")
    if name not in OPCODES:
        raise SpecError("opcode", name, choices(OPCODES))
    accesses, fields = {}, {}
    if name in ("move", "add"):
        parts = operands.split(",")
        wanted = 2 if name == "move" else 3
        if len(parts) != wanted:
            raise SpecError(name, operands.strip(), "rA, value" if name == "move" else "rA, rB, value")
        fields = {"target": _register(parts[0])} | ({"left": _register(parts[1])} if name == "add" else {})
        fields |= _right(parts[-1])
    elif name == "branch":
        match = _COMPARED.fullmatch(operands.strip())
        if match is None:
            raise SpecError("branch", operands.strip(), "rA < value, label")
        target = match[4]
        if target in labels:
            distance = labels[target] - position
        elif re.match(r"[A-Za-z_]", target):
            raise SpecError("label", target, choices(labels) if labels else "a label of the program")
        else:
            distance = _number("distance", target)
        fields = {"left": _register(match[1]), "comparison": COMPARISONS.index(match[2]), "distance": distance,
                  **_right(match[3])}
    else:
        for role, space, pattern in _ACCESS.findall(operands):
            accesses[role] = Access(space=space, **_access(pattern))
        for word in _ACCESS.sub("", operands).split():
            match = _FIELD.fullmatch(word)
            if match is None:
                raise SpecError("operand", word, "name=number or name=memory[…]")
            fields[match[1]] = _value(match[1], match[2])
    return Instruction(name, accesses, {field: fields.get(field, 0) for field, _, _ in OPCODES[name].fields} | fields,
                       **_clauses(clauses))


def _clauses(clauses):
    waits, updates, flags = [], [], set()
    for clause in clauses:
        word, _, rest = clause.partition(" ")
        if word in ("wait", "then"):
            names = COMPARISONS if word == "wait" else UPDATES
            for entry in rest.split(","):
                match = _SEMAPHORE.fullmatch(entry.strip())
                if match is None or match[2] not in names:
                    raise SpecError(word, entry.strip(), f"s<number> {choices(names)} <number>")
                numbers = _number("semaphore", match[1]), _number("value", match[3])
                if word == "wait":
                    waits.append(Wait(numbers[0], match[2], numbers[1]))
                else:
                    updates.append(Update(numbers[0], match[2], numbers[1]))
        elif clause in ("notify", "count_special"):
            flags.add(clause)
        else:
            raise SpecError("clause", clause, "wait …, then …, notify or count_special")
    return {"waits": tuple(waits), "updates": tuple(updates), **{flag: True for flag in flags}}


def format_instruction(instruction):
    """The text of an instruction, in the form that :func:`parse_instruction` reads."""
    fields, words = instruction.fields, [instruction.opcode]
    if instruction.opcode in ("move", "add", "branch"):
        right = f"r{fields['right']}" if fields["is_register"] else str(fields["right"])
        if instruction.opcode == "move":
            words.append(f"r{fields['target']}, {right}")
        elif instruction.opcode == "add":
            words.append(f"r{fields['target']}, r{fields['left']}, {right}")
        else:
            words.append(f"r{fields['left']} {COMPARISONS[fields['comparison']]} {right}, {fields['distance']:+d}")
    else:
        for role, access in instruction.accesses.items():
            register = "" if access.register is None else f"+r{access.register}"
            dims = ", ".join(f"{step}*{count}" for step, count in access.dims)
            words.append(f"{role}={access.space}[{access.partition}+{access.partitions}, {access.offset}{register}, "
                         f"{access.format}, {dims}]")
        words += [f"{name}={_word(name, value)}" for name, value in fields.items() if value]
    text = " ".join(words)
    if instruction.waits:
        text += " ; wait " + ", ".join(f"s{wait.semaphore}{wait.comparison}{wait.value}" for wait in instruction.waits)
    if instruction.updates:
        text += " ; then " + ", ".join(f"s{update.semaphore}{update.kind}{update.value}" for update in instruction.updates)
    return text + "".join(f" ; {flag}" for flag in ("notify", "count_special") if getattr(instruction, flag))


def _word(name, value):
    words = FIELD_NAMES.get(name, ())
    return words[value] if 0 <= value < len(words) else hex(value) if name in _BITS else value


def assemble(text):
    """The bytes of a program.

    Raises
    ------
    SpecError
        ``field`` names the line.
    """
    lines, labels = [], {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.partition("#")[0].strip()
        while match := _LABEL.match(line):
            if match[1] in labels:
                raise SpecError(f"line {number}: label", match[1], "a name that is not used yet")
            labels[match[1]] = len(lines)
            line = line[match.end():]
        if line:
            lines.append((number, line))
    program = bytearray()
    for position, (number, line) in enumerate(lines):
        try:
            program += encode(parse_instruction(line, labels, position))
        except SpecError as error:
            raise SpecError(f"line {number}: {error.field}", error.value, error.allowed) from None
    return bytes(program)


def disassemble(program):
    """The text of a program, an instruction a line; ``assemble`` of it gives the same bytes.

    Raises
    ------
    SpecError
        Not whole instructions, or an illegal one; ``field`` names the instruction's number.
    """
    if len(program) % INSTRUCTION_BYTES:
        raise SpecError("program", f"{len(program)} bytes", f"a multiple of {INSTRUCTION_BYTES} bytes")
    lines = []
    for position in range(0, len(program), INSTRUCTION_BYTES):
        try:
            lines.append(format_instruction(decode(program[position:position + INSTRUCTION_BYTES])))
        except SpecError as error:
            named = SpecError(f"instruction {position // INSTRUCTION_BYTES}: {error.field}", error.value, error.allowed)
            raise named from None
    return "".join(f"{line}\n" for line in lines)
