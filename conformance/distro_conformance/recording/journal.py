"""Trace rows from the calls on links and the readings of probes: the one place that maps events to rows.

A `TraceJournal` observes every Distro call on every link and every fault. The state of a node comes from one of two
sources. A reference node reports it through its observer. A real server reports nothing, so its state is inferred
(`infer_state=True`) from acknowledged requests and corrected by probes, which read it: INV-ACK, "success implies
applied", is thereby assumed at the moment of the change and tested by the next probe.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Unpack

import grpc.aio

from distro_conformance.verdict import TargetError
from distro_conformance.wire.connection import Connection
from distro_conformance.wire.messages import RoutedCall, distro_request, read_snapshot
from distro_protos import Message
from distro_traces.content import Replica
from distro_traces.event import BATCH, Kind, Outcome
from distro_traces.ndjson import EventFields, Recorder

UNOWNED = ""
"""The owner of a client that has disconnected, or whose node has stopped: every node that holds it has a copy."""

READINGS_MAX = 5
"""Sync messages are seconds apart and a reading takes milliseconds: of five readings one is undisturbed."""

Read = Callable[[], Awaitable[Sequence[Replica]]]
"""Asks a node for all its clients. Raises TargetError."""


class TraceJournal:
    """Writes the rows of one run. `clock_ms` is the run's clock, virtual or wall, from 0."""

    def __init__(self, recorder: Recorder, clock_ms: Callable[[], int], *, infer_state: bool = False) -> None:
        self._recorder = recorder
        self._clock_ms = clock_ms
        self.infers_state = infer_state
        self.client_name: Callable[[str | None], str | None] = lambda client_id: client_id
        """From the connection id of a node to the client name of the run."""
        self.is_of_run: Callable[[str], bool] = lambda _: True
        """Of a client of an earlier run, whose copies may outlive that run, there are no rows."""
        self._held: defaultdict[str, set[str]] = defaultdict(set)
        """For each node its clients, as in its last trace row."""
        self._owner: dict[str, str] = {}
        self._state_rows: defaultdict[str, int] = defaultdict(int)
        self._asked_snapshots: dict[str, tuple[Replica, ...]] = {}

    # Calls on links (links.Journal)

    def new_id(self) -> str:
        return self._recorder.new_message_id()

    def sent(self, routed: RoutedCall) -> None:
        self._message(routed.source, Kind.REQUEST_SENT, routed.target, routed)

    def received(self, routed: RoutedCall) -> None:
        self._message(routed.target, Kind.REQUEST_RECEIVED, routed.source, routed)

    def replied(self, routed: RoutedCall, outcome: Outcome, reply: Message) -> None:
        if self.infers_state and outcome is Outcome.SUCCESS and _was_handled(reply):
            self._infer(routed, reply)
        self._reply(routed.target, Kind.REPLY_SENT, routed.source, routed, outcome)

    def ended(self, routed: RoutedCall, outcome: Outcome) -> None:
        self._reply(routed.source, Kind.REPLY_RECEIVED, routed.target, routed, outcome)
        snapshot = self._asked_snapshots.pop(routed.id, ())
        for replica in snapshot if outcome is Outcome.SUCCESS else ():
            self.replica_applied(routed.source, replica.client, None, replica.digest, message=routed.id)

    def fault(self, source: str, target: str, what: str) -> None:
        self._row(source, Kind.LINK_FAULT, peer=target, detail=what)

    def silence(self, node: str, client: str, *, ends: bool = False) -> None:
        """The client sends nothing from now on, or answers again."""
        self._row(node, Kind.LINK_FAULT, client=client, detail="answers" if ends else "silent")

    def pause(self, node: str, *, ends: bool = False) -> None:
        """The process is stopped from now on, or continues."""
        self._row(node, Kind.LINK_FAULT, detail="resumed" if ends else "paused")

    # The run and its nodes

    def run_started(self, node: str, profile: str) -> None:
        self._row(node, Kind.RUN_STARTED, detail=profile)

    def node_started(self, node: str, members: Iterable[str]) -> None:
        self._forget(node)
        self._row(node, Kind.NODE_STARTED, detail=",".join(members))

    def node_crashed(self, node: str) -> None:
        self._forget(node)
        for client, owner in self._owner.items():
            self._owner[client] = UNOWNED if owner == node else owner
        self._row(node, Kind.NODE_STOPPED, detail="crash")

    def members_changed(self, node: str, members: Iterable[str]) -> None:
        self._row(node, Kind.MEMBERS_CHANGED, detail=",".join(sorted(members)))

    def checkpoint(self, number: int, nodes: Iterable[str]) -> None:
        """Faults are healed and enough time has passed: from here on the live `nodes` must agree."""
        for node in nodes:
            self._row(node, Kind.CHECKPOINT, detail=str(number))

    # State of nodes

    def client_connected(self, node: str, client: str, revision: int, content: str) -> None:
        self._owner[client] = node
        self._state(node, Kind.CLIENT_CONNECTED, client, owned=True, revision=revision, digest=content)

    def client_changed(self, node: str, client: str, revision: int, content: str, *, detail: str | None = None) -> None:
        self._owner[client] = node
        self._state(node, Kind.CLIENT_CHANGED, client, owned=True, revision=revision, digest=content, detail=detail)

    def client_disconnected(self, node: str, client: str) -> None:
        self._owner[client] = UNOWNED
        self._state(node, Kind.CLIENT_DISCONNECTED, client, owned=True)

    def replica_applied(
        self, node: str, client: str, revision: int | None, content: str, *, message: str | None = None
    ) -> None:
        """`revision` is None when unknown: the wire does not show whether the receiver took it over (B10)."""
        owned = self._owns(node, client)
        self._state(node, Kind.REPLICA_APPLIED, client, owned=owned, revision=revision, digest=content, message=message)

    def replica_removed(self, node: str, client: str, *, message: str | None = None, reason: str | None = None) -> None:
        self._state(node, Kind.REPLICA_REMOVED, client, message=message, detail=reason)

    def observed(self, node: str, replicas: Sequence[Replica]) -> None:
        """A probe's reading: a row for each client there, and one without digest for each that is missing there."""
        replicas = self._of_run(replicas)
        for each in replicas:
            owned = self._owns(node, each.client)
            self._state(node, Kind.OBSERVED, each.client, owned=owned, revision=each.revision, digest=each.digest)
        absent = {client for clients in self._held.values() for client in clients}
        for client in sorted(absent - {replica.client for replica in replicas}):
            self._state(node, Kind.OBSERVED, client)

    async def probe(self, node: str, read: Read) -> None:
        """`read` a node and write its state. A reading during which the state changed may be older: it is not written.

        Raises TargetError after READINGS_MAX of those: the state of the node is unknown.
        """
        for _ in range(READINGS_MAX):
            before = self._state_rows[node]
            replicas = await read()
            if self._state_rows[node] == before:
                self.observed(node, replicas)
                return
        raise TargetError(
            f"{node} cannot be read: its state changed during each of {READINGS_MAX} readings; let it come to rest"
        )

    def _of_run(self, replicas: Sequence[Replica]) -> tuple[Replica, ...]:
        """Those of the run, with the names of the run."""
        named = (replace(replica, client=self.client_name(replica.client) or "") for replica in replicas)
        return tuple(replica for replica in named if self.is_of_run(replica.client))

    def _infer(self, routed: RoutedCall, reply: Message) -> None:
        operation, client = routed.call.operation, routed.call.client
        if operation == "SNAPSHOT":
            self._asked_snapshots[routed.id] = self._of_run(read_snapshot(reply))
        elif client is not None and operation == "DELETE":
            self.replica_removed(routed.target, client, message=routed.id)
        elif client is not None and routed.call.digest is not None:
            self.replica_applied(routed.target, client, None, routed.call.digest, message=routed.id)

    def _owns(self, node: str, client: str) -> bool | None:
        return self._owner[client] == node if client in self._owner else None

    def _forget(self, node: str) -> None:
        self._held.pop(node, None)

    def _message(self, node: str, kind: Kind, peer: str, routed: RoutedCall) -> None:
        call = routed.call
        self._row(
            node,
            kind,
            peer=peer,
            message=routed.id,
            operation=call.operation,
            client=call.client,
            revision=call.revision,
            digest=call.digest,
            detail=BATCH if call.has_batch else None,
        )

    def _reply(self, node: str, kind: Kind, peer: str, routed: RoutedCall, outcome: Outcome) -> None:
        call = routed.call
        self._row(
            node, kind, peer=peer, message=routed.id, operation=call.operation, client=call.client, outcome=outcome
        )

    def _state(self, node: str, kind: Kind, about: str, **fields: Unpack[EventFields]) -> None:
        """The state of a client on a node from now on; without a digest the node does not hold it."""
        self._state_rows[node] += 1
        is_there = fields.get("digest") is not None
        (self._held[node].add if is_there else self._held[node].discard)(about)
        self._row(node, kind, **EventFields(**fields, client=about))

    def _row(self, node: str, kind: Kind, **fields: Unpack[EventFields]) -> None:
        client = fields.get("client")
        if client is None or self.is_of_run(client):
            self._recorder.record(node, kind, at_ms=self._clock_ms(), **fields)


async def read_state(connection: Connection, *, headers: Mapping[str, str] | None = None) -> tuple[Replica, ...]:
    """All clients of a node, native and synced, as it would send them to a joining member.

    `connection` is a cluster-labelled one to the node's cluster port. Raises TargetError when there is no snapshot.
    """
    try:
        return read_snapshot(await connection.ask("DistroDataRequest", distro_request("SNAPSHOT"), headers=headers))
    except grpc.aio.AioRpcError as error:
        raise TargetError(f"{connection.address} cannot be read: {error.details()}; is the node up?") from error
    except ValueError as error:
        raise TargetError(f"{connection.address} cannot be read: {error}") from error


def _was_handled(reply: Message) -> bool:
    """Up to 2.5.0 a handler's exception comes as resultCode 200 with errorCode 500
    (docs/protocol #sync-result): not applied."""
    return not reply.body.get("errorCode")
