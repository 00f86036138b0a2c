"""The table of variations, docs/explanation/variations.md: each area has every cell, and what a cell names exists."""

from __future__ import annotations

import re
from pathlib import Path

from distro_conformance.requirements import all_requirements

KNOWN = {each.id.removeprefix("DISTRO-") for each in all_requirements()}
TEXT = Path(__file__).parents[2].joinpath("docs/explanation/variations.md").read_text("utf-8")
_, _, *LINES = ([cell.strip() for cell in line.split("|")[1:-1]] for line in TEXT.splitlines() if line.startswith("|"))
ROWS = {name.strip("*"): cells for name, *cells in LINES}
REASONS = set(re.findall(r"^(\d+)\. ", TEXT, re.MULTILINE))


def area_of(requirement: str) -> str:
    return requirement.partition("-")[0]


def test_each_area_says_of_each_variation_whether_it_is_judged() -> None:
    areas = {name for name in ROWS if "-" not in name}
    assert areas == set(map(area_of, KNOWN))
    assert [name for name in areas if not all(ROWS[name])] == []


def test_each_cell_names_requirements_and_reasons_that_exist() -> None:
    used = [cell for cells in ROWS.values() for cell in cells if cell not in ("", "judged")]
    reasons = {cell.split()[1] for cell in used if cell.startswith(("same ", "none "))}
    assert reasons == REASONS
    assert {name for cell in used if not cell.startswith(("same ", "none ")) for name in cell.split(", ")} <= KNOWN


def test_a_row_of_one_requirement_says_something_else_than_its_area() -> None:
    own = {name: cells for name, cells in ROWS.items() if "-" in name}
    assert own.keys() <= KNOWN
    for name, cells in own.items():
        assert any(cells), name
        assert not any(cell and cell == usual for cell, usual in zip(cells, ROWS[area_of(name)], strict=True)), name
