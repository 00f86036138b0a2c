"""A value of the kit as JSON: a dataclass becomes an object with the names of its fields, down to JSON's own types.

`tools/json_schema.py` reads the same names from the types, so that a type defines both a document and its schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from distro_protos import Json

_LEAVES = (str, bool, int, float, type(None))


def fields_of(value: Any, *without: str, **otherwise: object) -> Json:
    """The fields of a dataclass except those `without`; `otherwise`: replaced or additional fields.

    Seconds are rounded to the millisecond.
    """
    names = [each.name for each in fields(value) if each.name not in without]
    found: Json = {name: otherwise.pop(name) if name in otherwise else plain(getattr(value, name)) for name in names}
    if "seconds" in found:
        found["seconds"] = round(found["seconds"], 3)
    return {**found, **otherwise}


def plain(value: object) -> Any:
    """A value without a form in JSON becomes its text."""
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, _LEAVES):
        return value
    if is_dataclass(value):
        return fields_of(value)
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return str(value)
