"""A value of ours as JSON writes it: a dataclass under the names of its fields, down to what JSON has itself.

`tools/json_schema.py` reads the same names off the types, so that a document and its schema are said once, by the type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from distro_protos import Json

_LEAVES = (str, bool, int, float, type(None))


def fields_of(value: Any, *without: str, **otherwise: object) -> Json:
    """Of a dataclass, but for those that are not printed; `otherwise`: what is printed in another way, or besides.

    Seconds are told to the millisecond.
    """
    names = [each.name for each in fields(value) if each.name not in without]
    found: Json = {name: otherwise.pop(name) if name in otherwise else plain(getattr(value, name)) for name in names}
    if "seconds" in found:
        found["seconds"] = round(found["seconds"], 3)
    return {**found, **otherwise}


def plain(value: object) -> Any:
    """What has no form in JSON is told in words."""
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
