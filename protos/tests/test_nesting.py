"""What is nested too deep is refused before a decoder follows it, and nothing else is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distro_protos import MAX_NESTING, check_nesting, read_json

texts = st.text('[]{}"\\a', max_size=6)
values: st.SearchStrategy[Any] = st.recursive(
    texts, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=8
)


def nested(levels: int, inner: bytes = b"1") -> bytes:
    return b"[" * levels + inner + b"]" * levels


def levels_of(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(levels_of, inner), default=0)


@given(values)
def test_levels_are_counted_as_a_decoder_counts_them(value: Any) -> None:
    text = nested(MAX_NESTING - 2, json.dumps(value).encode())
    if levels_of(value) <= 2:
        check_nesting(text)
        assert levels_of(read_json(text)) == MAX_NESTING - 2 + levels_of(value)
    else:
        with pytest.raises(ValueError, match="it is nested deeper than 500"):
            check_nesting(text)


@given(st.lists(st.sampled_from([b"[" * 1_500, b'{"a":' * 1_500, b'"', b"\\", b"]", b"}", b",", b"1"]), max_size=8))
def test_what_is_no_json_is_refused_and_never_too_late(parts: list[bytes]) -> None:
    """A decoder that went so deep would end in a RecursionError."""
    with pytest.raises(ValueError, match=r"\w"):
        read_json(nested(400, b"".join(parts)) + b"[")


def test_there_is_no_bound_to_what_stands_side_by_side() -> None:
    text = json.dumps([{"metadata": {"text": "[{" * 1_000}}] * 1_000)
    assert len(read_json(text.encode())) == 1_000
