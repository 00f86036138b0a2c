"""The table of requirements and variations: no cell is empty, and each name in a cell exists."""

from __future__ import annotations

from pages.variations import AREAS, OWN, VARIATIONS, Kind, cell

from distro_conformance.requirements import all_requirements

KNOWN = {each.id for each in all_requirements()}


def test_each_requirement_says_of_each_variation_whether_it_is_judged() -> None:
    cells = {
        (requirement, variation): cell(requirement, variation) for requirement in KNOWN for variation in VARIATIONS
    }
    assert [place for place, found in cells.items() if found is None] == []
    assert [place for place, found in cells.items() if found and not {*found.by} <= KNOWN] == []
    assert [place for place, found in cells.items() if found and found.kind is not Kind.JUDGED and not found.why] == []


def test_a_requirement_of_a_new_area_has_empty_cells() -> None:
    assert [cell("DISTRO-NEWAREA-001", variation) for variation in VARIATIONS] == [None] * len(VARIATIONS)


def test_cells_are_of_requirements_and_variations_that_exist_and_say_something_else_than_their_area() -> None:
    assert AREAS.keys() == {each.split("-")[1] for each in KNOWN}
    assert {f"DISTRO-{each}" for each in OWN} <= KNOWN
    for row in (*AREAS.values(), *OWN.values()):
        assert set(row) <= set(VARIATIONS)
    repeated = [
        (name, variation)
        for name, row in OWN.items()
        for variation, found in row.items()
        if AREAS[name.split("-")[0]][variation] == found
    ]
    assert repeated == []
