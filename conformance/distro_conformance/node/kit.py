"""What a check gets: the played member, played clients, waiting in the target's own time, and two ways to end.

A check *violates* when something that must come does not come, or something comes that must not. When it cannot get
that far (the node never connected to the played member, a client was refused) it *cannot tell*: that is never a pass
and never a fault of the node in this respect. `eventually` and `never` are the first kind, `arrange` is the second.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import TypeVar

from distro_conformance.findings.finding import NOTHING
from distro_conformance.node.http_player import PlayedHttpClient, address_owned_by
from distro_conformance.node.peer import Arrival, PlayedPeer
from distro_conformance.node.player import PlayedClient
from distro_conformance.release import release_of
from distro_conformance.targets.ports import SDK_OFFSET, with_offset
from distro_conformance.targets.target import Target
from distro_conformance.verdict import TargetError
from distro_conformance.waiting import Look, eventually, never
from distro_traces.content import Replica

T = TypeVar("T")
_TICK_MS = 100
_numbers = count(1)


Observed = Mapping[str, object]


class ViolationError(Exception):
    """The node does not do what the requirement says: what was expected and seen, and under names what the symptoms of
    known failures are told by."""

    def __init__(self, message: str, *, expected: str, observed: Observed = NOTHING) -> None:
        super().__init__(message)
        self.expected = expected
        self.observed = observed


class CannotTellError(Exception):
    """The check could not be carried out; the message says what was missing."""


def services(copy: Replica | None) -> list[str] | None:
    """The services of a client as the node holds it; None: it does not know the client."""
    return None if copy is None else [instance.service for instance in copy.published]


@dataclass(frozen=True, slots=True)
class Timings:
    """When a node has to do things, with the tick of the delay engine. Source: docs/protocol #sync-merge,
    #releases-matrix."""

    sync_ms: int
    resync_ms: int
    verify_ms: int
    view_ms: int  # until a query shows what was applied (real-nacos.md section 3)

    @classmethod
    def of(cls, profile: str) -> Timings:
        release = release_of(profile)
        delay_ms = 2000 if release is not None and release < (2, 2, 0) else 1000
        return cls(sync_ms=delay_ms + _TICK_MS, resync_ms=_TICK_MS, verify_ms=5000, view_ms=600)


@dataclass
class Kit:
    """Made afresh for every check; the node and the member live through the run. `evidence` is told in order."""

    target: Target
    peer: PlayedPeer
    evidence: list[str] = field(default_factory=list)
    _clients: list[PlayedClient] = field(default_factory=list)
    _seen_before: int = 0

    def __post_init__(self) -> None:
        self.timings = Timings.of(self.target.profile)
        self._seen_before = len(self.peer.arrivals)
        self.peer.on_arrival = self._arrived
        self.peer.answer_normally()

    # Who plays.

    async def client(self) -> PlayedClient:
        """A new client, connected to the node."""
        client = await PlayedClient.connect(with_offset(self.target.address, SDK_OFFSET))
        self._clients.append(client)
        self.note(f"client {client.id} connects to the node")
        return client

    async def publisher(self, **metadata: str) -> tuple[PlayedClient, str]:
        """A new client of the node, and the one service that it publishes, at 10.0.0.1:80."""
        client, service = await self.client(), self.service()
        await client.register(service, "10.0.0.1", 80, **metadata)
        self.note(f"it registers {service} at 10.0.0.1:80")
        return client, service

    def http_client(self, owner: str) -> PlayedHttpClient:
        """A new client of the node's HTTP API, at an address that makes `owner`, a member's address, its owner."""
        members = (self.target.address, self.peer.address)
        ip, port = address_owned_by(owner, members, next(_numbers) % 256)
        return PlayedHttpClient(self.target.address, ip, port)

    async def leave(self, client: PlayedClient) -> None:
        """The client's connection ends, without a farewell."""
        self._clients.remove(client)
        self.note(f"client {client.id} closes its connection")
        await client.close()
        await self.target.clock.pass_ms(0)  # where time is virtual, until the node knows of it

    def service(self) -> str:
        """A service name that no other check of this process uses."""
        return f"svc-{next(_numbers)}"

    def foreign_client(self) -> str:
        """An id for a client that the played member owns."""
        return f"{1_700_000_000_000 + next(_numbers)}_127.0.0.1_{self.peer.port}"

    # What has been seen.

    def arrival(self, operation: str, client: str, *, after: Arrival | None = None) -> Look[Arrival]:
        """Looks for the first such request at the played member, since the check began or after another one."""

        async def look() -> Arrival | None:
            arrivals = self.peer.arrivals[self._seen_before :]
            later = arrivals if after is None else arrivals[arrivals.index(after) + 1 :]
            return next((arrival for arrival in later if arrival.is_about(operation, client)), None)

        return look

    def note(self, what: str) -> None:
        self.evidence.append(f"{self.target.clock.now_ms()} ms: {what}")

    def require(self, holds: bool, expected: str, seen: object, *, observed: Observed = NOTHING) -> None:
        """Raises ViolationError unless it holds."""
        if not holds:
            raise ViolationError(f"expected {expected}; seen: {seen}", expected=expected, observed=observed)

    def presuppose(self, holds: bool, needed: str, seen: object) -> None:
        """Raises CannotTellError unless it holds."""
        if not holds:
            raise CannotTellError(f"cannot go on without {needed}; seen: {seen}")

    # Waiting, in the target's time.

    async def eventually(
        self, look: Look[T], *, within_ms: int, what: str, otherwise: Callable[[], Awaitable[Observed]] | None = None
    ) -> T:
        """What `look` finds within the time. Raises ViolationError with what there is `otherwise`."""
        found = await eventually(self._staying(look), self.target.clock, within_ms)
        if found is None:
            expected = f"{what} within {self._window(within_ms)}"
            observed = await otherwise() if otherwise else NOTHING
            raise ViolationError(f"expected {expected}; {self._heard()}", expected=expected, observed=observed)
        return found

    async def arrange(self, look: Look[T], *, within_ms: int, what: str) -> T:
        """The same for what the check presupposes. Raises CannotTellError."""
        found = await eventually(self._staying(look), self.target.clock, within_ms)
        if found is None:
            raise CannotTellError(f"cannot go on without {what}, waited {self._window(within_ms)}; {self._heard()}")
        return found

    async def never(self, look: Look[T], *, for_ms: int, what: str) -> None:
        """Watch for the whole time. Raises ViolationError when `look` finds something."""
        found = await never(self._staying(look), self.target.clock, for_ms)
        if found is not None:
            message = f"{what}, but at {self.target.clock.now_ms()} ms there was: {found}"
            raise ViolationError(message, expected=f"{what}, for {for_ms} ms")

    async def sleep(self, ms: int) -> None:
        await self.target.clock.pass_ms(ms)

    async def close(self) -> None:
        """Every client leaves; a node that does not notice has nothing to do with the check that is over."""
        for client in list(self._clients):
            with contextlib.suppress(TargetError):
                await self.leave(client)
        self.peer.on_arrival = None

    def _staying(self, look: Look[T]) -> Look[T]:
        """The played member stays a member while somebody waits."""

        async def look_on() -> T | None:
            await self.peer.stay()
            return await look()

        return look_on

    def _window(self, within_ms: int) -> str:
        slack_ms = self.target.clock.slack_ms
        return f"{within_ms} ms" + (f" (and {slack_ms} ms for a busy machine)" if slack_ms else "")

    def _heard(self) -> str:
        arrivals = [a for a in self.peer.arrivals[self._seen_before :] if a.call is not None]
        if not arrivals:
            return f"{self.peer.address} got no Distro request from {self.target.address}"
        last = arrivals[-1]
        return f"the last that {self.peer.address} got from {self.target.address}: {last} at {last.at_ms} ms"

    def _arrived(self, arrival: Arrival) -> None:
        if arrival.call is not None:
            where = f"{self.target.address} -> {self.peer.address}"
            self.evidence.append(f"{arrival.at_ms} ms: {where}: {arrival}")
