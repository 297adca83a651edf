"""sim/header.py: a C compiler takes the header, and finds every register where the map has it."""

import subprocess

from sim.header import header
from spec.registers import REGISTER_MAP, find_register


def test_a_c_program_finds_every_register(tmp_path):
    (tmp_path / "onc_registers.h").write_text(header())
    places = [f"ONC_{register.name.upper()}" + (f"({index})" if register.count > 1 else "")
              for register in REGISTER_MAP for index in (0, register.count - 1)]
    prints = "\n".join(f'    printf("%u\\n", {place});' for place in [*places, "ONC_STREAM_STATUS_CAUSE_MASK"])
    source = f"#include <stdio.h>\n#include \"onc_registers.h\"\nint main(void) {{\n{prints}\n    return 0;\n}}\n"
    (tmp_path / "show.c").write_text(source)
    subprocess.run(["g++", "-x", "c", "-std=c99", "-Wall", "-Werror", "-pedantic", "show.c", "-o", "show"], cwd=tmp_path, check=True)
    shown = list(map(int, subprocess.run([tmp_path / "show"], capture_output=True, text=True, check=True).stdout.split()))
    expected = [register.address(index) for register in REGISTER_MAP for index in (0, register.count - 1)]
    names = [name for name, _, _ in find_register("stream_status").fields]
    below = sum(bits for name, bits, _ in find_register("stream_status").fields[:names.index("cause")])
    assert shown == [*expected, 0xF << below]
