"""area/sweeps/page.py and scatter.py: one page that needs nothing else, in light and dark."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from area.sweeps.page import write_page
from area.sweeps.scatter import Mark, scatter
from area.sweeps.table import make_table
from tests.sweep_results import FAILED, FRONT, made_up_results, made_up_sweep

FACTS = {"config": "nano", "library": "cells & more", "timer": "abc", "seed": 1}


class Page(HTMLParser):
    """The page's elements as (name, attributes), its tables as rows of words, and its text."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.tables, self.text, self.in_cell = [], [], "", False
        self.feed(text)

    def handle_starttag(self, name, attributes):
        self.elements.append((name, dict(attributes)))
        if name == "table":
            self.tables.append([])
        elif name == "tr":
            self.tables[-1].append([])
        elif name in ("td", "th"):
            self.tables[-1][-1].append("")
            self.in_cell = True

    def handle_endtag(self, name):
        self.in_cell = self.in_cell and name not in ("td", "th")

    def handle_data(self, data):
        self.text += data
        if self.in_cell:
            self.tables[-1][-1][-1] += data.strip()

    def all(self, name):
        return [attributes for element, attributes in self.elements if element == name]


def page_of(sweep, results, folder):
    return write_page(sweep, make_table(sweep, results), FACTS, folder).read_text()


@pytest.fixture
def text(tmp_path):
    return page_of(made_up_sweep(), made_up_results(), tmp_path)


def outside(text):
    """What of a page comes from elsewhere."""
    addresses = re.findall(r"(?:href|src|action)=[\"']?[^\"' >]+|url\([^)]*\)|@import|fetch\(", text)
    return addresses + re.findall(r"<(?:link|iframe|img|object)\b", text) + re.findall(r"https?://\S+", text)


def test_the_page_needs_nothing_else(text):
    assert outside(text) == []


def test_what_comes_from_elsewhere_is_found():
    assert outside('<script src="https://a.b/c.js">') and outside("<style>@import url(x.css)</style>")
    assert outside('<a href="x">') and outside("<img>")


def test_the_page_repeats(text, tmp_path):
    assert page_of(made_up_sweep(), made_up_results(), tmp_path) == text


def test_the_table_holds_every_point_and_marks_the_front(text):
    page = Page(text)
    head, *rows = page.tables[0]
    assert head[:4] == ["point", "front", "rows", "formats"] and "areamm²" in head and "throughputGFLOP/s" in head
    assert len(rows) == 6 and all(len(row) == len(head) for row in rows)
    assert [int(row[0]) for row in rows if row[1] == "★"] == FRONT
    assert rows[0][head.index("throughputGFLOP/s")] == "10" and rows[FAILED - 1][head.index("areamm²")] == "–"
    assert "nan" not in page.text.lower().split()


def test_every_cell_says_what_it_is_sorted_by(text):
    page = Page(text)
    columns = len(page.tables[0][0])
    assert len([cell for cell in page.all("td") if "data-value" in cell]) == 6 * columns
    assert len(page.all("button")) == columns


def test_failures_are_told_in_full_and_are_no_markup(text):
    failures = Page(text).tables[1]
    assert [row[0] for row in failures[1:]] == [str(FAILED)]
    assert failures[1][1] == "RuntimeError: <yosys> gave up\nand said why" and "<yosys>" not in text


def test_facts_and_hashes_are_there(text):
    assert "cells & more" in Page(text).text and "cells &amp; more" in text
    hashes = Page(text).tables[2][1:]
    assert [row[1] for row in hashes] == [result.key for result in made_up_results()]
    designs = [result.designs for result in made_up_results()]
    assert [row[2] for row in hashes] == [each.costed if each else "–" for each in designs]


def colours(text):
    """Colours that are named outside the page's two palettes."""
    style = re.search(r"<style>(.*?)</style>", text, re.S)[1]
    rest = text.replace(style, "") + re.sub(r":root \{.*?\}", "", style, flags=re.S)
    return re.findall(r"(?:fill|stroke|color|background)[:=]\s*\"?(#\w+|black|white|rgb)", rest)


def palettes(text):
    return [set(re.findall(r"(--\w+):", block)) - {"--lit"} for block in re.findall(r":root \{(.*?)\}", text, re.S)]


def test_dark_has_a_colour_for_everything_that_light_has(text):
    light, dark = palettes(text)
    assert light == dark and "prefers-color-scheme: dark" in text and colours(text) == []
    assert set(re.findall(r"var\((--\w+)\)", text)) - {"--lit"} == light


def test_a_fixed_colour_is_found(text):
    assert colours(text.replace('class="grid"', 'class="grid" fill="#123456"')) != []


def test_points_without_throughput_have_a_page_too(tmp_path):
    results = [replace(result, figures={"area_mm2": 1.0, "clock_ghz": 2.0}) for result in made_up_results()]
    page = Page(page_of(made_up_sweep(), results, tmp_path))
    assert page.tables[0][0][:3] == ["point", "rows", "formats"]
    assert len(page.all("svg")) == 1 + 2  # the plot, the legend


def test_nothing_at_all_has_a_page_too(tmp_path):
    results = [replace(result, figures={}, error="no") for result in made_up_results()]
    page = Page(page_of(made_up_sweep(), results, tmp_path))
    assert len(page.tables[1]) == 7 and page.all("svg") == []


# Plots

MARKS = [Mark(1.0, 10.0, 0, 1, "one & only", True), Mark(2.0, 30.0, 1, 2, "two", True), Mark(1.5, 5.0, 1, 3, "three")]


def drawn(marks):
    return ElementTree.fromstring(scatter(marks, "area, mm²", "throughput, GFLOP/s"))


def places(svg):
    return {mark.get("data-point"): tuple(map(float, re.findall(r"[\d.]+", mark.get("transform"))))
            for mark in svg.findall("path[@data-point]")}


def test_marks_stand_where_their_values_are():
    svg = drawn(MARKS)
    place = places(svg)
    assert place["1"][0] < place["3"][0] < place["2"][0] and place["2"][1] < place["1"][1] < place["3"][1]
    assert [title.text for title in svg.iter("title")] == ["one & only", "two", "three"]
    front = svg.find("polyline").get("points").split()
    assert [tuple(map(float, point.split(","))) for point in front] == [place["1"], place["2"]]
    assert [text.text for text in svg.findall("text[@class='number']")] == ["1", "2"]


def inside(svg):
    _, _, width, height = map(float, svg.get("viewBox").split())
    return all(0 < x < width and 0 < y < height for x, y in places(svg).values())


@pytest.mark.parametrize("scale", [1e-6, 1, 1e6])
def test_marks_stay_inside_whatever_the_scale(scale):
    assert inside(drawn([Mark(mark.x * scale, mark.y / scale, 0, mark.number, "") for mark in MARKS]))
    assert inside(drawn([Mark(scale, 0.0, 0, 1, "")]))


def test_values_of_very_different_size_get_a_logarithmic_scale():
    place = places(drawn([Mark(10.0 ** power, 1.0, 0, power, "") for power in range(1, 5)]))
    steps = [place[str(power + 1)][0] - place[str(power)][0] for power in range(1, 4)]
    assert max(steps) - min(steps) < 0.5


def test_numbers_do_not_run_into_each_other():
    crowd = [Mark(1 + number / 1000, 10 + number / 1000, 0, number, "", True) for number in range(50)]
    numbers = [(float(text.get("x")), float(text.get("y"))) for text in drawn(crowd).findall("text[@class='number']")]
    assert 1 <= len(numbers) < 10
    assert all(abs(x - a) > 20 or abs(y - b) > 13 for i, (x, y) in enumerate(numbers) for a, b in numbers[:i])
