"""JSON into typed structures, as Jackson reads it for a Java server.

msgspec reads what is written as declared, which is nearly all there is. What it refuses is looked at once more with
Jackson's laxness: a number may be written as text and text as a number, null leaves an object out and makes a primitive
zero, half of a surrogate pair is a text. Fields that a class does not have are dropped in both. What still cannot
become its field is an error that names the path. Source: docs/protocol #wire-envelope; JacksonUtils.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import inspect

from distro_protos import check_nesting, read_json

JAVA_INT_MIN, JAVA_INT_MAX = -(2**31), 2**31 - 1
MAX_DEPTH = 100
"""Of values whose shape is not declared."""

Int = Annotated[int, msgspec.Meta(ge=JAVA_INT_MIN, le=JAVA_INT_MAX)]
"""A Java `int`."""

_WHOLE = re.compile(r"\s*([+-]?[0-9]{1,19}\s*)?", re.ASCII)

T = TypeVar("T")


class FieldError(ValueError):
    """A value cannot be the field that it stands for; the message names the path."""


class Fields(msgspec.Struct, rename="camel", kw_only=True):
    """A class that is read from JSON. What a primitive is when it is missing is its default; null makes it zero."""


def read(kind: type[T], text: bytes) -> T:
    """Raises FieldError, or ValueError when it is no JSON."""
    try:
        check_nesting(text, MAX_DEPTH)
        found: T = _decoder(kind).decode(text)  # type: ignore[arg-type]
    except (ValueError, RecursionError):  # of msgspec, of the check, of the encoding
        found = convert(kind, read_json(text))
    return found


def convert(kind: Any, value: Any) -> Any:
    """What was read already. Raises FieldError."""
    try:
        return msgspec.convert(_lax(inspect.type_info(kind), value, "$"), kind)
    except msgspec.ValidationError as error:
        raise FieldError(str(error)) from None


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


# Laxness: a value of any shape to one that msgspec takes


def _lax(info: inspect.Type, value: Any, path: str) -> Any:
    """Raises FieldError."""
    if isinstance(info, inspect.UnionType):  # T | None
        if value is None:
            return None
        info = next(each for each in info.types if not isinstance(each, inspect.NoneType))
    reader = _READERS.get(type(info))
    if reader is None:
        return value
    try:
        return reader(info, value, path)
    except FieldError:
        raise
    except (ValueError, OverflowError) as error:
        raise FieldError(f"{path} {error}") from None


def _text(_: inspect.Type, value: Any, __: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float):
        raise ValueError("is not text")
    return str(value)


def _whole(_: inspect.Type, value: Any, __: str) -> int:
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value.strip() or 0)
    if isinstance(value, float) and math.isfinite(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("is not a whole number")
    return value


def _real(_: inspect.Type, value: Any, __: str) -> float:
    if isinstance(value, bool | dict | list):
        raise ValueError("is not a number")
    number = float(value.strip() or 0) if isinstance(value, str) else float(value)
    if not math.isfinite(number):
        raise ValueError("is not finite")
    return number


def _flag(_: inspect.Type, value: Any, __: str) -> bool:
    if isinstance(value, bool | int):
        return bool(value)
    if isinstance(value, str) and value.strip().lower() in ("true", "false", ""):
        return value.strip().lower() == "true"
    raise ValueError("is neither true nor false")


def _anything(_: inspect.Type, value: Any, path: str, depth: int = MAX_DEPTH) -> Any:
    if not depth:
        raise FieldError(f"{path} is nested deeper than {MAX_DEPTH}")
    if isinstance(value, dict):
        return {key: _anything(_, item, path, depth - 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_anything(_, item, path, depth - 1) for item in value]
    return value


def _map(info: inspect.DictType, value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("is not an object")
    return {key: _lax(info.value_type, item, f"{path}.{key}") for key, item in value.items() if item is not None}


def _list(info: inspect.ListType, value: Any, path: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("is not a list")
    return [_lax(info.item_type, item, f"{path}[{at}]") for at, item in enumerate(value) if item is not None]


def _fields(info: inspect.StructType, value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("is not an object")
    found = {}
    for field in info.fields:
        name = field.encode_name
        if name not in value:
            continue
        item = value[name]
        if item is not None:
            found[name] = _lax(field.type, item, f"{path}.{name}")
        elif type(field.type) in _ZERO:
            found[name] = _ZERO[type(field.type)]
    return found


_READERS: Mapping[type, Callable[[Any, Any, str], Any]] = {
    inspect.StrType: _text,
    inspect.IntType: _whole,
    inspect.FloatType: _real,
    inspect.BoolType: _flag,
    inspect.AnyType: _anything,
    inspect.DictType: _map,
    inspect.ListType: _list,
    inspect.StructType: _fields,
}
_ZERO: Mapping[type, Any] = {inspect.IntType: 0, inspect.FloatType: 0.0, inspect.BoolType: False}
"""What null means for a Java primitive."""
