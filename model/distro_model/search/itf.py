"""A run in the Informal Trace Format, which the trace viewers and test drivers of Apalache and Quint read.

Source: Apalache's ADR-015, "Informal Trace Format in JSON" (https://apalache-mc.org/docs/adr/015adr-trace.html).
Each column of the system is a variable. What the format leaves open is decided here so:

* integers are always `#bigint`, tuples `#tup`, frozen sets `#set`, mappings `#map`, lists JSON arrays;
* a dataclass or a named tuple is a variant, `{"tag": class name, "value": record of its fields}`, as columns hold
  values of several classes; None is the variant "None" of an empty tuple; both are what Quint and Apalache write for
  sum types. Fields that do not count in a comparison are left out: they are not part of the state;
* an enum is the string that is its value, or else its name;
* what the format has no word for (a float, bytes) is `#unserializable`, as Apalache does it;
* how a state was reached is in its own `#meta`: `action` (the chain) and `label`;
* `loop` is the state that begins the loop; the last state is that state again, as in Apalache's own lassos.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum

from distro_model.search.results import Run
from distro_model.search.system import ContradictionError, Row, System, Transition

Json = None | bool | int | str | list["Json"] | dict[str, "Json"]

FORMAT_DESCRIPTION = "https://apalache-mc.org/docs/adr/015adr-trace.html"


def itf(system: System, run: Run, source: str = "distrocheck") -> dict[str, Json]:
    """The document, ready for `json.dumps`. `source`: where the run comes from, for a reader.

    Raises ContradictionError where a column has a name that the format keeps for itself.
    """
    reserved = [column for column in system.columns if column.startswith("#")]
    if reserved:
        raise ContradictionError(f"column {reserved[0]}: a variable in an ITF trace must not begin with #; rename it")
    steps = [None, *run.transitions]
    document: dict[str, Json] = {
        "#meta": {
            "format": "ITF",
            "format-description": FORMAT_DESCRIPTION,
            "source": source,
            "property": run.finding.property_id,
            "description": run.finding.what,
        },
        "vars": [*system.columns],
        "states": [
            _state(system, index, row, step) for index, (row, step) in enumerate(zip(run.rows, steps, strict=True))
        ],
    }
    if run.loop_from is not None:
        document["loop"] = run.loop_from
    return document


def _state(system: System, index: int, row: Row, reached_by: Transition | None) -> dict[str, Json]:
    meta: dict[str, Json] = {"index": index}
    if reached_by is not None:
        meta["action"] = reached_by.chain.name
        if reached_by.label is not None:
            meta["label"] = str(reached_by.label)
    values = {column: expression(value) for column, value in zip(system.columns, row, strict=True)}
    return {"#meta": meta, **values}


def expression(value: object) -> Json:
    """One value as an ITF expression."""
    match value:
        case Enum():
            return value.value if isinstance(value.value, str) else value.name
        case bool() | str():
            return value
        case int():
            return {"#bigint": str(value)}
        case None:
            return {"tag": "None", "value": {"#tup": []}}
        case list():
            return [expression(each) for each in value]
        case frozenset() | set():
            return {"#set": [expression(each) for each in sorted(value, key=repr)]}
        case Mapping():
            return {"#map": [[expression(key), expression(each)] for key, each in value.items()]}
        case tuple() if hasattr(value, "_asdict"):
            return _variant(value, value._asdict())
        case tuple():
            return {"#tup": [expression(each) for each in value]}
    if is_dataclass(value) and not isinstance(value, type):
        return _variant(value, {each.name: getattr(value, each.name) for each in fields(value) if each.compare})
    return {"#unserializable": repr(value)}


def _variant(value: object, members: Mapping[str, object]) -> Json:
    return {"tag": type(value).__name__, "value": {name: expression(each) for name, each in members.items()}}
