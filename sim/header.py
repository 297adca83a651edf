"""``python -m sim.header``: a C header of the register map into ``build/onc_registers.h``."""

from pathlib import Path

from spec.isa import STREAMS, Cause
from spec.registers import REGISTER_MAP, WINDOW_BITS

from .command import run_command

__all__ = ["header", "main"]

_TARGET = Path("build") / "onc_registers.h"


def _lines(register):
    name = f"ONC_{register.name.upper()}"
    yield f"/* {register.meaning} ({register.access}) */"
    if register.count > 1:
        yield f"#define {name}(index) ({register.offset:#06x}u + {register.stride:#x}u * (index)) /* 0 to {register.count - 1} */"
    else:
        yield f"#define {name} {register.offset:#06x}u"
    position = 0
    for field, bits, _ in register.fields:
        yield f"#define {name}_{field.upper()}_SHIFT {position}u"
        yield f"#define {name}_{field.upper()}_MASK {((1 << bits) - 1) << position:#x}u"
        position += bits


def header():
    """The header's text: offsets, field masks, streams and causes; C99, of constants only."""
    lines = ["/* Registers of an OpenNeuronCore, made from spec/registers.py. Offsets are in bytes; registers have 32 bits. */",
             "#ifndef ONC_REGISTERS_H", "#define ONC_REGISTERS_H", "", f"#define ONC_WINDOW_BYTES {1 << WINDOW_BITS}u", ""]
    for register in REGISTER_MAP:
        lines += [*_lines(register), ""]
    lines += ["enum onc_stream {", *(f"    ONC_STREAM_{name.upper()} = {index}," for index, name in enumerate(STREAMS)), "};",
              "", "enum onc_cause {",
              *(f"    ONC_CAUSE_{cause.name} = {int(cause)}, /* {cause.meaning} */" for cause in Cause), "};", "", "#endif", ""]
    return "\n".join(lines)


def main(values):
    """Run the command; returns 0."""
    _TARGET.parent.mkdir(parents=True, exist_ok=True)
    _TARGET.write_text(header())
    print(f"Written to {_TARGET}")
    return 0


if __name__ == "__main__":
    run_command(main, {})
