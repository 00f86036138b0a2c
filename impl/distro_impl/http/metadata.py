"""Metadata of an instance as HTTP clients write them: a JSON object, or pairs. All of it becomes text.

Source: docs/protocol #http-v1.
"""

from __future__ import annotations

import json
from typing import Any

from distro_impl.http.replies import ApiError, ErrorCode
from distro_protos import check_nesting


def metadata_of(text: str) -> dict[str, str]:
    """A JSON object, or `k=v,k=v`."""
    if not text:
        return {}
    try:
        check_nesting(text.encode())
        metadata = json.loads(text, parse_int=str, parse_float=str)
    except ValueError:
        return _metadata_of_pairs(text)
    return text_values("metadata", {} if metadata is None else metadata)


def _metadata_of_pairs(text: str) -> dict[str, str]:
    metadata = {}
    for pair in filter(None, text.split(",")):
        key, separator, value = pair.partition("=")
        if not separator or not value or "=" in value:
            raise ApiError(ErrorCode.INSTANCE_METADATA_ERROR, f"metadata format incorrect:{text}")
        metadata[key] = value
    return metadata


def text_values(name: str, metadata: Any) -> dict[str, str]:
    """Metadata is text; a number or a boolean becomes one, null is left out, anything else is refused."""
    if not isinstance(metadata, dict):
        raise ApiError(ErrorCode.INSTANCE_METADATA_ERROR, f"metadata in param '{name}' is not a JSON object")
    return {printable(key): scalar(name, value) for key, value in metadata.items() if value is not None}


def is_scalar(value: Any) -> bool:
    return isinstance(value, (str, bool, int, float))


def scalar(name: str, value: Any) -> str:
    if isinstance(value, str):
        return printable(value)
    if not is_scalar(value):
        raise ApiError(ErrorCode.INSTANCE_METADATA_ERROR, f"metadata in param '{name}' has a value that is no text")
    return json.dumps(value)


def printable(text: str) -> str:
    """Without lone surrogates, which JSON can say and UTF-8 cannot: such a text could never be replicated."""
    return text.encode("utf-8", "replace").decode("utf-8")
