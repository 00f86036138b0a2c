"""The Nacos RPC envelope: the generated messages, and the few facts needed to put a body into one.

Every message to or from a Nacos server is a `Payload`: a type name, headers, a JSON body.
The generated module is never edited by hand; `tools/generate.py` writes it and CI compares.
"""

from distro_protos.envelope import (
    REQUEST_METHOD,
    REQUEST_SERVICE,
    STREAM_METHOD,
    STREAM_SERVICE,
    Json,
    Message,
    UnreadableBodyError,
    decode,
    encode,
    merged_headers,
    read_json,
    without_nulls,
    write_json,
)
from distro_protos.nacos_pb2 import Metadata, Payload
from distro_protos.nesting import MAX_NESTING, check_nesting

__all__ = [
    "MAX_NESTING",
    "REQUEST_METHOD",
    "REQUEST_SERVICE",
    "STREAM_METHOD",
    "STREAM_SERVICE",
    "Json",
    "Message",
    "Metadata",
    "Payload",
    "UnreadableBodyError",
    "check_nesting",
    "decode",
    "encode",
    "merged_headers",
    "read_json",
    "without_nulls",
    "write_json",
]
