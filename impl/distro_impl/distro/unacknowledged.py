"""Changes that ip:port clients asked of this node and that other members have not acknowledged.

The revision of such a client is a hash of its content, so of two revisions nothing says which is the newer. The node
that accepts a change therefore keeps, for each other member, the revision that the change has replaced. Until the
member acknowledges the client, this node goes on sending it, also when another node owns it by then, and refuses the
replaced revision from that member, and its DELETE. As many pairs of client and member are kept as there are pending
syncs, with at most `MAX_REVISIONS` each. Source: docs/protocol #owner-handover.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import chain

MAX_REVISIONS = 100
"""Then a new one takes the place of the last: what an unreachable member holds is among the first, and the last is what
it holds once it acknowledges the one before."""

NONE_BEFORE = 0
"""In place of a revision: the client is new."""


class UnacknowledgedChanges:
    def __init__(self) -> None:
        self._replaced: dict[str, dict[str, dict[int, None]]] = {}  # client -> member -> revisions, in order

    def accepted(self, client_id: str, before: int, after: int, members: Collection[str]) -> None:
        """The client asked for a change from revision `before` to `after`."""
        held = self._replaced.setdefault(client_id, {})
        for member in members:
            revisions = held.setdefault(member, {})
            if len(revisions) >= MAX_REVISIONS:
                revisions.popitem()
            revisions[before] = None
        self._keep(
            client_id, {member: _those(revisions, lambda each: each != after) for member, revisions in held.items()}
        )

    def joined(self, client_id: str, member: str) -> None:
        """The member is sent the client; it may receive an old revision from any that has not acknowledged it."""
        held = self._replaced.setdefault(client_id, {})
        held[member] = dict.fromkeys((NONE_BEFORE, *chain.from_iterable(held.values())))

    def acknowledged(self, client_id: str, member: str, revision: int | None) -> None:
        """The member has applied that revision, or removed the client (None): it can hold no earlier one."""
        held = self._replaced.get(client_id, {})
        if member in held:
            self._keep(client_id, {**held, member: _those(held[member], lambda each: each == revision)})

    def forget(self, client_id: str) -> None:
        self._replaced.pop(client_id, None)

    def keep_members(self, members: Collection[str]) -> None:
        """The others are no members any more."""
        for client_id, held in tuple(self._replaced.items()):
            self._keep(client_id, {member: revisions for member, revisions in held.items() if member in members})

    def is_pending(self, client_id: str, member: str | None) -> bool:
        """Whether the member has not acknowledged the last change. A member that does not say who it is has."""
        return member is not None and member in self._replaced.get(client_id, {})

    def is_replaced(self, client_id: str, member: str | None, revision: int) -> bool:
        """Whether a change has replaced this revision, which the member still holds and sends."""
        return member is not None and revision in self._replaced.get(client_id, {}).get(member, ())

    def _keep(self, client_id: str, held: dict[str, dict[int, None]]) -> None:
        self._replaced[client_id] = {member: revisions for member, revisions in held.items() if revisions}
        if not self._replaced[client_id]:
            del self._replaced[client_id]


def _those(revisions: dict[int, None], is_kept: Callable[[int], bool]) -> dict[int, None]:
    return dict.fromkeys(filter(is_kept, revisions))
