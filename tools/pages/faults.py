"""The page of properties and faults: whether each property is still judged after each fault."""

from __future__ import annotations

from distro_model.properties import PROPERTIES
from distro_model.properties.under_faults import FAULTS, NOT_JUDGED
from distro_model.search.system import Kind
from pages.markdown import page, table

_HEAD = (
    "Whether a property of the model is still judged after a fault. `yes`: a rule that breaks the property is found to",
    "break it in a state, or by a transition, that comes after the fault. A number is the reason why it is not.",
    "`make test-tables` searches each cell, and fails where the table is wrong; `make test-all` searches a sample.",
)


def faults_page() -> str:
    judged = [each.id for each in PROPERTIES.values() if each.kind is not Kind.SOMETIMES]
    reasons = list(dict.fromkeys(NOT_JUDGED.values()))

    def cell(property_id: str, fault: str) -> str:
        reason = NOT_JUDGED.get((property_id, fault))
        return "yes" if reason is None else str(reasons.index(reason) + 1)

    rows = ((name, *(cell(name, fault) for fault in FAULTS)) for name in judged)
    return page(
        "Properties after faults",
        _HEAD,
        table(" | ".join(("property", *FAULTS)), rows),
        [f"{number}. {why}." for number, why in enumerate(reasons, start=1)],
        "## Faults",
        [f"* `{each.name}`: {each.sentence}" for each in FAULTS.values()],
    )
