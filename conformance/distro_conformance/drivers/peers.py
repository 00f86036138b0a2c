"""One node under test among members that the kit plays. A played member listens, answers, reports, and sends requests.

The caller uses it like any cluster. The first node is the tested one; the actions of other members are done by the
played members. The oracle is the model of one node observed from outside (`distro_model.outside`). It gets all requests
to the node and all messages of the node. An observation that it cannot explain is a divergence.

An embedded node runs in virtual time, in which the time window of each event is an instant. Any other target runs in
real time; then the windows are as wide as the delays of a busy machine require.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count

from distro_conformance.drivers.clients import KEEP_ALIVE_S
from distro_conformance.drivers.lockstep import Watch
from distro_conformance.drivers.node_checker import NodeChecker
from distro_conformance.drivers.oracle import Oracle, OracleTraffic
from distro_conformance.drivers.played import ANSWERS, UNPARSED, copies_in, request_of
from distro_conformance.drivers.tested_node import EmbeddedUnderTest, TargetUnderTest, UnderTest
from distro_conformance.drivers.wired import WiredCluster
from distro_conformance.node.http_member import ANSWER as NOT_DONE
from distro_conformance.node.peer import REPORT_REQUEST, Arrival, PlayedPeer
from distro_conformance.node.player import RefusedError, answer_over_http
from distro_conformance.node.replies import REPORT_FAILURE
from distro_conformance.recording.journal import TraceJournal
from distro_conformance.targets.ports import CLUSTER_OFFSET, with_offset
from distro_conformance.targets.target import OnProgress, Target
from distro_conformance.verdict import TargetError
from distro_conformance.waiting import eventually, poll_local
from distro_conformance.wire.connection import UNREGISTERED
from distro_conformance.wire.links import Link
from distro_conformance.wire.messages import DISTRO_REQUEST, RoutedCall, outcome_of, read_query, read_request
from distro_conformance.wire.transports import IN_MEMORY, Wire
from distro_impl import WorkFailedError
from distro_model.actions import (
    MALFORMED,
    Action,
    Advance,
    AnswerAgain,
    BaseHttpRequest,
    Connect,
    Crash,
    Cut,
    Deregister,
    Disconnect,
    FallSilent,
    Heal,
    Hold,
    HttpRequest,
    ListMembers,
    Move,
    Pause,
    PeerAnswer,
    PeerRequest,
    Register,
    RegisterBatch,
    Release,
    Restart,
    Resume,
)
from distro_model.clock.cluster import View
from distro_model.clock.environment import asked_over_http, unknown_to
from distro_model.events import (
    BatchRegistered,
    ClientConnected,
    ClientDisconnected,
    Event,
    HandlingRaised,
    InstanceDeregistered,
    InstanceRegistered,
    RequestReceived,
    UnknownReceived,
)
from distro_model.messages import FAIL, SUCCESS, Answer, CallResult, Snapshot
from distro_model.outside import NodeOutside, Slack, Unexplained
from distro_model.rules.owners import is_ip_client
from distro_protos import Json, Message
from distro_traces.ndjson import Recorder

LATE_MS, SKEW_MS = 1_000, 300
"""The allowed delay of a server in real time, and the delay until the kit observes a message of the server. Both are
part of each time limit. Measured delays of the machine are added (`slack.py`); an observation that is only possible
with them is not judged."""

JOINED_WITHIN_MS = 60_000


class PeersCluster(WiredCluster):
    """`target` None: an embedded node. Only embedded nodes are recorded.

    The first name is the node's, the others are played.
    """

    incomparable = None

    def __init__(
        self,
        target: Target | None = None,
        mutant: str | None = None,
        wire: Wire = IN_MEMORY,
        *,
        recorder: Recorder | None = None,
        on_progress: OnProgress = lambda _: None,
        watch: Watch = lambda profile: profile,
        serves_http: bool = False,
    ) -> None:
        super().__init__(recorder, wire if target is None else None)
        self._serves_http = serves_http or target is not None
        self.kind = "peers" if target is None else f"peers of {target.spec}"
        self._target, self._watch = target, watch
        self._under_test: UnderTest = (
            EmbeddedUnderTest(mutant, wire, serves_http=serves_http)
            if target is None
            else TargetUnderTest(target, on_progress)
        )
        self.peers: dict[str, PlayedPeer] = {}
        self._away: set[str] = set()
        self._foreign = count(1_600_000_000_001)
        """Numbers for the ids of clients of played members. No number is used twice, since the node may still hold a
        client of an earlier run."""
        self._beside: list[asyncio.Task[None]] = []
        self.clock = self.clock if target is None else target.clock
        self.oracle = Oracle(self.clients, self.clock)
        self.checker = NodeChecker(
            self.reader, self.clients, self.oracle, self._note_connections, in_real_time=self.virtual is None
        )
        self.traffic = OracleTraffic(self.oracle)

    def unjudged(self) -> str:
        outside = self.oracle.outside
        found = [f"{count} clients, since {reason.value}" for reason, count in outside.undecided.items() if count]
        late = f"{outside.late} actions of the node, late by no more than the machine's delay"
        return "; ".join(found + [late] * bool(outside.late))

    def answering(self) -> list[str]:
        """The gRPC ports of the played members that run, and whose link no fault interrupts."""
        links = {peer: self.links[self.under_test, peer] for peer in self.peers if peer in self.up}
        open_ones = [peer for peer, link in links.items() if not (link.is_cut or link.is_blackhole)]
        return [with_offset(self.peers[peer].address, CLUSTER_OFFSET) for peer in open_ones]

    @property
    def under_test(self) -> str:
        return self.names[0]

    # The contract

    def cannot(self, action: Action) -> str | None:
        match action:
            case PeerRequest() | PeerAnswer():
                return None
            case Pause() | Resume() | FallSilent() | AnswerAgain() | ListMembers() | Move():
                return "not among played members"
            case BaseHttpRequest(node=node) if self._serves_http and self.names and node != self.under_test:
                return f"{node} is played, and takes no clients"
            case Crash(node) | Restart(node) if self.names and node == self.under_test:
                return "the node under test is not stopped during a run"
        unknown = unknown_to(self.oracle.outside.profile, action) if self.names else None
        return unknown or super().cannot(action)

    def forbidden(self, action: Action) -> str | None:
        """The reason why the action is impossible now, or None."""
        if isinstance(action, PeerRequest | PeerAnswer) and action.peer not in self.peers:
            return f"there is no played member {action.peer}"
        why_not = self.cannot(action)
        if why_not is not None:
            return why_not
        match action:
            case Connect(client):
                return f"{client} has been connected before" if client in self.clients.names.values() else None
            case Deregister(client, service) if client in self.clients.now:
                held = self.oracle.outside.clients[client].views
                is_there = any(view is not None and service in dict(view.content) for view in held)
                return None if is_there else f"{client} does not publish {service}"
            case Register(client) | RegisterBatch(client) | Deregister(client) | Disconnect(client):
                return None if client in self.clients.now else f"{client} is not connected"
            case Crash(node):
                return None if node in self.up else f"{node} is down"
            case Restart(node):
                return f"{node} runs" if node in self.up else None
            case PeerRequest(peer):
                return None if peer in self.up else f"{peer} is down"
            case Cut(_, target):
                return "cut already" if self.links[self.under_test, target].is_cut else None
            case Heal(_, target):
                return None if self.links[self.under_test, target].is_cut else "not cut"
        return None

    async def start(self, names: Sequence[str], profile: str, *, spare: Sequence[str] = ()) -> None:
        """Raises DivergedError if the node differs from the model while it starts."""
        self._name(names, spare, profile)
        node, *played = names
        self.checker.node = node
        rules = self._watch(self._under_test.rules_of(profile))
        ports = self._under_test.ports(len(names))
        self.links = {(node, peer): Link(node, peer, self.traffic, self.virtual) for peer in played}
        version = self._under_test.version_of(profile)
        self.reader.headers = self._under_test.member_headers(profile)
        self.peers = {
            peer: PlayedPeer(port, self.clock.now_ms, version=version, headers=self.reader.headers)
            for peer, port in zip(played, ports[1:], strict=True)
        }
        if self._recorder is not None:
            journal = TraceJournal(self._recorder, self.clock.now_ms)
            self._records(journal, profile)
            for name in names:
                journal.node_started(name, names)
        self.servers = {node: await self._under_test.node(ports, profile, self), **self.peers}
        self.oracle.outside = NodeOutside(node, played, rules, Slack() if self.virtual else Slack(LATE_MS, SKEW_MS))
        await asyncio.gather(*map(self._start_peer, played))
        self.up = self.names
        self.oracle.outside.start(self.clock.now_ms())
        await self._from_now_on(self.clock)
        await self.servers[node].start(until_loaded=self._target is not None)
        if self._target is not None:
            self._target.clock.watch(self.servers[node].pid)
        await self._settle()
        await asyncio.gather(*(self._dial(peer) for peer in played))
        await self._until_joined()
        self.oracle.outside.joined(self.clock.now_ms())
        self.oracle.raise_found(None)
        if self.virtual is None:
            self._beside = [asyncio.create_task(self._keep_alive())]

    async def stop(self) -> None:
        for task in self._beside:
            task.cancel()
        await asyncio.gather(*self._beside, return_exceptions=True)
        await super().stop()

    async def _keep_alive(self) -> None:
        """Send health checks on all connections of clients and members: otherwise a server may close them and ignore
        their requests. The answers are awaited concurrently."""
        while True:
            await asyncio.sleep(KEEP_ALIVE_S)
            members = (peer.keep_alive() for peer in self.peers.values())
            signs = asyncio.gather(self.clients.send_keep_alives(), *members, return_exceptions=True)
            await asyncio.wait((signs,), timeout=KEEP_ALIVE_S)

    async def perform(self, action: Action) -> None:
        """Raises DivergedError if no possible state explains what the node does."""
        try:
            push_ms, before = self.checker.time_of_a_push(action), None
            if isinstance(action, Advance) and push_ms is not None:
                await super().perform(Advance(action.ms - push_ms))
                before = await self.checker.before_push()
            with self.checker.publishing(action):
                await super().perform(action if push_ms is None else Advance(push_ms))
            self.oracle.raise_found(action)
            reading = await self.checker.check()
            if before is not None and push_ms is not None:
                await self.checker.compare_lists(action, before, push_ms, reading)
        except (Unexplained, WorkFailedError) as found:
            raise self.oracle.diverged(action, found) from found
        self.oracle.raise_found(action)

    def _note_connections(self) -> None:
        for name, peer in self.peers.items():
            self._note_connection(name, peer)

    def _note_connection(self, name: str, peer: PlayedPeer) -> None:
        if not peer.is_connected or self.links[self.under_test, name].is_cut:
            self._away.add(name)
            self.oracle.outside.peer_left(name, self.clock.now_ms())
        elif name in self._away:
            self._away.discard(name)
            self.oracle.outside.peer_back(name, self.clock.now_ms())

    # Actions

    async def _perform(self, action: Action) -> None:
        match action:
            case PeerRequest():
                await self._send(action)
            case PeerAnswer(peer, operation, result, client):
                reply = REPORT_FAILURE if (operation, result) == ("REPORT", "fail") else ANSWERS[result]
                self.peers[peer].answer(operation, reply, client=self.clients.id_of(client), once=True)
            case Crash(node):
                await self._stop_member(node)
            case Restart(node):
                if self.journal is not None:
                    self.journal.node_started(node, self.names)
                await self._start_peer(node)
                await self._dial(node)
                self.up = tuple(each for each in self.names if each in self.up or each == node)
            case Hold(_, target) | Release(_, target):
                self.oracle.outside.peer_waits(target, self.clock.now_ms(), waits=isinstance(action, Hold))
                await super()._perform(action)
            case Cut(_, target):
                self._away.add(target)
                self.oracle.outside.peer_left(target, self.clock.now_ms())
                await super()._perform(action)
            case _:
                await super()._perform(action)

    async def _client_acts(self, action: Connect | Register | RegisterBatch | Deregister) -> None:
        match action:
            case Connect(client, node):
                connecting = partial(self.clients.connect, client, node)
                await self.oracle.perform_answered(client, ClientConnected(0, client), connecting, f"it takes {client}")
            case Register(client, service, instance):
                await self._acts(action, InstanceRegistered(0, client, service, instance))
            case RegisterBatch(client, service, instances):
                await self._acts(action, BatchRegistered(0, client, service, instances))
            case Deregister(client, service):
                await self._acts(action, InstanceDeregistered(0, client, service))

    async def _acts(self, action: Register | RegisterBatch | Deregister, event: Event) -> None:
        client = action.client
        if not isinstance(action, Deregister):
            with contextlib.suppress(RefusedError):  # the answer to the request itself is judged
                await self.clients.subscribe(client, action.service)

        async def ask() -> Answer:
            try:
                self.answers = (await self.clients.act(action),)
            except RefusedError as error:
                if error.answer is None:
                    raise
                self.answers = (error.answer,)
            await self._settle()
            return FAIL if self.answers[0].is_refused else SUCCESS

        await self.oracle.perform_answered(client, event, ask, f"it answers '{action}' with")

    async def _over_http(self, action: HttpRequest) -> None:
        """A request that the node passes on has no effect, since played members ignore it."""
        words: list[str] = []

        async def ask() -> Answer:
            reply = await self._ask_over_http(action)
            await self._settle()
            words.append(f"({reply})")
            answer = answer_over_http(reply.status, reply.text)
            self.answers = (answer,)
            return FAIL if answer.is_refused or reply.text == NOT_DONE else SUCCESS

        await self.oracle.perform_answered(
            action.client, asked_over_http(action), ask, f"it answers '{action}' with", words
        )

    async def _disconnect(self, client: str) -> None:
        leave = super()._disconnect

        async def leaves() -> None:
            with contextlib.suppress(TargetError):  # the oracle decides whether the node may still hold it
                await leave(client)
            await self._settle()

        await self.oracle.perform_unanswered(client, ClientDisconnected(0, client), leaves)

    async def _send(self, action: PeerRequest) -> None:
        peer = self.peers[action.peer]
        if action.operation == "DELETE" and action.client is not None:
            self.checker.deleted.add(action.client)
        client_id = self._id_of(action)
        if action.operation == "REPORT":
            if self.virtual is None:  # a server handles it before the kit has the answer
                self.oracle.outside.reported_to(action.peer, self.clock.now_ms())
            await peer.report()
            await self._settle()
            self.oracle.outside.reported_to(action.peer, self.clock.now_ms())
            return
        body, request = request_of(action, client_id, self.servers[self.under_test].address)
        if request is None:
            asked_ms = self.clock.now_ms()
            try:
                found = read_query(await self._reply_to(action, body))
            except ValueError as error:
                raise TargetError(f"{self.under_test} cannot be asked for {action.client}: {error}") from error
            held = {} if found is None else self._by_name((found,))
            self._shown_one(action.client or "", held, asked_ms)
            return

        async def ask() -> Answer:
            reply = await self._reply_to(action, body)
            await self._settle()
            if isinstance(request, Snapshot):
                return Answer(CallResult(outcome_of(reply).value), self.oracle.changes_of(copies_in(reply)))
            return Answer(CallResult(outcome_of(reply).value))

        event: Event = RequestReceived(0, action.peer, request)
        if action.operation == "NO-BASE64":
            if (answer := await ask()).result is not CallResult.ERROR:
                raise Unexplained("raise", action.client, f"it answers {action} with {answer.result}", UNPARSED)
            return
        if action.operation in MALFORMED:
            arrives = UnknownReceived if action.operation == "UNKNOWN-TYPE" else HandlingRaised
            event = arrives(0, action.peer, request)
        if isinstance(request, Snapshot):
            await ask()  # lists are compared after each action
            return
        await self.oracle.perform_answered(action.client or "", event, ask, f"it answers {action} with")

    async def _reply_to(self, action: PeerRequest, body: Json) -> Message:
        """Send a request of a member to the node. Raises TargetError if another run has stopped the member meanwhile:
        then the node does not know the connection any more and has not handled the request."""
        reply = await self._ask(action, body)
        if reply.body.get("errorCode") == UNREGISTERED and action.peer not in self.up:
            raise TargetError(f"{action.peer} was stopped while it sent {action}")
        return reply

    async def _ask(self, action: PeerRequest, body: Json) -> Message:
        """The same; the request is also written into the recording, if there is one."""
        peer, call = self.peers[action.peer], read_request(Message(DISTRO_REQUEST, body))
        if self.journal is None or call is None:
            return await peer.send(body)
        named = replace(call, client=action.client)
        routed = RoutedCall(self.journal.new_id(), action.peer, self.under_test, named)
        self.journal.sent(routed)
        self.journal.received(routed)
        reply = await peer.send(body)
        self.journal.replied(routed, outcome_of(reply), reply)
        self.journal.ended(routed, outcome_of(reply))
        return reply

    def _shown_one(self, client: str, held: Mapping[str, View], asked_ms: int) -> None:
        watched = self.oracle.outside.clients.get(client)
        if watched is not None:
            watched.shown(held.get(client), asked_ms, self.clock.now_ms(), "it answers a QUERY of")

    def _id_of(self, action: PeerRequest) -> str:
        """The id of the client. If it was never connected, it belongs to the first member that sends a request about
        it."""
        if action.client is None:
            return ""
        if is_ip_client(action.client):
            self.clients.names[action.client] = action.client
        known = next((key for key, name in self.clients.names.items() if name == action.client), None)
        if known is None:
            known = f"{next(self._foreign)}_127.0.0.1_{self.peers[action.peer].port}"
            self.clients.names[known] = action.client
        return known

    async def _stop_member(self, node: str) -> None:
        self._away.add(node)
        self.oracle.outside.peer_left(node, self.clock.now_ms())
        self.up = tuple(each for each in self.up if each != node)
        if self.journal is not None:
            self.journal.node_crashed(node)
        await self.reader.leave(node)
        self.links[self.under_test, node].target_gone()
        await self.peers[node].stop()

    # Start

    async def _start_peer(self, name: str) -> None:
        peer = self.peers[name]
        peer.listeners = [lambda arrival: self._arrived(name, arrival)]
        peer.on_connection = lambda: self._note_connection(name, peer)
        self.links[self.under_test, name].target_back()
        if self.virtual is not None:
            await peer.start_in(self.transport, self.virtual)
        else:
            peer.link = self.links[self.under_test, name]
            await peer.start()

    async def _dial(self, name: str) -> None:
        await self.peers[name].dial(self.servers[self.under_test].address)

    def _arrived(self, name: str, arrival: Arrival) -> None:
        if arrival.type != REPORT_REQUEST:
            return
        result = CallResult.SUCCESS if arrival.answered else CallResult.FAIL if arrival.is_typed else None
        self.oracle.note(lambda: self.oracle.outside.reported(name, result, self.clock.now_ms()))

    async def _until_joined(self) -> None:
        joined = poll_local(lambda: all(peer.is_connected for peer in self.peers.values()))
        if await eventually(joined, self.clock, JOINED_WITHIN_MS) is None:
            raise TargetError(f"{self.under_test} has not connected to its members within {JOINED_WITHIN_MS} ms")
