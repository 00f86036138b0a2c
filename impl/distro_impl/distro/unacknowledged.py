"""What this node remembers of the changes of ip:port clients: which members have not acknowledged them, and what they
have replaced.

The revision of such a client is a hash of its content, so of two revisions nothing says which is the newer. A node
therefore keeps the revisions that a later change has replaced, and sends them with the content in the attribute
`superseded`, which releases ignore. It refuses a superseded revision where it holds what the client requested from this
node itself. What was requested here is sent to each member until that member acknowledges it, also when another node
owns the client by then. Source: docs/protocol #owner-handover.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import takewhile

MAX_REVISIONS = 100
"""Of each client. When all members have acknowledged the client, the first one gives way to a new one; else the last
does: what an unreachable member holds is among the first."""

NONE_BEFORE = 0
"""In place of a revision: the client is new."""


class UnacknowledgedChanges:
    def __init__(self, was_removed: Callable[[str], bool]) -> None:
        self._was_removed = was_removed  # within the last lease
        self._pending: dict[str, set[str]] = {}
        self._superseded: dict[str, dict[int, None]] = {}  # client -> revisions, in the order of their replacement
        self._ended: dict[str, None] = {}  # clients that are not held, in the order of their removal

    def accepted(self, client_id: str, members: Iterable[str]) -> None:
        """The client is sent to these members until they acknowledge it."""
        self._forget_if_over(client_id)
        self._pending.setdefault(client_id, set()).update(members)
        self._trim(client_id)

    def supersede(self, client_id: str, replaced: Iterable[int], revision: int) -> None:
        """The node holds `revision` of the client, which has replaced those."""
        self._forget_if_over(client_id)
        self._ended.pop(client_id, None)
        held = self._superseded.setdefault(client_id, {})
        for each in replaced:
            if len(held) >= MAX_REVISIONS and each not in held:
                held.pop(next(iter(held) if client_id not in self._pending else reversed(held)))
            held[each] = None
        held.pop(revision, None)
        held.pop(NONE_BEFORE, None)
        self._trim(client_id)

    def acknowledged(self, client_id: str, member: str | None, revision: int | None) -> None:
        """The member has applied that revision, or sent it, which may be superseded by now; or removed the client
        (None)."""
        if member is not None and (revision is None or not self.is_superseded(client_id, revision)):
            self._pending.get(client_id, set()).discard(member)
            self._trim(client_id)

    def ended(self, client_id: str, revision: int, *, was_owner: bool) -> None:
        """The client is removed here. The end of an owned client is still announced."""
        if not was_owner:
            self._pending.pop(client_id, None)
        if client_id in self._superseded:
            self.supersede(client_id, (revision,), NONE_BEFORE)
            self._ended[client_id] = None
        for each in tuple(takewhile(self._is_over, self._ended)):
            self._forget_if_over(each)

    def keep_members(self, members: Collection[str]) -> None:
        """The others are no members any more."""
        for client_id, pending in tuple(self._pending.items()):
            pending.intersection_update(members)
            self._trim(client_id)

    def is_pending(self, client_id: str, member: str | None) -> bool:
        """Whether the member has not acknowledged the last change. A member that does not name itself has."""
        return member is not None and member in self._pending.get(client_id, ())

    def is_superseded(self, client_id: str, revision: int) -> bool:
        self._forget_if_over(client_id)
        return revision in self._superseded.get(client_id, ())

    def superseded(self, client_id: str) -> list[int]:
        self._forget_if_over(client_id)
        return list(self._superseded.get(client_id, ()))

    def _forget_if_over(self, client_id: str) -> None:
        if client_id in self._ended and self._is_over(client_id):
            del self._ended[client_id]
            self._superseded.pop(client_id, None)

    def _is_over(self, client_id: str) -> bool:
        return client_id not in self._pending and not self._was_removed(client_id)

    def _trim(self, client_id: str) -> None:
        if not self._pending.get(client_id, True):
            del self._pending[client_id]
        if not self._superseded.get(client_id, True):
            del self._superseded[client_id]
