"""What the kit needs of a node under test, whatever it is.

Deliberately little, since everything else is said over the wire: start with a member list, stop, where it listens, and
whose clock counts. A kind of target is one file with a class and one entry in `registry.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from distro_conformance.waiting import SharedClock

OnProgress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be done to a node: where clients of the kit come to, whether it has the kit's members on its list,
    whether it may be sent what a member sends, and which FEATURES it lacks."""

    namespace: str = "public"
    counts_members: bool = True
    takes_syncs: bool = True
    lacks: frozenset[str] = frozenset()


FEATURES = ("http", "batch")
"""What a server may do without: clients of the HTTP API, and several instances of a service from one client."""

UNLIMITED = Limits()
"""Of every node that the kit starts."""


class Target(Protocol):
    """One node. `profile` names the behaviour that is expected of it: `nacos-2.2.4`, `strict`, …"""

    kind: str
    spec: str

    @property
    def profile(self) -> str: ...

    @property
    def address(self) -> str:
        """The node's name in every message, host:port."""
        ...

    @property
    def clock(self) -> SharedClock: ...

    @property
    def lease_ms(self) -> int | None:
        """How long a copy lives that nobody verifies, where the node was told another time than its default."""
        ...

    @property
    def member_headers(self) -> Mapping[str, str]:
        """What a member of its cluster puts into its requests: the identity, where the node asks for one."""
        ...

    @property
    def client_headers(self) -> Mapping[str, str]:
        """What a client puts into its requests, where the node asks clients for something."""
        ...

    @property
    def limits(self) -> Limits: ...

    def fresh(self) -> Self:
        """Another one like this, elsewhere and not started, with its default lease; real time is the same for both."""
        ...

    async def start(self, other_members: Sequence[str], on_progress: OnProgress, *, until_loaded: bool = True) -> None:
        """Returns when the node serves, and has loaded unless told otherwise.

        Raises TargetError; `stop` must be called all the same.
        """
        ...

    async def change_members(self, other_members: Sequence[str]) -> None:
        """It runs, and from now on these are the others on its list. Raises TargetError where a list is given once."""
        ...

    def shorten_lease(self) -> None:
        """From its next start on, where that can be told to it."""
        ...

    async def suspend(self, ms: int) -> None:
        """It does not run for so long, and notices only afterwards. Raises TargetError where that cannot be done."""
        ...

    async def stop(self) -> None:
        """Leaves nothing behind; safe to call twice, and after a start that failed."""
        ...
