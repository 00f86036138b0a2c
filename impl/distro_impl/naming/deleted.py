"""The memory of who was deleted: within a lease a copy of a client that is gone may still be on its way.

Ids come from strangers, so digests of them are kept, and only so many. Source: docs/protocol #receive-late.
"""

from __future__ import annotations

from hashlib import blake2b

MAX_DELETED = 100_000


class DeletedClients:
    def __init__(self) -> None:
        self._deleted_ms: dict[bytes, int] = {}  # the oldest first

    def __contains__(self, client_id: str) -> bool:
        return bool(self._deleted_ms) and _digest(client_id) in self._deleted_ms

    def add(self, client_id: str, now_ms: int) -> None:
        digest = _digest(client_id)
        self._deleted_ms.pop(digest, None)
        self._deleted_ms[digest] = now_ms
        if len(self._deleted_ms) > MAX_DELETED:
            del self._deleted_ms[next(iter(self._deleted_ms))]

    def forget_before(self, oldest_ms: int) -> None:
        self._deleted_ms = {digest: at_ms for digest, at_ms in self._deleted_ms.items() if at_ms >= oldest_ms}

    def all_at(self, now_ms: int) -> None:
        """As if all of them had been deleted now."""
        self._deleted_ms = dict.fromkeys(self._deleted_ms, now_ms)


def _digest(client_id: str) -> bytes:
    return blake2b(client_id.encode(errors="replace"), digest_size=16).digest()
