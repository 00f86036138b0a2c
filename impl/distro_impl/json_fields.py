"""How a JSON value becomes a field of a declared type: what Jackson does for a Java server.

Fields that a class does not have are dropped, a number may be written as text and text as a number, null leaves an
object out and makes a primitive zero. A value that cannot become the field is an error that names its path. Source:
docs/protocol #wire-envelope; JacksonUtils.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Mapping
from typing import Any

from distro_protos import Json

JAVA_INT_MIN, JAVA_INT_MAX = -(2**31), 2**31 - 1
JAVA_LONG_MIN, JAVA_LONG_MAX = -(2**63), 2**63 - 1
MAX_DEPTH = 100
"""Of values whose shape is not declared."""

Field = Callable[[Any], Any]
"""Reads one value. Raises ValueError when it cannot be this field; never called with None."""


class FieldError(ValueError):
    """A value cannot be the field that it stands for; the message names the path."""


def text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise ValueError("is not text")


def enum(*names: str) -> Field:
    """Text of a Java enum: an unknown one is an error."""

    def read(value: Any) -> str:
        if not isinstance(value, str) or value not in names:
            raise ValueError(f"is none of {', '.join(names)}")
        return value

    return read


def _whole(lowest: int, highest: int) -> Field:
    def read(value: Any) -> int:
        if isinstance(value, str):
            value = int(value.strip() or 0) if value.isascii() and "_" not in value else value
        if isinstance(value, float) and math.isfinite(value):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError("is not a whole number")
        if not lowest <= value <= highest:
            raise ValueError(f"is not between {lowest} and {highest}")
        return value

    return read


integer = _whole(JAVA_INT_MIN, JAVA_INT_MAX)
long = _whole(JAVA_LONG_MIN, JAVA_LONG_MAX)


def real(value: Any) -> float:
    if isinstance(value, str):
        value = value.strip() or 0
    if isinstance(value, bool | dict | list):
        raise ValueError("is not a number")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError("is too large") from None
    if not math.isfinite(number):
        raise ValueError("is not finite")
    return number


def flag(value: Any) -> bool:
    if isinstance(value, bool | int):
        return bool(value)
    if isinstance(value, str) and value.strip().lower() in ("true", "false", ""):
        return value.strip().lower() == "true"
    raise ValueError("is neither true nor false")


def bytes_text(value: Any) -> str:
    """`byte[]`: Base64 with padding. Stays text."""
    if not isinstance(value, str):
        raise ValueError("is not Base64")
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"is not Base64: {error}") from None
    return value


def anything(value: Any, depth: int = MAX_DEPTH) -> Any:
    """A value whose shape nobody declares, of bounded depth."""
    if not depth:
        raise ValueError(f"is nested deeper than {MAX_DEPTH}")
    if isinstance(value, dict):
        return {key: anything(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list):
        return [anything(item, depth - 1) for item in value]
    return value


def map_of(field: Field) -> Field:
    def read(value: Any) -> Json:
        if not isinstance(value, dict):
            raise ValueError("is not an object")
        return {key: read_field(key, field, item) for key, item in value.items() if item is not None}

    return read


def list_of(field: Field) -> Field:
    def read(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise ValueError("is not a list")
        return [read_field(str(index), field, item) for index, item in enumerate(value) if item is not None]

    return read


def fields(**known: Field) -> Field:
    """An object of a class with these fields."""

    def read(value: Any) -> Json:
        if not isinstance(value, dict):
            raise ValueError("is not an object")
        found = {}
        for name, field in known.items():
            if name in value:
                item = value[name]
                if item is not None:
                    found[name] = read_field(name, field, item)
                elif field in _ZERO:
                    found[name] = _ZERO[field]
        return found

    return read


_ZERO: Mapping[Field, Any] = {integer: 0, long: 0, real: 0.0, flag: False}
"""What null means for a Java primitive."""


def read_field(name: str, field: Field, value: Any) -> Any:
    try:
        return field(value)
    except FieldError as error:
        raise FieldError(f"{name}.{error}") from None
    except ValueError as error:
        raise FieldError(f"{name} {error}") from None
