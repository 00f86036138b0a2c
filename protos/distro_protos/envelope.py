"""Encoding and decoding of the Nacos envelope.

One place for the three facts that every speaker needs: the method paths, which class name stands for which body,
and how the body is written (JSON without nulls, in an `Any` whose `type_url` stays empty). What a body *means* is
not decided here. Source: docs/protocol #wire-envelope and #wire-errors.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from distro_protos.nacos_pb2 import Payload
from distro_protos.nesting import check_nesting

REQUEST_SERVICE, REQUEST_METHOD = "Request", "request"
"""The unary call, on the wire `/Request/request`."""

STREAM_SERVICE, STREAM_METHOD = "BiRequestStream", "requestBiStream"
"""The bidirectional stream, on the wire `/BiRequestStream/requestBiStream`."""

Json = dict[str, Any]


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refused)
_WRITER = msgspec.json.Encoder(enc_hook=dict)
"""Fast; `dict` is for mappings of other kinds. What it refuses, the standard library writes."""


def _plain(value: Any) -> Any:
    """What the standard library does not know: mappings of other kinds, and JSON that is written already."""
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else dict(value)


_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, default=_plain)


_TEXTS_AND_NUMBERS = (str, int, float, msgspec.Raw)
_MAPPINGS = (dict, Mapping)
"""Nearly all are of the first kind, which is found at once."""


class UnreadableBodyError(ValueError):
    """The body of a payload is not a JSON object; the type name is still known."""

    def __init__(self, type_name: str, reason: str) -> None:
        super().__init__(f"the body of {type_name or 'a payload without a type'} is unreadable: {reason}")
        self.type_name = type_name


@dataclass(frozen=True, slots=True)
class Message:
    """A decoded payload: `type` is the simple Java class name, `body` its JSON object."""

    type: str
    body: Json
    headers: Mapping[str, str] = field(default_factory=dict)
    client_ip: str = ""

    @property
    def is_response(self) -> bool:
        return self.type.endswith("Response")

    @property
    def succeeded(self) -> bool:
        """Java's reading: only `resultCode == 200` is success; `errorCode` is not looked at
        (docs/protocol #sync-result)."""
        return self.is_response and self.body.get("resultCode", 200) == 200

    def __str__(self) -> str:
        """For people: how it ended and, where that is not plain success, what it says of that."""
        if not self.is_response:
            return self.type
        if self.succeeded and not self.body.get("errorCode"):
            return f"success ({self.type})"
        codes = "/".join(str(self.body[name]) for name in ("resultCode", "errorCode") if name in self.body)
        reason = f": {self.body['message']}" if self.body.get("message") else ""
        return f"{'success' if self.succeeded else 'failure'} ({self.type} {codes}{reason})"


def read_json(text: bytes) -> Any:
    """JSON as a server reads it. Raises ValueError, also for NaN, for infinities and for what is nested too deep."""
    check_nesting(text)
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # It may be half of a surrogate pair, or a number beyond all bounds. Where it is no UTF-8, versions of msgspec
        # raise one error or the other, and count bytes from different places; here it is the place in the message.
        return _DECODER.decode(str(text, "utf-8"))


def write_json(value: Mapping[str, Any] | list[Any]) -> bytes:
    """Compact JSON in UTF-8.

    Half of a surrogate pair, which JSON can escape and UTF-8 cannot hold, becomes a question mark as in Java.
    """
    try:
        return _WRITER.encode(value)
    except (UnicodeEncodeError, OverflowError):
        return _ENCODER.encode(value).encode(errors="replace")


def encode(
    type_name: str, body: Mapping[str, Any], *, headers: Mapping[str, str] | None = None, client_ip: str = ""
) -> Payload:
    """Put a JSON body into an envelope. Fields that are None are left out, as Nacos' writer does."""
    written = write_json(without_nulls(body) if _has_nulls((body,)) else body)
    payload = Payload()  # filled field by field, which costs a tenth of handing the fields to the constructors
    metadata = payload.metadata
    metadata.type = type_name
    if client_ip:
        metadata.client_ip = client_ip
    if headers:
        metadata.headers.update(headers)
    payload.body.value = written
    return payload


def decode(payload: Payload) -> Message:
    """Take the body out of an envelope.

    Headers of the envelope win over headers inside the body (the Python SDK sends both, docs/protocol #wire-envelope).
    Raises UnreadableBodyError when the body is not a JSON object, or its headers are no texts. See `read_json`.
    """
    metadata = payload.metadata
    type_name = metadata.type
    try:
        body = read_json(payload.body.value or b"null")
    except ValueError as error:
        raise UnreadableBodyError(type_name, str(error)) from error
    if not isinstance(body, dict):
        raise UnreadableBodyError(type_name, "it is not a JSON object")
    try:
        headers = merged_headers(_header_texts(body.get("headers")), metadata.headers)
    except ValueError as error:
        raise UnreadableBodyError(type_name, str(error)) from error
    return Message(type_name, body, headers, metadata.client_ip)


def merged_headers(inside: Mapping[str, str], envelope: Mapping[str, str]) -> Mapping[str, str]:
    """Those inside the body, and over them those of the envelope, which cost more to look at than to count."""
    return {**inside, **envelope} if envelope else inside


def _header_texts(headers: object) -> dict[str, str]:
    """Headers inside of a body, `Map<String, String>` to a server: a number becomes a text, null is none.

    Raises ValueError.
    """
    if not headers:
        return {}
    if not isinstance(headers, dict):
        raise ValueError("its headers are not an object")
    texts = {}
    for name, value in headers.items():
        if isinstance(value, str):
            texts[name] = value
        elif isinstance(value, int | float):
            texts[name] = json.dumps(value)
        elif value is not None:
            raise ValueError(f"its header {name!r} is no text")
    return texts


def _has_nulls(values: Iterable[Any]) -> bool:
    """Whether one of them is None, at any depth. Texts are not looked into: those of base64 and of JSON are long."""
    for value in values:
        if isinstance(value, _TEXTS_AND_NUMBERS):
            continue
        if value is None or _has_nulls(value.values() if isinstance(value, _MAPPINGS) else value):
            return True
    return False


def without_nulls(value: Any) -> Any:
    """Without fields that are None, at any depth, as Nacos' writer leaves them out."""
    if isinstance(value, str | int):  # nearly all there is; the test below is slow
        return value
    if isinstance(value, Mapping):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [without_nulls(item) for item in value]
    return value
