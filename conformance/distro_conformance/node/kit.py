"""The tools of a check: clients, connections, and the answers of played members.

`observer` has the part that waits for the node and ends the check.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count

import grpc.aio

from distro_conformance.findings.finding import NOTHING
from distro_conformance.node.errors import BeyondError, NotJudgedError, Observed
from distro_conformance.node.http_player import PlayedHttpClient, address_owned_by
from distro_conformance.node.observer import ELSES, Observer, assumed, require_feature
from distro_conformance.node.peer import Arrival, PlayedPeer
from distro_conformance.node.player import Host, PlayedClient, RefusedError
from distro_conformance.node.replies import FOR_EVER_MS, Answer, AnswerRule, Reply
from distro_conformance.release import Span, Timings
from distro_conformance.targets.ports import CLUSTER_OFFSET, SDK_OFFSET, with_offset
from distro_conformance.verdict import KitError, TargetError
from distro_conformance.waiting import Poll, eventually, poll_local
from distro_conformance.wire.connection import CLUSTER_LABELS, NO_ABILITIES, Connection, OnPush
from distro_traces.content import Replica

_SERVES_WITHIN_MS = 60_000
_KEEP_ALIVE_MS = 5_000
_KNOWN_WITHIN_MS = 1_500
"""The time until naming knows a connection that is set up; the kit waits for it if a node does not show clients without
instances."""
_HAS_BATCHES = Span(since="2.1.1")
_numbers = count(1)


def services(copy: Replica | None) -> list[str] | None:
    """The services of a client as the node holds it, sorted; None: it does not know the client."""
    return None if copy is None else sorted(instance.service for instance in copy.published)


@dataclass
class Kit(Observer):
    """Made afresh for every check; node and members are shared with the checks beside it, clients and services are its
    own."""

    _clients: list[PlayedClient] = field(default_factory=list)
    _alive_at_ms: dict[PlayedClient, int] = field(default_factory=dict)
    _connections: list[Connection] = field(default_factory=list)
    _rules: list[tuple[PlayedPeer, AnswerRule]] = field(default_factory=list)

    # Played clients and members.

    @property
    def _sdk_address(self) -> str:
        return with_offset(self.target.address, SDK_OFFSET)

    async def client(self, *, idle: bool = False) -> PlayedClient:
        """A new client, connected to the node. In real time it gives signs of life as SDKs do, unless it is `idle`."""
        async with _a_few_at_a_time():
            client = await PlayedClient.connect(
                self._sdk_address, self.target.limits.namespace, self.target.client_headers
            )
        client.require = partial(require_feature, self.target)
        self._clients.append(client)
        if not idle and self.target.clock.is_real:
            self._alive_at_ms[client] = self.target.clock.now_ms()
        self._own.add(client.id)
        self.note(f"client {client.id} connects to the node")
        await self._until_known(client)
        return client

    async def assume_serving(self) -> None:
        """Assumes that the node serves at the end of a check: one that has ended sends nothing that it must not send.
        Raises NotJudgedError."""
        try:
            async with _a_few_at_a_time():
                await (await PlayedClient.connect(self._sdk_address, headers=self.target.client_headers)).close()
        except (KitError, grpc.aio.AioRpcError) as error:
            raise NotJudgedError(f"the node serves no longer at the end of the check: {error}") from None

    async def _until_known(self, client: PlayedClient) -> None:
        """A server accepts a connection's requests before naming knows it, and a registration in between is lost
        (docs/protocol #connection-setup). A node that does not list clients without instances takes the whole time."""

        async def poll() -> Replica | None:
            with contextlib.suppress(KitError, ValueError, grpc.aio.AioRpcError):  # checks judge the answer to a QUERY
                return await self.peer.query(client.id)
            return None

        if self.target.clock.is_real:
            await eventually(poll, self.target.clock, _KNOWN_WITHIN_MS)

    async def publisher(self, *, idle: bool = False, **metadata: str) -> tuple[PlayedClient, str]:
        """A new client of the node, and the one service that it publishes, at 10.0.0.1:80."""
        client, service = await self.client(idle=idle), self.service()
        await client.register(service, "10.0.0.1", 80, **metadata)
        self.note(f"it registers {service} at 10.0.0.1:80")
        return client, service

    @property
    def has_batches(self) -> bool:
        """Whether the node takes batches, of clients and of members."""
        return self.target.profile in _HAS_BATCHES and "batch" not in self.target.limits.lacks

    def identity(self) -> Mapping[str, str]:
        """The headers of the cluster's identity. Raises BeyondError where the kit knows of none."""
        if not self.target.member_headers:
            raise BeyondError("cannot go on without a cluster with an identity; seen: the kit knows of none")
        return self.target.member_headers

    async def connection(
        self,
        labels: Mapping[str, str],
        *,
        on_push: OnPush | None = None,
        headers: Mapping[str, str] | None = None,
        abilities: Mapping[str, bool] | None = NO_ABILITIES,
    ) -> Connection:
        """A connection with other labels; with those of a member it uses the port and, unless there are `headers`, the
        headers of members. `abilities`: None sends no table of them."""
        offset, usual = SDK_OFFSET, self.target.client_headers
        if labels == CLUSTER_LABELS:
            if not self.target.limits.takes_syncs:
                raise BeyondError(f"cannot go on without a node that may be spoken to as a member; seen: {ELSES}")
            offset, usual = CLUSTER_OFFSET, self.target.member_headers
        address = with_offset(self.target.address, offset)
        async with _a_few_at_a_time():
            shown = usual if headers is None else headers
            connection = await Connection.open(
                address, labels=labels, on_push=on_push, headers=shown, abilities=abilities
            )
        connection.namespace = self.target.limits.namespace
        self._connections.append(connection)
        self._own.add(connection.id)
        self.note(f"{connection.id} connects to {address} with the labels {dict(labels)}")
        return connection

    def bare_connection(self) -> Connection:
        """A transport without a set-up."""
        connection = Connection.bare(self._sdk_address, self.target.client_headers)
        self._connections.append(connection)
        return connection

    async def named_connection(self) -> Connection:
        """A transport without a set-up, with the id that the node has announced for it. Raises TargetError."""
        connection = self.bare_connection()
        await connection.ask_id()
        self._own.add(connection.id)
        return connection

    def http_client(self, owner: str, *, node_owns_without: str | None = None) -> PlayedHttpClient:
        """A new client of the node's HTTP API, at an address that makes `owner`, a member's address, its owner.

        `node_owns_without`: the node is the owner while this member is not on the list.
        """
        members = (self.target.address, *(peer.address for peer in self.peers))
        without = tuple(each for each in members if each != node_owns_without)
        heirs = () if node_owns_without is None else ((self.target.address, without),)
        ip, port = address_owned_by(owner, members, next(_numbers), *heirs)
        require = partial(require_feature, self.target)
        client = PlayedHttpClient(self.target.address, ip, port, headers=self.target.client_headers, require=require)
        self._own.add(client.id)
        return client

    async def start_node(self, *, until_loaded: bool = True, short_lease: bool = False) -> None:
        """Starts the node of a check that has one of its own. Raises TargetError."""
        if short_lease:
            self.target.shorten_lease()
            self.timings = Timings.of(self.target.profile, self.target.lease_ms)
        async with _one_at_a_time():
            await self.target.start([peer.address for peer in self.peers], self.note, until_loaded=until_loaded)
        self.began_ms = self.target.clock.now_ms()
        for peer in self.peers:
            await peer.join(self.target.address)
        if until_loaded:
            await self.arrange_service()

    async def change_members(self, *others: PlayedPeer) -> None:
        """Sets the other members on the list of the node. Raises TargetError if that is impossible."""
        await self.target.change_members([peer.address for peer in others])
        self.note(f"its list names {' and '.join(peer.address for peer in others)} beside itself")

    async def arrange_service(self) -> None:
        """Wait for a node that accepts clients: 2.0.x accepts them only after it knows the abilities of its members."""

        async def poll() -> bool:
            client = await self.client()
            try:
                await client.query("nobody-publishes-here")
            except RefusedError:
                return False
            finally:
                await self.leave(client)
            return True

        await self.arrange(poll, within_ms=_SERVES_WITHIN_MS, what="a node that serves naming")

    async def synced(
        self, revision: int = 1, *, client: str | None = None, service: str | None = None, **metadata: str
    ) -> tuple[str, str]:
        """A client of `peer` and its one service, at 10.0.0.1:80, of which the node was sent a CHANGE."""
        client, service = client or self.foreign_client(), service or self.service()
        reply = await self.peer.sync(client, revision, (service, "10.0.0.1", 80), **metadata)
        self.note(f"{self.peer.address} sends CHANGE of {client} revision {revision} with {service}: {reply}")
        self.assume(reply.succeeded, f"an acknowledged CHANGE of {client}", reply)
        return client, service

    async def replicated(self) -> tuple[PlayedClient, str, Arrival]:
        """A new client of the node, its one service, and the CHANGE that `peer` received."""
        client, service = await self.publisher()
        return client, service, await self.arrange_sent("CHANGE", client.id)

    def holds(self, client: str, *wanted: str | None) -> Poll[Replica]:
        """Polls for the client at the node; with these services exactly, if any are named."""

        async def poll() -> Replica | None:
            copy = await self.peer.query(client)
            return copy if copy is not None and (not wanted or services(copy) == sorted(map(str, wanted))) else None

        return poll

    def lacks(self, client: str) -> Poll[str]:
        """Polls until the node does not know the client."""

        async def poll() -> str | None:
            return None if await self.peer.query(client) else f"no trace of {client} at the node"

        return poll

    def shows(self, reader: PlayedClient, service: str, *addresses: str) -> Poll[tuple[Host, ...]]:
        """Polls until a query of the service returns exactly these."""

        async def poll() -> tuple[Host, ...] | None:
            hosts = await reader.query(service)
            return hosts if sorted(host.address for host in hosts) == sorted(addresses) else None

        return poll

    async def eventually_listed(self, reader: PlayedClient, service: str, *addresses: str) -> tuple[Host, ...]:
        """The list of a query as soon as it shows exactly these. Raises ViolationError."""
        poll, what = self.shows(reader, service, *addresses), _listed(service, addresses)
        return await self.eventually(poll, within_ms=self.timings.view_ms, what=what)

    arrange_listed = assumed(eventually_listed)

    def pushed(self, subscriber: PlayedClient, service: str, *addresses: str) -> Poll[tuple[Host, ...]]:
        """Polls until the last push of the service shows exactly these."""

        def poll() -> tuple[Host, ...] | None:
            hosts = subscriber.last_pushed(service)
            shown = None if hosts is None else sorted(host.address for host in hosts)
            return hosts if shown == sorted(addresses) else None

        return poll_local(poll)

    async def eventually_pushed(self, subscriber: PlayedClient, service: str, *addresses: str) -> tuple[Host, ...]:
        """The last push of the service as soon as it shows exactly these. Raises ViolationError."""
        what = f"a push of {service} {_at(addresses)} to {subscriber.id}"
        poll = self.pushed(subscriber, service, *addresses)
        return await self.eventually(poll, within_ms=self.timings.push_ms, what=what)

    arrange_pushed = assumed(eventually_pushed)

    async def revision_of(self, client: str) -> int | None:
        """The revision that the node holds; None: it does not know the client."""
        copy = await self.peer.query(client)
        return copy.revision if copy else None

    async def announced(self, client: str, content: Sequence[str], *, within_ms: int | None = None) -> Observed:
        """Whether the node has `announced` these services of the client, and still sends VERIFYs of it, `verified`.
        Empty if no member of the kit receives anything.

        By default the announcement may also be a repetition, and the VERIFY one of three rounds: on a busy machine a
        request may reach no member before its time-out.
        """
        if not self.target.limits.counts_members:
            return NOTHING
        announced = self.arrival("CHANGE", client, carrying=lambda copy: services(copy) == sorted(content))
        change = (
            await self._wait_until_found(announced, within_ms or self.timings.sync_ms + 2 * self.timings.retry_ms)
        ).found
        so_far = self.arrivals(client)
        verified = self.arrival("VERIFY", client, after=so_far[-1] if so_far else None)
        rounds = 3 if within_ms is None else 1
        verify = (await self._wait_until_found(verified, rounds * self.timings.verify_ms)).found
        return {"announced": change is not None, "verified": verify is not None}

    async def held_as_copy(self, client: str, revision: int, content: Sequence[str]) -> Observed:
        """What the node holds of a client of `peer` that was `sent` with this content, whether it confirms that
        revision, and whether it announces or verifies the client as its own: `claimed`."""
        published = services(await self.peer.query(client))
        confirmed = (await self.peer.verify(client, revision)).succeeded
        claimed = any((await self.announced(client, content, within_ms=self.timings.sync_ms)).values())
        return {"sent": list(content), "published": published, "confirmed": confirmed, "claimed": claimed}

    async def leave(self, client: PlayedClient) -> None:
        """Ends the client's connection without a message."""
        self._clients.remove(client)
        self._alive_at_ms.pop(client, None)
        self.note(f"client {client.id} closes its connection")
        await client.close()
        await self.target.clock.pass_ms(0)  # in virtual time, until the node has noticed it

    def service(self) -> str:
        """A service name that no other check of this process uses."""
        return f"svc-{next(_numbers)}"

    def foreign_client(self) -> str:
        """An id for a client that the played member owns."""
        client = f"{1_700_000_000_000 + next(_numbers)}_127.0.0.1_{self.peer.port}"
        self._own.add(client)
        return client

    def answer(self, operation: str, answer: Answer, *, client: str, at: PlayedPeer | None = None) -> None:
        """Until the check ends that member (default: `peer`) gives this answer to requests about that client."""
        peer = at or self.peer
        self._rules.append((peer, peer.answer(operation, answer, client=client)))
        is_silent = isinstance(answer, Reply) and answer.after_ms >= FOR_EVER_MS
        how = (
            f"leave {operation} of {client} unanswered"
            if is_silent
            else f"answer {operation} of {client} with {answer}"
        )
        self.note(f"{peer.address} will {how}")

    @property
    def client_without_keep_alive(self) -> str | None:
        """A client for which the kit was so late with a sign of life that a server may have ended its connection, if
        any."""
        for client in self._alive_at_ms:
            if not client.is_silent and client.longest_idle_ms >= self.timings.idle_ms:
                return f"{client.id} gave no sign of life for {client.longest_idle_ms} ms"
        return None

    async def close(self) -> None:
        """Every client leaves; a node that does not notice it does not affect the finished check."""
        for client in list(self._clients):
            with contextlib.suppress(TargetError):
                await self.leave(client)
        for connection in self._connections:
            await connection.close()
        for peer, rule in self._rules:
            peer.forget(rule)
        self.stop_watching()

    async def keep_alive(self) -> None:
        """The played member stays a member during a wait, and here clients stay connected too.

        A server sends detections to idle clients, and on a busy machine removes some that answer (docs/protocol
        #ejector-answer): only the checks of that behaviour rely on the answer.
        """
        await super().keep_alive()
        now_ms = self.target.clock.now_ms()
        due = [each for each, at_ms in self._alive_at_ms.items() if now_ms >= at_ms + _KEEP_ALIVE_MS]
        for client in (each for each in due if not each.is_silent):
            self._alive_at_ms[client] = now_ms
            with contextlib.suppress(KitError, grpc.aio.AioRpcError):  # the check notices that a client is gone
                await client.check_health()


def _at(addresses: Sequence[str]) -> str:
    return f"at {', '.join(addresses)}" if addresses else "without hosts"


def _listed(service: str, addresses: tuple[str, ...]) -> str:
    return f"{' and '.join(addresses)} in the list of {service}" if addresses else f"{service} without hosts"


_CONNECTING: dict[asyncio.AbstractEventLoop, asyncio.Semaphore] = {}
_STARTING: dict[asyncio.AbstractEventLoop, asyncio.Semaphore] = {}


def _a_few_at_a_time() -> asyncio.Semaphore:
    """Connections are set up a few at a time: checks begin together, and set-up has a time-out."""
    return _CONNECTING.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(4))


def _one_at_a_time() -> asyncio.Semaphore:
    """Servers are started one after the other: each needs a processor for some seconds."""
    return _STARTING.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(1))
