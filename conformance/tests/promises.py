"""The output that a verb guarantees, for tests that accept no other one."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

from schemas import Schema, schema_of

# jsonschema imports it where it is installed, and its grammar of URIs takes a second; no schema here has a URI.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]


def hold(document: Any, name: str) -> None:
    """Raises where the document has a field that its schema does not promise, or lacks one."""
    _validator(name).validate(document)


@cache
def _validator(name: str) -> Any:
    """Made once: to check the schema itself takes longer than a document."""
    from jsonschema.validators import validator_for  # noqa: PLC0415 - not in each process that collects tests

    kind = validator_for(schema := promised(name))
    kind.check_schema(schema)
    return kind(schema)


def promised(name: str) -> Schema:
    """The schema of one document that lets no further field pass."""
    closed: Schema = _closed(schema_of(name))
    return closed


def _closed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: _closed(value) for key, value in schema.items()}
    if schema.get("type") == "object" and "properties" in schema:
        inner.setdefault("additionalProperties", False)
    return inner
