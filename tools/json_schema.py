"""JSON Schema: short functions for schemas, and the schema of a Python type as `plain` writes its values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
NUMBER: Final[Schema] = {"type": "number"}
YES_OR_NO: Final[Schema] = {"type": "boolean"}
ANYTHING: Final[Schema] = {}


def maybe(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def many(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def by_name(schema: Schema) -> Schema:
    return {"type": "object", "additionalProperties": schema}


def fields(optional: Mapping[str, Schema] | None = None, /, **required: Schema) -> Schema:
    return {"type": "object", "required": list(required), "properties": {**required, **(optional or {})}}


def both(one: Schema, other: Schema) -> Schema:
    """The schema of an object with the fields of both."""
    return fields(**{**one["properties"], **other["properties"]})


def of_type(hint: Any) -> Schema:
    """The schema of the values of this type, as `plain` writes them."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    if is_dataclass(hint):
        return of_fields(hint)
    arguments = get_args(hint)
    if isinstance(hint, UnionType):
        (some,) = (each for each in arguments if each is not NoneType)
        return maybe(of_type(some))
    if get_origin(hint) is Literal:
        return {"enum": list(arguments)}
    if get_origin(hint) in (tuple, list):
        return many(of_type(arguments[0]))
    if get_origin(hint) in (dict, Mapping):
        return by_name(of_type(arguments[1]))
    assert issubclass(hint, Enum), f"{hint} has no schema"
    return {"enum": [each.value for each in hint]}


def of_fields(kind: Any, *without: str, **otherwise: Schema) -> Schema:
    """The schema of what `plain.fields_of` writes of a dataclass for the same arguments."""
    hints = {name: hint for name, hint in get_type_hints(kind).items() if name not in without and name not in otherwise}
    return fields(**{name: of_type(hint) for name, hint in hints.items()}, **otherwise)


_PLAIN: Mapping[Any, Schema] = {str: TEXT, int: COUNT, float: NUMBER, bool: YES_OR_NO, Any: ANYTHING, object: ANYTHING}
