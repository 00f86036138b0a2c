"""One node under test among members that the kit plays: each listens, answers, reports and speaks as told.

To whoever drives it this is a cluster like any other, whose first node is real; actions that concern another member are
done by whoever plays it. The oracle is the model of one node seen from outside (`distro_model.outside`): it hears of
everything that is done to the node and that the node sends, and an observation that nothing explains is a divergence.
An embedded node runs in virtual time, where every window is an instant; any other target in real time, where the
windows are as wide as a busy machine needs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from distro_conformance.drivers.clients import read_instance
from distro_conformance.drivers.embedded import SETTLE_TIMEOUT_S, UNKNOWN_TO_MODEL, NodeServer, VirtualTime
from distro_conformance.drivers.lockstep import DivergedError, Watch
from distro_conformance.drivers.played import (
    ANSWERS,
    UNPARSED,
    PlayedServer,
    TargetServer,
    copies_in,
    said,
)
from distro_conformance.drivers.service_lists import published_of
from distro_conformance.drivers.wired import WiredCluster
from distro_conformance.node.peer import (
    REPORT_REQUEST,
    Arrival,
    PlayedPeer,
)
from distro_conformance.node.player import batch_request, instance_request
from distro_conformance.node.replies import REPORT_FAILURE
from distro_conformance.recording.traffic import TrafficLog
from distro_conformance.targets.target import OnProgress, Target
from distro_conformance.verdict import TargetError
from distro_conformance.waiting import Clock, RealClock, eventually
from distro_conformance.wire.connection import TRANSPORT
from distro_conformance.wire.links import Carried, Link
from distro_conformance.wire.messages import (
    UNHEARD_TYPE,
    outcome_of,
    read_query,
    read_snapshot,
)
from distro_conformance.wire.transports import IN_MEMORY, Wire
from distro_impl import NodeConfig, VirtualClock, WorkFailedError, profile_named, with_mutant
from distro_model.actions import (
    MALFORMED,
    Action,
    Advance,
    AnswerAgain,
    Answers,
    Connect,
    Crash,
    Cut,
    Deregister,
    Disconnect,
    FallSilent,
    Heal,
    Hold,
    ListMembers,
    Move,
    OverHttp,
    Pause,
    Register,
    RegisterBatch,
    Release,
    Restart,
    Resume,
    Says,
)
from distro_model.clock import View
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
from distro_model.messages import Answer, CallResult, Change, Delete, Request, Snapshot, Verify
from distro_model.outside import NodeOutside, Slack, Unexplained
from distro_model.profiles import beside_nodes
from distro_model.profiles import profile_named as model_profile_named
from distro_model.rules.sync import calls_back
from distro_protos import Message
from distro_traces.content import Replica
from distro_traces.event import Outcome

IN_REAL_TIME = Slack(late_ms=2_500, skew_ms=300)
"""What a server on a busy machine may be late, and by how much later what it sent is observed."""

JOINED_WITHIN_MS = 60_000


class _Heard(TrafficLog):
    """What travels from the node to its peers, told to the oracle as it happens."""

    def __init__(self, cluster: PeersCluster) -> None:
        super().__init__(cluster.clients.name_of, cluster.now_ms)
        self._cluster = cluster
        self._results: dict[str, tuple[CallResult, tuple[Change, ...]]] = {}

    def sent(self, carried: Carried) -> None:
        super().sent(carried)
        self._cluster.heard(self._by_name(carried))

    def replied(self, carried: Carried, outcome: Outcome, reply: Message) -> None:
        super().replied(carried, outcome, reply)
        result = CallResult.UNHEARD if reply.type == UNHEARD_TYPE else CallResult(outcome.value)
        copies: tuple[Change, ...] = ()
        if carried.call.operation == "SNAPSHOT" and result is CallResult.SUCCESS:
            copies = tuple(self._cluster.change_of(replica) for replica in read_snapshot(reply))
        self._results[carried.id] = result, copies

    def ended(self, carried: Carried, outcome: Outcome) -> None:
        super().ended(carried, outcome)
        said = self._results.pop(carried.id, None)
        is_heard = said is not None and outcome not in (Outcome.TIMEOUT, Outcome.UNREACHABLE)
        result, copies = said if said is not None and is_heard else (CallResult(outcome.value), ())
        self._cluster.hears(carried.id, result, copies)


class PeersCluster(WiredCluster):
    """`target` None: an embedded node. The first name is the node's, the others are played."""

    incomparable = None

    def __init__(
        self,
        target: Target | None = None,
        mutant: str | None = None,
        wire: Wire = IN_MEMORY,
        *,
        on_progress: OnProgress = lambda _: None,
        watch: Watch = lambda profile: profile,
    ) -> None:
        super().__init__()
        self.kind = "peers" if target is None else f"peers of {target.spec}"
        self._target, self._mutant, self._on_progress, self._watch = target, mutant, on_progress, watch
        self.traffic = _Heard(self)
        self.virtual = VirtualClock(settle_timeout_s=SETTLE_TIMEOUT_S)
        self._wire = wire
        self._transport = wire.transport(self.virtual) if target is None else TRANSPORT
        self.clients.transport = self.reader.transport = self._transport
        self._is_virtual = target is None
        self.peers: dict[str, PlayedPeer] = {}
        self.outside: NodeOutside
        self.failure: Unexplained | None = None
        self.last_heard = ""
        self._away: set[str] = set()
        self._keys = 0
        self.clock: Clock = VirtualTime(self.virtual, self.perform) if target is None else RealClock()

    @property
    def under_test(self) -> str:
        return self.names[0]

    # The contract

    def cannot(self, action: Action) -> str | None:
        match action:
            case Says() | Answers():
                return None
            case Pause() | Resume() | FallSilent() | AnswerAgain() | OverHttp() | ListMembers() | Move():
                return "not among played members"
            case Crash(node) | Restart(node) if self.names and node == self.under_test:
                return "the node under test lives through the run"
        return super().cannot(action)

    def forbidden(self, action: Action) -> str | None:
        """Why the action makes no sense now, or None."""
        if isinstance(action, Says | Answers) and action.peer not in self.peers:
            return f"there is no played member {action.peer}"
        why_not = self.cannot(action)
        if why_not is not None:
            return why_not
        match action:
            case Connect(client):
                return f"{client} has been connected before" if client in self.clients.names.values() else None
            case Deregister(client, service) if client in self.clients.now:
                held = self.outside.clients[client].views
                is_there = any(view is not None and service in dict(view.content) for view in held)
                return None if is_there else f"{client} does not publish {service}"
            case Register(client) | RegisterBatch(client) | Deregister(client) | Disconnect(client):
                return None if client in self.clients.now else f"{client} is not connected"
            case Crash(node):
                return None if node in self.up else f"{node} is down"
            case Restart(node):
                return f"{node} runs" if node in self.up else None
            case Says(peer):
                return None if peer in self.up else f"{peer} is down"
            case Cut(_, target):
                return "cut already" if self.links[self.under_test, target].is_cut else None
            case Heal(_, target):
                return None if self.links[self.under_test, target].is_cut else "not cut"
        return None

    async def start(self, names: Sequence[str], profile: str, *, spare: Sequence[str] = ()) -> None:
        """Raises DivergedError when the node does not even start as the model does."""
        self._name(names, spare)
        node, *played = names
        rules = beside_nodes(model_profile_named(profile))
        if self._is_virtual:  # the reference node hears of every end of a call (tests/counterparts.py)
            rules = rules.with_rules(calls_back)
        rules = self._watch(rules)
        ports = self._ports(len(names))
        clock = self.virtual if self._is_virtual else None
        self.links = {(node, peer): Link(node, peer, self.traffic, clock) for peer in played}
        version = profile_named(profile).version if self._is_virtual else profile.removeprefix("nacos-")
        self.peers = {
            peer: PlayedPeer(port, self.clock.now_ms, version=version)
            for peer, port in zip(played, ports[1:], strict=True)
        }
        self.servers = {node: self._server(ports, profile)}
        self.servers |= {name: PlayedServer(peer) for name, peer in self.peers.items()}
        self.outside = NodeOutside(node, played, rules, Slack() if self._is_virtual else IN_REAL_TIME)
        await asyncio.gather(*map(self._start_peer, played))
        self.up = self.names
        self.outside.start(self.clock.now_ms())
        await self.servers[node].start(until_loaded=False)
        await self._settle()
        await asyncio.gather(*(self._dial(peer) for peer in played))
        await self._until_joined()
        self.outside.joined(self.clock.now_ms())
        self._raise_found(None)

    async def perform(self, action: Action) -> None:
        """Raises DivergedError when the node does what no possible state explains."""
        try:
            if isinstance(action, Advance) and self._is_virtual:
                await self.virtual.advance(action.ms)
            else:
                await super().perform(action)
            self._raise_found(action)
            await self._look()
        except (Unexplained, WorkFailedError) as found:
            raise DivergedError(action, self.clock.now_ms(), f"after `{action}` {self._explained(found)}") from found
        self._raise_found(action)

    def forgive(self) -> None:
        """Look at the node from now on only: what was found so far has been told."""
        self.failure = None
        self.outside.forget()

    @property
    def is_at_rest(self) -> bool:
        return True

    # Between the node and the oracle

    def heard(self, carried: Carried) -> None:
        """The node has sent a Distro request."""
        call = carried.call
        if not self._is_virtual and call.client is not None and call.client not in self.clients.names.values():
            return  # of a run that is over
        self.last_heard = f"{call.operation} of {call.client} to {carried.target}" if call.client else call.operation
        request = self._request(call.operation, call.client, call.revision or 0, carried)
        self._note(lambda: self.outside.sent(carried.id, carried.target, request, self.clock.now_ms()))

    def hears(self, call: str, result: CallResult, copies: Sequence[Change]) -> None:
        """The node hears how it ended."""
        self._note(lambda: self.outside.ended(call, result, copies, self.clock.now_ms()))

    def change_of(self, replica: Replica) -> Change:
        return Change(self.clients.name_of(replica.client) or "", replica.revision, published_of(replica))

    def _by_name(self, replicas: Iterable[Replica]) -> Mapping[str, View]:
        return {self.clients.names.get(r.client, r.client): View(r.revision, published_of(r)) for r in replicas}

    def _request(self, operation: str, client: str | None, revision: int, carried: Carried) -> Request:
        match operation:
            case "VERIFY":
                return Verify(client or "", revision)
            case "DELETE":
                return Delete(client or "")
            case "SNAPSHOT":
                return Snapshot()
        replica = carried.call.replica
        return Change(client or "", revision, () if replica is None else published_of(replica))

    def _note(self, observe: Callable[[], None]) -> None:
        """The first that nothing explains counts; it is raised to whoever acts."""
        if self.failure is not None:
            return
        try:
            observe()
        except Unexplained as found:
            self.failure = found

    def _raise_found(self, action: Action | None) -> None:
        if self.failure is not None:
            found = self.failure
            text = self._explained(found) if action is None else f"after `{action}` {self._explained(found)}"
            raise DivergedError(action or Advance(0), self.clock.now_ms(), text) from found

    def _explained(self, found: BaseException) -> str:
        after = f"; the last it sent: {self.last_heard}" if self.last_heard else ""
        return f"{self.under_test}: {found}{after}"

    async def _look(self) -> None:
        """What the node holds, and what was due."""
        for name, peer in self.peers.items():
            self._note_connection(name, peer)
        asked_ms = self.clock.now_ms()
        held = await self.reader.held(self.under_test)
        known = held.keys() if self._is_virtual else self.outside.clients.keys()
        held = {client: view for client, view in held.items() if client in known}
        self.outside.shown(held, asked_ms, self.clock.now_ms(), "it shows")
        self.outside.check(self.clock.now_ms())

    def _note_connection(self, name: str, peer: PlayedPeer) -> None:
        if not peer.is_connected or self.links[self.under_test, name].is_cut:
            self._away.add(name)
            self.outside.peer_left(name, self.clock.now_ms())
        elif name in self._away:
            self._away.discard(name)
            self.outside.peer_back(name, self.clock.now_ms())

    # What is done

    async def _perform(self, action: Action) -> None:
        match action:
            case Says():
                await self._say(action)
            case Answers(peer, operation, result, client):
                reply = REPORT_FAILURE if (operation, result) == ("REPORT", "fail") else ANSWERS[result]
                self.peers[peer].answer(operation, reply, client=self.clients.id_of(client), once=True)
            case Crash(node):
                await self._dies(node)
            case Restart(node):
                await self._start_peer(node)
                await self._dial(node)
                self.up = tuple(each for each in self.names if each in self.up or each == node)
            case Hold(_, target) | Release(_, target):
                self.outside.peer_waits(target, self.clock.now_ms(), waits=isinstance(action, Hold))
                await super()._perform(action)
            case Cut(_, target):
                self._away.add(target)
                self.outside.peer_left(target, self.clock.now_ms())
                await super()._perform(action)
            case _:
                await super()._perform(action)

    async def _client_acts(self, action: Connect | Register | RegisterBatch | Deregister) -> None:
        match action:
            case Connect(client, node):
                key = self._key()
                self.outside.begin(key, client, ClientConnected(0, client), self.clock.now_ms())
                await self.clients.connect(client, node)
                self.outside.finish(key, client, None, self.clock.now_ms(), f"it takes {client}")
            case Register(client, service, instance):
                body = instance_request("registerInstance", service, *read_instance(instance), self.clients.namespace)
                await self._acts(client, InstanceRegistered(0, client, service, instance), "InstanceRequest", body)
            case RegisterBatch(client, service, instances):
                body = batch_request(service, map(read_instance, instances), self.clients.namespace)
                await self._acts(client, BatchRegistered(0, client, service, instances), "BatchInstanceRequest", body)
            case Deregister(client, service):
                body = instance_request("deregisterInstance", service, "10.0.0.1", 80, {}, self.clients.namespace)
                await self._acts(client, InstanceDeregistered(0, client, service), "InstanceRequest", body)

    async def _acts(self, client: str, event: Event, type_name: str, body: Mapping[str, object]) -> None:
        async def ask() -> Answer:
            reply = await self.clients.now[client].connection.ask(type_name, body)
            await self._settle()
            return Answer(CallResult.SUCCESS if reply.succeeded else CallResult.FAIL)

        await self._in_window(client, event, ask, f"it answers {type_name} of {client} with")

    async def _in_window(self, client: str, event: Event, ask: Callable[[], Awaitable[Answer]], what: str) -> None:
        key = self._key()
        self.outside.begin(key, client, event, self.clock.now_ms())
        answer = await ask()
        self.outside.finish(key, client, answer, self.clock.now_ms(), f"{what} {answer.result}")

    async def _disconnect(self, client: str) -> None:
        key = self._key()
        self.outside.begin(key, client, ClientDisconnected(0, client), self.clock.now_ms())
        await super()._disconnect(client)
        await self._settle()
        self.outside.finish(key, client, None, self.clock.now_ms(), f"{client} leaves")

    async def _say(self, action: Says) -> None:
        peer = self.peers[action.peer]
        client_id = self._id_of(action)
        if action.operation == "REPORT":
            await peer.report()
            await self._settle()
            self.outside.reported_to(action.peer, self.clock.now_ms())
            return
        body, request = said(action, client_id, self.servers[self.under_test].address)
        if request is None:
            asked_ms = self.clock.now_ms()
            try:
                found = read_query(await peer.say(body))
            except ValueError as error:
                raise TargetError(f"{self.under_test} cannot be asked for {action.client}: {error}") from error
            held = {} if found is None else {action.client or "": self._by_name((found,))[action.client or ""]}
            self._shown_one(action.client or "", held, asked_ms)
            return

        async def ask() -> Answer:
            reply = await peer.say(body)
            await self._settle()
            if isinstance(request, Snapshot):
                return Answer(CallResult(outcome_of(reply).value), tuple(map(self.change_of, copies_in(reply))))
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
            await ask()  # what is shown is looked at after each action
            return
        await self._in_window(action.client or "", event, ask, f"it answers {action} with")

    def _shown_one(self, client: str, held: Mapping[str, View], asked_ms: int) -> None:
        watched = self.outside.clients.get(client)
        if watched is not None:
            watched.shown(held.get(client), asked_ms, self.clock.now_ms(), "it answers a QUERY of")

    def _id_of(self, action: Says) -> str:
        """A client that nobody has connected is one of the member that speaks of it first."""
        if action.client is None:
            return ""
        known = next((key for key, name in self.clients.names.items() if name == action.client), None)
        if known is None:
            number = len(self.clients.names) + 1
            known = f"{1_600_000_000_000 + number}_127.0.0.1_{self.peers[action.peer].port}"
            self.clients.names[known] = action.client
        return known

    async def _dies(self, node: str) -> None:
        self._away.add(node)
        self.outside.peer_left(node, self.clock.now_ms())
        self.up = tuple(each for each in self.up if each != node)
        await self.reader.leave(node)
        self.links[self.under_test, node].target_gone()
        await self.peers[node].stop()

    def _key(self) -> str:
        self._keys += 1
        return f"k{self._keys}"

    # How it is started

    def _ports(self, count: int) -> list[int]:
        if self._is_virtual:
            return self._wire.main_ports(count)
        from distro_conformance.targets.ports import free_base_ports  # noqa: PLC0415

        assert self._target is not None
        return [int(self._target.address.rpartition(":")[2]), *sorted(free_base_ports(count - 1))]

    def _server(self, ports: Sequence[int], profile: str) -> NodeServer | TargetServer:
        members = tuple(f"127.0.0.1:{port}" for port in ports)
        if self._target is not None:
            return TargetServer(self._target, members[1:], self._on_progress)
        chosen = profile_named(profile)
        chosen = with_mutant(chosen, self._mutant) if self._mutant else chosen
        chosen = replace(chosen, **UNKNOWN_TO_MODEL).acquainted()
        config = NodeConfig(port=ports[0], members=members, profile=chosen, serves_http=False)
        return NodeServer(config, self.virtual, None, self._link_to, self._transport)

    def _link_to(self, address: str) -> Link:
        return self.links[self.under_test, self.name_of(address)]

    async def _start_peer(self, name: str) -> None:
        peer = self.peers[name]
        peer.listeners = [lambda arrival: self._arrived(name, arrival)]
        peer.on_connection = lambda: self._note_connection(name, peer)
        if self._is_virtual:
            await peer.start_in(self._transport, self.virtual)
        else:
            peer.link = self.links[self.under_test, name]
            await peer.start()

    async def _dial(self, name: str) -> None:
        await self.peers[name].dial(self.servers[self.under_test].address)

    def _arrived(self, name: str, arrival: Arrival) -> None:
        if arrival.type != REPORT_REQUEST:
            return
        result = CallResult.SUCCESS if arrival.answered else CallResult.FAIL if arrival.is_typed else None
        self._note(lambda: self.outside.reported(name, result, self.clock.now_ms()))

    async def _until_joined(self) -> None:
        async def joined() -> bool | None:
            return all(peer.is_connected for peer in self.peers.values()) or None

        if await eventually(joined, self.clock, JOINED_WITHIN_MS) is None:
            raise TargetError(f"{self.under_test} has not connected to its members within {JOINED_WITHIN_MS} ms")

    async def _settle(self) -> None:
        if self._is_virtual:
            await self.virtual.settle()
