"""The hash codes of Java, as far as servers let them travel or act on them.

Two things hang on them that all members must agree on: who owns an ip:port client, and the revision of such a client.
Source: docs/protocol #verify-round and #owner-place; values of running servers are pinned in the tests.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Set

BITS_32 = 0xFFFFFFFF


def java_hash(value: object) -> int:
    """`hashCode` of what the JSON reader of a server makes of `value`, as a signed 32-bit number.

    Raises TypeError for what cannot be in an instance.
    """
    match value:
        case None:
            return 0
        case bool():
            return 1231 if value else 1237
        case str():
            return _string_hash(value)
        case int():
            return value if -(2**31) <= value < 2**31 else _signed(value ^ (value >> 32))
        case float():
            (bits,) = struct.unpack(">Q", struct.pack(">d", value))
            return _signed(bits ^ (bits >> 32))
        case list() | tuple():
            return objects_hash(*value)
        case Mapping():
            return _signed(sum(java_hash(key) ^ java_hash(held) for key, held in value.items()))
        case Set():
            return _signed(sum(map(java_hash, value)))
    raise TypeError(f"no server holds a {type(value).__name__}")


def objects_hash(*values: object) -> int:
    """`Objects.hash`."""
    result = 1
    for value in values:
        result = 31 * result + java_hash(value) & BITS_32
    return _signed(result)


def _string_hash(text: str) -> int:
    """Over UTF-16 code units."""
    result = 0
    for unit in memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H"):
        result = 31 * result + unit & BITS_32
    return _signed(result)


def _signed(number: int) -> int:
    return (number & BITS_32 ^ 2**31) - 2**31
