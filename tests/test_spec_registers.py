"""spec/registers.py: no two registers in one place, all in the window, and the page current."""

import pytest

from docs.pages.registers import PAGE, page
from spec.registers import REGISTER_MAP, WINDOW_BITS, find_register


def test_registers_do_not_overlap():
    places = [register.address(index) for register in REGISTER_MAP for index in range(register.count)]
    assert len(set(places)) == len(places) and all(place % 4 == 0 and 0 <= place < 1 << WINDOW_BITS for place in places)


def test_fields_fit_their_register():
    assert all(sum(bits for _, bits, _ in register.fields) <= 32 for register in REGISTER_MAP)


def test_registers_are_found_by_name():
    assert find_register("ring_size").address(3) == 0x408 + 3 * 0x20
    with pytest.raises(IndexError):
        find_register("ring_size").address(16)
    with pytest.raises(KeyError):
        find_register("nothing")


def test_the_page_is_current():
    assert PAGE.read_text() == page(), "run python -m docs.pages.registers"
