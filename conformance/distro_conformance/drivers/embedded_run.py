"""One run on an embedded cluster, as a plain object: perform, observe, what was said, close.

Hypothesis and replay are synchronous, the nodes are not; the event loop between them lives here. So does what turns
the nodes' own reports and the traffic on the links into a recording.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from distro_conformance.drivers.embedded import EmbeddedCluster
from distro_conformance.drivers.service_lists import Lists
from distro_conformance.event_loop import new_event_loop
from distro_conformance.recording.journal import NOTHING_PUBLISHED, TraceJournal
from distro_conformance.wire.links import Carried
from distro_impl import NodeEvent, NodeEventKind, VirtualClock, free_main_ports, profile_named, with_mutant
from distro_impl.profiles import ReportTransport
from distro_model.actions import Action, Crash, Restart
from distro_model.clock import Traffic
from distro_model.messages import CallResult, Operation
from distro_model.possible import Observation
from distro_protos import Message
from distro_traces.content import replica_from_sync
from distro_traces.event import Outcome
from distro_traces.ndjson import Recorder

UNKNOWN_TO_MODEL: Mapping[str, Any] = {
    # A query of a release shows what its last push saw. The model ends at the client table.
    "queries_read_pushed_view": False,
    # Reports over HTTP would pass by the links, and no fault would meet them.
    "report_transport": ReportTransport.GRPC_UNLESS_BOTH_REFUSE,
}
"""What a run changes in the node's profile, since the model has no such rule."""

SETTLE_TIMEOUT_S = 60.0
"""Of real time, after which a run hangs; how busy the machine is must not decide that."""


@dataclass
class TrafficLog:
    """The Distro calls that have ended since the last look, by client name; passes everything on to a recording."""

    client_name: Callable[[str | None], str | None] = field(default=lambda client_id: client_id)
    recording: TraceJournal | None = None
    _ended: list[Traffic] = field(default_factory=list)
    _ids: int = 0

    def take(self) -> tuple[Traffic, ...]:
        ended, self._ended = self._ended, []
        return tuple(ended)

    def new_id(self) -> str:
        self._ids += 1
        return f"m{self._ids}"

    def sent(self, carried: Carried) -> None:
        if self.recording:
            self.recording.sent(self._by_name(carried))

    def received(self, carried: Carried) -> None:
        if self.recording:
            self.recording.received(self._by_name(carried))

    def replied(self, carried: Carried, outcome: Outcome, reply: Message) -> None:
        if self.recording:
            self.recording.replied(self._by_name(carried), outcome, reply)

    def ended(self, carried: Carried, outcome: Outcome) -> None:
        named = self._by_name(carried)
        call = named.call
        self._ended.append(
            Traffic(
                named.source,
                named.target,
                Operation(call.operation),
                call.client,
                call.revision,
                CallResult(outcome.value),
            )
        )
        if self.recording:
            self.recording.ended(named, outcome)

    def fault(self, source: str, target: str, what: str) -> None:
        if self.recording:
            self.recording.fault(source, target, " ".join(self.client_name(word) or word for word in what.split()))

    def _by_name(self, carried: Carried) -> Carried:
        name = self.client_name(carried.call.client)
        return replace(carried, call=replace(carried.call, client=name))


@cache
def _event_loop() -> asyncio.AbstractEventLoop:
    """One for the whole process: gRPC keeps serving every loop that it has ever met, closed ones too."""
    return new_event_loop()


class EmbeddedRun:
    """See the module. Close it; `recorder` makes it a recorded run, and is closed with it.

    Raises KitError and what the nodes raise; UnknownProfileError and UnknownMutantError before anything starts.
    """

    def __init__(
        self, nodes: Sequence[str], profile: str, mutant: str | None = None, recorder: Recorder | None = None
    ) -> None:
        chosen = profile_named(profile)
        chosen = with_mutant(chosen, mutant) if mutant else chosen
        chosen = replace(chosen, **UNKNOWN_TO_MODEL)
        self._loop = _event_loop()
        self._closed = False
        self._clock = VirtualClock(settle_timeout_s=SETTLE_TIMEOUT_S)
        self._start_ms = self._clock.now_ms()
        self._log = TrafficLog()
        self._cluster = EmbeddedCluster(
            tuple(nodes),
            chosen,
            self._log,
            self._clock,
            sorted(free_main_ports(len(nodes))),
            observer=self._on_node_event if recorder else None,
        )
        self._log.client_name = self._cluster.client_name
        self._recorder = recorder
        self._recording = TraceJournal(recorder, self.now_ms) if recorder else None
        self._log.recording = self._recording
        self._checkpoints = 0
        if self._recording:
            self._recording.run_started(nodes[0], profile)

    def now_ms(self) -> int:
        return self._clock.now_ms() - self._start_ms

    def perform(self, action: Action) -> None:
        match action:
            case Restart(node) if self._recording:
                self._recording.node_started(node, self._cluster.names)
            case Crash(node) if self._recording:
                self._recording.node_stopped(node, "crash")
        self._loop.run_until_complete(self._cluster.perform(action))

    def node_of(self, client: str) -> str:
        return self._cluster.node_of(client)

    @property
    def timers_fired(self) -> int:
        """Of all nodes, since the start: what else they do, they do because somebody speaks to them."""
        return self._clock.timers_fired

    @property
    def subscribed(self) -> Sequence[str]:
        """The nodes that have something to push to somebody."""
        return self._cluster.subscribed

    def observe(self, nodes: Sequence[str]) -> Observation:
        """What each of these nodes holds; None for one that is down."""
        return self._loop.run_until_complete(self._cluster.observe(nodes)) if nodes else {}

    def shown(self, nodes: Sequence[str]) -> Mapping[str, Lists]:
        return self._loop.run_until_complete(self._cluster.shown(nodes)) if nodes else {}

    def wrong_pushes(self, expected: Mapping[str, Lists]) -> str | None:
        return self._cluster.wrong_push(expected)

    def take_traffic(self) -> tuple[Traffic, ...]:
        """The Distro calls that ended since the last time."""
        return self._log.take()

    def checkpoint(self) -> None:
        """Into the recording: from here on the nodes that are up are held to agree."""
        if self._recording:
            self._checkpoints += 1
            self._recording.checkpoint(self._checkpoints, self._cluster.up)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            self._loop.run_until_complete(self._cluster.close())
        finally:
            if self._recorder:
                self._recorder.close()

    def _on_node_event(self, event: NodeEvent) -> None:
        recording = self._recording
        if recording is None:
            return
        node = self._cluster.names_by_address[event.node]
        client = self._cluster.client_name(event.client) or event.client
        content = replica_from_sync(event.sync_data).digest if event.sync_data is not None else NOTHING_PUBLISHED
        match event.kind:
            case NodeEventKind.CLIENT_CONNECTED:
                recording.client_connected(node, client, event.revision or 0, content)
            case NodeEventKind.CLIENT_CHANGED:
                recording.client_changed(node, client, event.revision or 0, content)
            case NodeEventKind.CLIENT_DISCONNECTED:
                recording.client_disconnected(node, client)
            case NodeEventKind.REPLICA_APPLIED:
                recording.replica_applied(node, client, event.revision, content)
            case NodeEventKind.REPLICA_REMOVED:
                recording.replica_removed(node, client, reason=event.reason)
