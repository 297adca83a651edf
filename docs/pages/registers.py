"""``python -m docs.pages.registers``: writes docs/registers.md from spec/registers.py, so that the page cannot disagree with
the code."""

from pathlib import Path

from spec.registers import REGISTER_MAP, WINDOW_BITS

__all__ = ["PAGE", "page"]

PAGE = Path(__file__).parents[1] / "registers.md"


def _row(register):
    offset = f"`{register.offset:#x}`"
    if register.count > 1:
        offset += f" + {register.stride:#x} x (0 to {register.count - 1})"
    fields, position = [], 0
    for name, bits, meaning in register.fields:
        place = f"{position}" if bits == 1 else f"{position + bits - 1}:{position}"
        fields.append(f"`{name}` [{place}]" + (f" {meaning}" if meaning else ""))
        position += bits
    meaning = register.meaning + (": " + "; ".join(fields) if fields else "")
    return f"| {offset} | `{register.name}` | {register.access} | {meaning} |"


def page():
    """The page's text."""
    rows = "\n".join(map(_row, REGISTER_MAP))
    return f"""# Registers

Made from [spec/registers.py](../spec/registers.py) by `python -m docs.pages.registers`; a test checks that it is current.

The host sees a window of {1 << WINDOW_BITS:,} bytes of 32-bit registers through an AXI4 subordinate, `host__*`. Access: `r` read only,
`rw` reads what was written, `w` a command that reads 0, `w1c` a one clears that bit. Other offsets read 0 and ignore
writes. A write of less than a whole word has no effect and is answered with SLVERR.

| offset | name | access | meaning |
|---|---|---|---|
{rows}

To run a program: write it and its descriptors to memory, give each ring `ring_base_*` and then `ring_size`, write
`stream_start_*`, and 1 to `stream_command`. [sim/core.py](../sim/core.py) does just that.
"""


if __name__ == "__main__":
    PAGE.write_text(page())
