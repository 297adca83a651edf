"""area/equivalence.py: netlists of arithmetic blocks are proven equal to their Verilog; a changed one is refuted."""

from dataclasses import replace

import pytest

from area.equivalence import is_equivalent, netlist_is_equivalent
from area.errors import CostError
from area.gates import gate_level
from area.library import default_library
from hdl.arith.add import Add
from hdl.arith.add_aligned import AddAligned
from hdl.arith.align import Align
from hdl.arith.exact_product import ExactProduct
from hdl.arith.layouts import OperandFormat
from hdl.arith.magnitude import Magnitude
from hdl.arith.recode import Recode
from hdl.arith.shift_round import ShiftRound
from hdl.emit import emit


def product(*formats):
    return ExactProduct(OperandFormat(formats), OperandFormat(formats))


BLOCKS = {
    "recode_bf16_fp16": lambda: Recode(("bf16", "fp16"), OperandFormat(("bf16", "fp16"))),
    "recode_fp8": lambda: Recode(("fp8_e5m2", "fp8_e4m3"), OperandFormat(("fp8_e5m2", "fp8_e4m3"))),
    "product_fp8": lambda: product("fp8_e4m3"),
    "product_bf16": lambda: product("bf16"),
    "product_fp16": lambda: product("fp16"),
    "align": lambda: Align(14, 23),
    "add_aligned": lambda: AddAligned(28),
    "magnitude": lambda: Magnitude(28),
    "shift_round": lambda: ShiftRound(28),
}
"""The blocks of an element and of the recoding before it, under the widths that a bf16 element has."""


def block(name):
    component = BLOCKS[name]()
    component.module_name = name
    return emit(component)


@pytest.mark.parametrize("name", BLOCKS)
def test_a_netlist_is_equivalent_to_its_verilog(name):
    assert netlist_is_equivalent(block(name), default_library())


@pytest.mark.parametrize("name", ["product_bf16", "shift_round"])
def test_a_changed_netlist_is_refuted(name):
    emission = block(name)
    netlist = gate_level(emission, default_library())
    changed = netlist.files[f"{name}.v"].replace("NAND2_X1", "NOR2_X1", 1)
    assert changed != netlist.files[f"{name}.v"]
    assert not is_equivalent(emission, replace(netlist, files=netlist.files | {f"{name}.v": changed}))


def test_a_changed_constant_is_refuted():
    """One rounding rule for another: not a fault that random operands meet often."""
    emission = block("shift_round")
    text = emission.files["shift_round.v"]
    place = text.index(" & ", text.index("assign"))
    changed = text[:place] + " | " + text[place + 3:]
    assert not is_equivalent(emission, replace(emission, files={"shift_round.v": changed}))


def test_registers_are_rejected():
    with pytest.raises(CostError, match="onc_add has registers"):
        netlist_is_equivalent(emit(Add()), default_library())
