"""The interface of a node under test, whatever its kind.

It is deliberately small, since everything else goes over the wire: start with a member list, stop, the address, and the
clock. A kind of target is one file with a class and one entry in `registry.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from distro_conformance.waiting import SharedClock

OnProgress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of tests on a node: the namespace of the kit's clients, whether the kit's members are on its list, whether
    the kit may send it a member's requests, and the FEATURES that it lacks."""

    namespace: str = "public"
    counts_members: bool = True
    takes_syncs: bool = True
    lacks: frozenset[str] = frozenset()


FEATURES = ("http", "batch")
"""Features that a server may lack: clients of the HTTP API, and several instances of a service from one client."""

UNLIMITED = Limits()
"""The limits of every node that the kit starts."""


class Target(Protocol):
    """One node. `profile` names its expected behaviour: `nacos-2.2.4`, `strict`, …"""

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
        """The lease of an unverified copy, if the node was configured with another time than its default."""
        ...

    @property
    def member_headers(self) -> Mapping[str, str]:
        """Headers of a member's requests: the identity, if the node requires one."""
        ...

    @property
    def client_headers(self) -> Mapping[str, str]:
        """Headers of a client's requests, if the node requires any."""
        ...

    @property
    def limits(self) -> Limits: ...

    def fresh(self) -> Self:
        """Another target of this kind, at another address and not started, with its default lease; real time is the
        same for both."""
        ...

    async def start(self, other_members: Sequence[str], on_progress: OnProgress, *, until_loaded: bool = True) -> None:
        """Returns when the node serves and, with `until_loaded`, has loaded.

        Raises TargetError; `stop` must be called all the same.
        """
        ...

    async def change_members(self, other_members: Sequence[str]) -> None:
        """Replace the other members on the list of the running node. Raises TargetError if the list is fixed."""
        ...

    def shorten_lease(self) -> None:
        """From its next start on, if that can be configured."""
        ...

    async def suspend(self, ms: int) -> None:
        """Stop the process for this time and let it continue. Raises TargetError if that is not possible."""
        ...

    async def stop(self) -> None:
        """Stop the node and remove its files; safe to call twice, and after a failed start."""
        ...
