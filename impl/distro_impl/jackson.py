"""JSON decoded into typed structures, with the same result as Jackson in a Java server.

msgspec decodes JSON with exactly the declared types, which is nearly all JSON. If it refuses a value, the value is
decoded again as leniently as Jackson does: a number may be written as text and text as a number; null means an absent
object or a primitive that is zero; half of a surrogate pair is valid text. Both ignore fields that a class does not
have. A value that still does not fit its field is an error that names the path. Source: docs/protocol #wire-envelope;
JacksonUtils.
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
"""The largest depth of values without a declared type."""

Int = Annotated[int, msgspec.Meta(ge=JAVA_INT_MIN, le=JAVA_INT_MAX)]
"""A Java `int`."""

_WHOLE = re.compile(r"\s*([+-]?[0-9]{1,19}\s*)?", re.ASCII)

T = TypeVar("T")


class FieldError(ValueError):
    """A value that does not fit its field. The message names the path."""


class Fields(msgspec.Struct, rename="camel", kw_only=True):
    """A class that is read from JSON. A missing primitive has its default; null means zero."""


def read(kind: type[T], text: bytes) -> T:
    """The text as an object of that class. Raises FieldError, or ValueError if the text is no JSON."""
    try:
        check_nesting(text, MAX_DEPTH)
        found: T = _decoder(kind).decode(text)  # type: ignore[arg-type]
    except (ValueError, RecursionError):  # raised by msgspec, by the check, or by the decoding of UTF-8
        found = convert(kind, read_json(text))
    return found


def convert(kind: Any, value: Any, *, nulls_and_depth_matter: bool = True) -> Any:
    """A value that is decoded already, as an object of that class. Raises FieldError.

    `nulls_and_depth_matter` False: the caller checks values without a declared type (`undeclared`). Then a value that
    msgspec accepts needs no further check, which is faster.
    """
    try:
        if not nulls_and_depth_matter:
            return msgspec.convert(value, kind)
    except (msgspec.ValidationError, RecursionError):
        pass
    try:
        return msgspec.convert(_at(_lax(kind), value, "$"), kind)
    except _WrongError as error:
        raise FieldError(f"{error.where} {error.why}") from None
    except msgspec.ValidationError as error:
        raise FieldError(str(error)) from None


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


# Lenient decoding: from any value to one that msgspec accepts

_Reader = Callable[[Any], Any]
"""The decoder of one place in a class. Raises _WrongError, ValueError or OverflowError."""


class _WrongError(Exception):
    """A value inside the one that is being decoded does not fit its place."""

    def __init__(self, where: str, why: object) -> None:
        self.where, self.why = where, why


@cache
def _lax(kind: Any) -> _Reader:
    """The lenient decoder of a class. It is cached, since making it takes longer than decoding a hundred objects."""
    return _reader(inspect.type_info(kind))


def _at(reader: _Reader, value: Any, where: str) -> Any:
    """Decode the value at a place; an error names the place."""
    try:
        return reader(value)
    except _WrongError as error:
        error.where = where + error.where
        raise
    except (ValueError, OverflowError) as error:
        raise _WrongError(where, error) from None


def _reader(info: inspect.Type) -> _Reader:
    match info:
        case inspect.UnionType():  # T | None
            inner = _reader(next(each for each in info.types if not isinstance(each, inspect.NoneType)))
            return lambda value: None if value is None else inner(value)
        case inspect.StructType():
            return _fields(info)
        case inspect.DictType():
            return _map(_reader(info.value_type))
        case inspect.ListType():
            return _list(_reader(info.item_type))
    return _LEAVES.get(type(info), _as_it_is)


def _as_it_is(value: Any) -> Any:
    return value


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, int | float):
        raise ValueError("is not text")
    return str(value)


def _whole(value: Any) -> int:
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value.strip() or 0)
    if isinstance(value, float) and math.isfinite(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("is not a whole number")
    return value


def _real(value: Any) -> float:
    if isinstance(value, bool | dict | list):
        raise ValueError("is not a number")
    number = float(value.strip() or 0) if isinstance(value, str) else float(value)
    if not math.isfinite(number):
        raise ValueError("is not finite")
    return number


def _flag(value: Any) -> bool:
    if isinstance(value, bool | int):
        return bool(value)
    if isinstance(value, str) and value.strip().lower() in ("true", "false", ""):
        return value.strip().lower() == "true"
    raise ValueError("is neither true nor false")


def undeclared(value: Any, depth: int = MAX_DEPTH) -> Any:
    """A value without a declared type. Raises ValueError if it is nested too deep to be encoded again."""
    if not isinstance(value, dict | list):
        return value
    if not depth:
        raise ValueError(f"is nested deeper than {MAX_DEPTH}")
    if isinstance(value, dict):
        return {key: undeclared(item, depth - 1) for key, item in value.items()}
    return [undeclared(item, depth - 1) for item in value]


def _map(reader: _Reader) -> _Reader:
    def read_map(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ValueError("is not an object")
        return {key: _at(reader, item, f".{key}") for key, item in value.items() if item is not None}

    return read_map


def _list(reader: _Reader) -> _Reader:
    def read_list(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise ValueError("is not a list")
        return [_at(reader, item, f"[{at}]") for at, item in enumerate(value) if item is not None]

    return read_list


def _fields(info: inspect.StructType) -> _Reader:
    places = {
        field.encode_name: (_reader(field.type), f".{field.encode_name}", _ZERO.get(type(field.type)))
        for field in info.fields
    }

    def read_fields(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ValueError("is not an object")
        found = {}
        for name, item in value.items():
            if name in places:
                reader, where, zero = places[name]
                if item is not None:
                    found[name] = _at(reader, item, where)
                elif zero is not None:
                    found[name] = zero
        return found

    return read_fields


_LEAVES: Mapping[type, _Reader] = {
    inspect.StrType: _text,
    inspect.IntType: _whole,
    inspect.FloatType: _real,
    inspect.BoolType: _flag,
    inspect.AnyType: undeclared,
}
_ZERO: Mapping[type, Any] = {inspect.IntType: 0, inspect.FloatType: 0.0, inspect.BoolType: False}
"""The value of a Java primitive for null."""
