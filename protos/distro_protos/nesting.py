"""How deep JSON from outside may be nested: found before it is decoded.

Decoders are recursive. What is nested as deep as the interpreter's recursion goes is refused by the decoder itself, but
too late: on its way there the garbage collector may start, and a finalizer that it calls (gRPC's are such) then fails
for the same want of stack, where no caller can handle it, and what it was to release stays.
"""

from __future__ import annotations

from itertools import accumulate

MAX_NESTING = 500
"""Of objects and lists in each other. Half of the interpreter's recursion: the rest is for who calls and who finalizes.

Jackson in the servers that were looked at (2.12, 2.13) has none but its stack; from its 2.15 on it has 1000.
"""

_OTHERS = bytes(set(range(256)) - set(b'[]{}"'))
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


def check_nesting(text: bytes, limit: int = MAX_NESTING) -> None:
    """Raises ValueError when a decoder would find objects and lists nested deeper than `limit`.

    `text` need not be JSON. What a decoder would refuse after its first characters may be refused here for its rest.
    """
    if text.count(b"{") + text.count(b"[") <= limit:
        return
    if b"\\" in text:  # in strings, where no quote may be left but the one at the end
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    signs = text.translate(None, _OTHERS).replace(b'""', b"")  # a sign with an odd number of quotes before it stays
    brackets = b"".join(signs.split(b'"')[::2])
    if any(map(limit.__lt__, accumulate(map(_STEP.__getitem__, brackets)))):
        raise ValueError(f"it is nested deeper than {limit}")
