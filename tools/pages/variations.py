"""The page that says of each requirement whether it is judged where there is more than one of something."""

from __future__ import annotations

from distro_conformance.requirements import all_requirements
from distro_conformance.requirements.variations import VARIATIONS, Cell, Kind, cell
from pages.markdown import page, table

_HEAD = (
    "A defect that shows only with two clients of one service, in a batch, at the second change or after a removal",
    "passes a check that has one of each. `judged`: the check of the requirement has the variation; an id: the check",
    "of that requirement has it. `same` and `none`: it is the same code, or there is no such case, for the reason",
    "with that number.",
)
_WORDS = {Kind.SAME: "same", Kind.NEVER: "none"}


def variations_page() -> str:
    rows = [(each.id, [cell(each.id, name) for name in VARIATIONS]) for each in all_requirements()]
    reasons = list(dict.fromkeys(each.why for _, cells in rows for each in cells if each and each.why))

    def text(requirement: str, found: Cell | None) -> str:
        if found is None:
            return "?"
        if found.kind is not Kind.JUDGED:
            return f"{_WORDS[found.kind]} {reasons.index(found.why) + 1}"
        others = [each.removeprefix("DISTRO-") for each in found.by if each != requirement]
        return ", ".join(others) if requirement not in found.by and others else "judged"

    return page(
        "Requirements and variations",
        _HEAD,
        table(
            " | ".join(("requirement", *VARIATIONS)),
            ((name.removeprefix("DISTRO-"), *(text(name, each) for each in cells)) for name, cells in rows),
        ),
        [f"{number}. {why[:1].upper()}{why[1:]}." for number, why in enumerate(reasons, start=1)],
    )
