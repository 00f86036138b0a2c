"""A limit of the nesting of received JSON, which is checked before the JSON is decoded.

Decoders are recursive. JSON that is nested as deep as the recursion limit of Python is refused by the decoder itself,
but too late: deep in the recursion the garbage collector may start. A finalizer that it calls, such as those of gRPC,
then exceeds the same limit. No caller can handle that error, and the finalizer does not release its resources.
"""

from __future__ import annotations

from itertools import accumulate

MAX_NESTING = 500
"""The limit for nested objects and lists: half of the recursion limit, so that callers and finalizers have the rest.

In the examined servers Jackson (2.12, 2.13) has no limit but its stack; since Jackson 2.15 the limit is 1000.
"""

_OTHERS = bytes(set(range(256)) - set(b'[]{}"'))
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


def check_nesting(text: bytes, limit: int = MAX_NESTING) -> None:
    """Raises ValueError if objects and lists are nested deeper than `limit`.

    `text` may be no JSON at all. Then it may be refused here for nesting that a decoder would not reach.
    """
    if text.count(b"{") + text.count(b"[") <= limit:
        return
    if b"\\" in text:  # escapes in strings, which may hide quotes
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    signs = text.translate(None, _OTHERS).replace(
        b'""', b""
    )  # pairs cancel: whether a bracket is in a string stays the same
    brackets = b"".join(signs.split(b'"')[::2])
    if any(map(limit.__lt__, accumulate(map(_STEP.__getitem__, brackets)))):
        raise ValueError(f"it is nested deeper than {limit}")
