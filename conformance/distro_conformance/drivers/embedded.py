"""Reference nodes in this process, with the kit as network, clients and clock.

Messages travel over real gRPC on loopback, or in memory, and every directed link between two nodes is a `Link` of the
kit. Time is virtual: an action returns when the nodes have nothing left to do. Beside programs that need real time it
is real. In virtual time nodes report their changes to the recording; in real time they report nothing, as real servers
do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import permutations
from typing import Any

from distro_conformance.drivers.wired import WiredCluster
from distro_conformance.node.http_player import later_api
from distro_conformance.node_mutants import with_mutant
from distro_conformance.recording.journal import TraceJournal
from distro_conformance.targets.credentials import options_for
from distro_conformance.targets.embedded import ReferenceNode
from distro_conformance.waiting import gather_all
from distro_conformance.wire.links import Link
from distro_conformance.wire.transports import IN_MEMORY, Wire
from distro_impl import (
    Node,
    NodeConfig,
    NodeEvent,
    NodeEventKind,
    Profile,
    SystemClock,
    profile_named,
)
from distro_impl.profiles import ReportTransport
from distro_model.actions import Action, BaseHttpRequest, Pause, RegisterBatch, Resume
from distro_model.clock.cluster import prologue
from distro_model.possible import Observation
from distro_model.profiles import profile_named as model_profile_named
from distro_traces.content import NOTHING_PUBLISHED, has_batch, replica_from_sync
from distro_traces.event import BATCH
from distro_traces.ndjson import Recorder

UNKNOWN_TO_MODEL: Mapping[str, Any] = {
    # A query of a release shows what its last push saw. The model ends at the client table.
    "queries_read_pushed_view": False,
    # Reports over HTTP would pass by the links, and no fault would meet them.
    "report_transport": ReportTransport.GRPC_UNLESS_BOTH_REFUSE,
}
"""Changes of the node's profile for a run, since the model has no such rule."""

LOAD_RETRY_MS = 200
"""In real time: nodes that start together find no member to load from, and would usually ask again in half a minute."""


def node_events_into(cluster: WiredCluster) -> Callable[[NodeEvent], None]:
    """Reports of reference nodes about themselves, as rows of the cluster's recording, if any."""

    def record(event: NodeEvent) -> None:
        node = cluster.name_of(event.node)
        client = cluster.clients.name_of(event.client) or event.client
        reason = f" ({event.reason})" if event.reason else ""
        cluster.traffic.happened(f"{node} reports {event.kind} {client}{reason}")
        recording = cluster.journal
        if recording is None:
            return
        content = replica_from_sync(event.sync_data).digest if event.sync_data is not None else NOTHING_PUBLISHED
        match event.kind:
            case NodeEventKind.CLIENT_CONNECTED:
                recording.client_connected(node, client, event.revision or 0, content)
            case NodeEventKind.CLIENT_CHANGED:
                batch = BATCH if event.sync_data is not None and has_batch(event.sync_data) else None
                recording.client_changed(node, client, event.revision or 0, content, detail=event.reason or batch)
            case NodeEventKind.CLIENT_DISCONNECTED:
                recording.client_disconnected(node, client)
            case NodeEventKind.REPLICA_APPLIED:
                recording.replica_applied(node, client, event.revision, content)
            case NodeEventKind.REPLICA_REMOVED:
                recording.replica_removed(node, client, reason=event.reason)

    return record


class EmbeddedCluster(WiredCluster):
    """`serves_http`: its nodes have the HTTP API, which takes time at each start. `reports_events`: they report
    events of their clients even if nothing is recorded."""

    kind = "embedded"
    one_release: str | None = None
    servers: dict[str, ReferenceNode]  # type: ignore[assignment]

    def __init__(
        self,
        mutant: str | None = None,
        recorder: Recorder | None = None,
        *,
        serves_http: bool = False,
        real_time: bool = False,
        lease_ms: int | None = None,
        wire: Wire = IN_MEMORY,
        reports_events: bool = False,
    ) -> None:
        super().__init__(recorder, None if real_time else wire)
        self._reports_events = reports_events
        self._mutant, self._serves_http, self._lease_ms = mutant, serves_http, lease_ms
        self._profile: Profile | None = None
        """The requested profile: an action that a mutant makes impossible is the mutant's fault."""
        self._nodes_clock = self.virtual or SystemClock()
        self._asked_at: dict[str, tuple[Node | None, int]] = {}

    def cannot(self, action: Action) -> str | None:
        match action:
            case RegisterBatch() if self._profile and not self._releases and not self._profile.batch_registration:
                return f"nodes of {self._profile.name} know no batches"
            case BaseHttpRequest(node=node, by_v2=True) if self._profile and not self._behaviour(node).http_v2_api:
                return f"nodes of {self._behaviour(node).name} know no version 2 of the HTTP API"
            case Pause() | Resume():
                return "embedded nodes share one process and one clock: none of them can be stopped by itself"
        return super().cannot(action)

    async def changed_state(self, nodes: Sequence[str]) -> Observation:
        """The state of the nodes that have changed since the last query; nodes count their changes."""
        changed = [name for name in nodes if self._asked_at.get(name) != self._changes(name)]
        return await self.held_by(changed)

    async def held_by(self, nodes: Sequence[str]) -> Observation:
        self._asked_at.update((name, self._changes(name)) for name in nodes)
        return await super().held_by(nodes)

    def _changes(self, name: str) -> tuple[Node | None, int]:
        """The change counter of the current life of the node."""
        node = self.servers[name].node
        return node, node.changes if node is not None else 0

    async def start(self, names: Sequence[str], profile: str, *, spare: Sequence[str] = ()) -> None:
        self._prepare(names, profile, spare)
        if self.virtual is not None:
            for action in prologue(names, model_profile_named(profile)):
                await self.perform(action)
        else:
            await gather_all(self._bring_up(name, until_loaded=True) for name in names)
        await self._from_now_on(self._clock_from_now_on())

    def _prepare(self, names: Sequence[str], profile: str, spare: Sequence[str] = ()) -> None:
        """Everything but the start of the nodes: ports, links, the recording."""
        self._profile = profile_named(profile)
        self._name(names, spare, profile)
        ports = dict(zip(self.names, self.wire.main_ports(len(self.names)), strict=True))
        self.links = {ends: Link(*ends, self.traffic, self._nodes_clock) for ends in permutations(self.names, 2)}
        if self._recorder is not None:
            self._records(TraceJournal(self._recorder, self.clock.now_ms, infer_state=self.virtual is None), profile)
        for name, port in ports.items():
            self.servers[name] = self._reference(name, port, self._listed(name, ports), self._chosen(name))

    def _behaviour(self, name: str) -> Profile:
        assert self._profile is not None
        return profile_named(self._releases[name]) if name in self._releases else self._profile

    def _chosen(self, name: str) -> Profile:
        """The mutant comes last, so that no other change repairs it."""
        chosen = with_mutant(self._suited(self._behaviour(name)), self._mutant)
        return replace(chosen, client_expired_ms=self._lease_ms) if self._lease_ms else chosen

    def set_release(self, node: str, profile: str) -> None:
        self._releases[node] = profile
        self._later_apis[node] = later_api(profile)
        if node in self.servers:
            self.servers[node].behave_as(self._chosen(node))
            self.reader.headers = {**self.reader.headers, **self.servers[node].headers}

    def _suited(self, profile: Profile) -> Profile:
        if self.virtual is None:
            return replace(profile.with_known_members(), load_retry_delay_ms=LOAD_RETRY_MS)
        return replace(
            profile, **UNKNOWN_TO_MODEL
        ).with_known_members()  # the model begins with members that are connected

    def _reference(self, name: str, port: int, members: tuple[str, ...], profile: Profile) -> ReferenceNode:
        config = NodeConfig(
            port=port,
            members=members,
            profile=profile,
            options=options_for(profile),
            serves_http=self._serves_http,
        )
        links = partial(self.link_to, name)
        node = ReferenceNode(config, self._nodes_clock, links, self._observer(), self.transport)
        self.reader.headers = {**self.reader.headers, **node.headers}
        return node

    def _observer(self) -> Callable[[NodeEvent], None] | None:
        is_read = self.journal is not None or self._reports_events
        return node_events_into(self) if is_read and self.virtual is not None else None

    async def _left(self, node: str, client_id: str) -> None:
        """Nothing to wait for in virtual time: the action returns when the node has noticed it."""
        if self.virtual is None:
            await super()._left(node, client_id)
