"""The common part of all clusters whose nodes are reached over the wire, wherever they run.

An action is performed by its part: by a client (`clients.py`), on a link (`wire/links.py`), on a node
(`targets/target.py`); `reader.py` reads what nodes hold and show. A subclass creates the nodes and the links between
them (`embedded.py`, `real_time.py`, `peers.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import grpc.aio

from distro_conformance.drivers.clients import ConnectedClients, read_instance
from distro_conformance.drivers.cluster import CannotError, Cluster, Ends, Lists, VirtualTime
from distro_conformance.drivers.reader import Reader
from distro_conformance.drivers.service_lists import published_of
from distro_conformance.node.http_player import LIGHT_BEATS_ONLY, HttpReply, PlayedHttpClient, later_api
from distro_conformance.node.player import RefusedError, answer_over_http
from distro_conformance.recording.journal import TraceJournal
from distro_conformance.recording.traffic import TrafficLog
from distro_conformance.slack import Slack
from distro_conformance.targets.ports import CLUSTER_OFFSET, SDK_OFFSET, with_offset
from distro_conformance.targets.server_process import signal_group
from distro_conformance.targets.target import Node
from distro_conformance.verdict import TargetError
from distro_conformance.waiting import Clock, RealClock, eventually, gather_in_order, poll_local
from distro_conformance.wire.connection import LOOPBACK, TRANSPORT
from distro_conformance.wire.links import Link
from distro_conformance.wire.transports import OVER_GRPC, Wire
from distro_impl import VirtualClock
from distro_model.actions import (
    Action,
    Advance,
    AnswerAgain,
    BaseHttpRequest,
    BaseLinkAction,
    BaseRequestAction,
    Blackhole,
    Connect,
    Crash,
    Cut,
    Delay,
    Deregister,
    Disconnect,
    FallSilent,
    Fault,
    Heal,
    Hold,
    HttpBeat,
    HttpDeregister,
    HttpLightBeat,
    HttpRegister,
    HttpRequest,
    LinkAction,
    ListMembers,
    Move,
    Pause,
    Refuse,
    Register,
    RegisterBatch,
    Release,
    Reply,
    Restart,
    Resume,
    Throttle,
)
from distro_model.clock.cluster import View
from distro_model.clock.traffic import compared_revision
from distro_model.possible import Observation
from distro_traces.content import Replica
from distro_traces.event import BATCH
from distro_traces.ndjson import Recorder

SETTLE_TIMEOUT_S = 60.0
"""Real time after which a run in virtual time counts as hanging, long enough for a busy machine."""
NOTICED_WITHIN_MS = 5_000
"""The time that a server may take to notice the end of a client's connection."""
UNDER_WAY_MS = 2_000
"""Until naming knows a connection, or a request has arrived at its link."""


Decision = TypeVar("Decision", bound=BaseRequestAction)


class WiredCluster(Cluster):
    """`names` in ascending order; the nodes' ports ascend with them, so that both sort alike."""

    kind = "wired"
    one_release: str | None = "only reference nodes (embedded) can be of different releases in one run"
    incomparable: str | None = "the model can follow embedded nodes step by step, in virtual time, and no others"

    def __init__(self, recorder: Recorder | None = None, wire: Wire | None = None) -> None:
        """`wire`: of nodes in virtual time; None: time is real."""
        self.virtual = None if wire is None else VirtualClock(settle_timeout_s=SETTLE_TIMEOUT_S)
        self.wire = wire or OVER_GRPC
        self.transport = TRANSPORT if self.virtual is None else self.wire.transport(self.virtual)
        self.names: tuple[str, ...] = ()
        self.servers: dict[str, Node] = {}
        self.links: dict[Ends, Link] = {}
        self.up: tuple[str, ...] = ()
        self.slack = Slack()
        self.clock = self._clock_from_now_on()
        self._measuring = contextlib.AsyncExitStack()
        self.only_own = False
        """Whether `observe` leaves out clients that this run did not make."""
        self.clients = ConnectedClients(lambda node: with_offset(self.servers[node].address, SDK_OFFSET))
        self.reader = Reader(
            lambda node: with_offset(self.servers[node].address, CLUSTER_OFFSET), self._by_name, self.clients.names
        )
        self.clients.transport = self.reader.transport = self.transport
        self.traffic = TrafficLog(self.clients.name_of, self.now_ms)
        self.journal: TraceJournal | None = None
        self._recorder = recorder
        self._checkpoints = 0
        self._paused: set[str] = set()
        self._lists: dict[str, Sequence[str]] = {}
        """The members in the list of each node."""
        self._releases: dict[str, str] = {}
        """Profiles of nodes that differ from the cluster's."""
        self._later_apis: dict[str, str] = {}
        self._serves_http = True

    def _name(self, names: Sequence[str], spare: Sequence[str], profile: str) -> None:
        """These are the nodes. No list names the spare addresses, which sort among them."""
        self.names = tuple(sorted((*names, *spare)))
        self._lists = dict.fromkeys(names, tuple(names))
        self._later_apis = {name: later_api(self._releases.get(name, profile)) for name in self.names}

    def _listed(self, name: str, ports: Mapping[str, int]) -> tuple[str, ...]:
        """The addresses in the list with which a node starts: its own too, whatever the others list."""
        return tuple(sorted({f"{LOOPBACK}:{ports[each]}" for each in (*self._lists, name)}))

    def now_ms(self) -> int:
        return self.clock.now_ms()

    def _clock_from_now_on(self) -> Clock:
        return RealClock(self.slack) if self.virtual is None else VirtualTime(self.virtual.now_ms, self.perform)

    def save_logs(self, directory: Path | None) -> Path | None:
        """Copy what the nodes have logged into a directory for each; None where no node writes logs, or where there is
        no place for them."""
        if directory is None:
            return None
        shutil.rmtree(directory, ignore_errors=True)
        saved = [(name, log) for name, server in self.servers.items() for log in server.logs]
        for name, log in saved:
            place = directory / name
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy2(log, place)
        return directory if saved else None

    # The contract

    def cannot(self, action: Action) -> str | None:
        match action:
            case BaseHttpRequest() if not self._serves_http:
                return "the nodes were started without their HTTP API"
            case HttpBeat(node=node, by_v2=True) if self._later_apis.get(node) == "v3":
                return LIGHT_BEATS_ONLY
            case BaseLinkAction(source, target) if (source, target) not in self.links:
                return f"the kit has no link from {source} to {target} on {self.kind}"
            case Pause(node) | Resume(node) if self.servers and self.servers[node].pid is None:
                return f"{node} has no process of its own that could be paused"
        return None

    def unreached(self, action: Action) -> str | None:
        match action:
            case BaseHttpRequest(node=node) if self.servers and node not in self.up:
                return f"{node} is down"
            case (
                Register(client)
                | RegisterBatch(client)
                | Deregister(client)
                | Disconnect(client)
                | FallSilent(client)
                | AnswerAgain(client)
            ) if client in self.clients.names.values():
                held = self.clients.now.get(client)
                return None if held and not held.is_closed else f"{client} is no longer connected"
        return None

    async def perform(self, action: Action) -> None:
        """Perform the action, and return when the nodes have nothing left to do, if that is known."""
        why_not = self.cannot(action)
        if why_not is not None:
            raise CannotError(f"'{action}': {why_not}")
        if isinstance(action, Advance):
            await (self.clock.pass_ms if self.virtual is None else self.virtual.advance)(action.ms)
            return
        try:
            await self._perform(action)
        except RefusedError as error:
            self.answers = (error.answer,) if error.answer is not None else ()
            raise
        except grpc.aio.AioRpcError as error:
            raise TargetError(f"'{action}': a node stopped answering: {error.details()}") from error
        await self._settle()

    async def observe(self) -> Sequence[Observation]:
        return [await self.held_by(self.names)]

    async def query(self, node: str, service: str) -> Sequence[tuple[str, ...]]:
        return [await self.reader.listed(node, service)]

    async def subscribe(self, client: str, service: str) -> None:
        await self.clients.subscribe(client, service)
        await self._settle()

    async def subscription(self, client: str, service: str) -> Sequence[tuple[str, ...]]:
        subscriber = self.clients.now.get(client)
        if subscriber is None or service not in subscriber.lists:
            raise CannotError(f"{client} has no subscription of {service}")
        return [subscriber.lists[service]]

    async def members(self, node: str) -> Sequence[Mapping[str, str]]:
        states = await self.servers[node].members() if node in self.up else {}
        names = {server.address: name for name, server in self.servers.items()}
        return [{names.get(address, address): state for address, state in states.items()}]

    async def snapshot_sources(self, node: str) -> frozenset[str]:
        return frozenset(self.traffic.snapshot_sources[node])

    def last_event(self) -> str | None:
        return self.traffic.last_event

    def clear_faults(self) -> None:
        """Repairs every fault of the links."""
        for link in self.links.values():
            link.clear_faults()

    @property
    def is_faulty(self) -> bool:
        """Whether a fault still keeps messages from a node, or is armed to."""
        return any(link.is_faulty for link in self.links.values())

    async def checkpoint(self) -> None:
        if self.journal is None:
            return
        await self._record_held()
        if not self.is_faulty:
            self._checkpoints += 1
            self.journal.checkpoint(self._checkpoints, self.up)

    async def stop(self) -> None:
        """The recording ends first: that the kit closes connections says nothing about the nodes."""
        self.stop_recording()
        await self._measuring.aclose()
        await asyncio.gather(self.reader.close(), self.clients.close())
        for link in self.links.values():
            link.source_gone()
            link.cut()
        await asyncio.gather(*(server.close() for server in self.servers.values()))
        self.up = ()

    async def forget_clients(self) -> None:
        """All clients leave, and their names become free for the next run."""
        await self.clients.forget()
        self.reader.forget()

    async def start_recording(self, recorder: Recorder, profile: str) -> None:
        """In real time: another recording begins, of nodes that run already and links that work; its time is 0 now."""
        self.stop_recording()
        self.clear_faults()
        self._recorder, self._checkpoints, self.clock = recorder, 0, RealClock(self.slack)
        journal = TraceJournal(recorder, self.clock.now_ms, infer_state=True)
        journal.is_of_run = lambda client: client in self.clients.names.values()
        self._records(journal, profile)

    def stop_recording(self) -> None:
        """Ends the recording."""
        self.journal = self.traffic.recording = None
        if self._recorder is not None:
            self._recorder.close()

    # Further observations for lockstep

    @property
    def subscribed(self) -> tuple[str, ...]:
        """The nodes to which a client with a subscription is connected."""
        at = self.clients.subscribed
        return tuple(name for name in self.names if name in at)

    async def held_by(self, nodes: Sequence[str]) -> Observation:
        """What each of these nodes holds, as its SNAPSHOT shows; None for a node that is down."""
        up = [name for name in nodes if name in self.up and name not in self._paused]
        held = await gather_in_order(map(self.reader.held, up))
        return {**dict.fromkeys(nodes), **dict(zip(up, held, strict=True))}

    async def shown(self, nodes: Iterable[str]) -> Mapping[str, Lists]:
        """What each of these nodes that is up answers to a query of each service."""
        up = [name for name in nodes if name in self.up]
        lists = await gather_in_order(self.reader.lists(name, self.clients.services) for name in up)
        return dict(zip(up, lists, strict=True))

    def name_of(self, address: str) -> str:
        return next(name for name, server in self.servers.items() if server.address == address)

    # For subclasses

    def link_to(self, name: str, address: str) -> Link:
        """The link from the node to the one at the address."""
        return self.links[name, self.name_of(address)]

    async def _settle(self) -> None:
        """Waits until the nodes have nothing left to do. In real time that is unknown."""
        if self.virtual is not None:
            await self.virtual.settle()

    async def _started(self, name: str) -> None:
        """Called when a node serves again."""

    async def _left(self, node: str, client_id: str) -> None:
        """Waits until the node has noticed that the connection is gone. A real node is queried."""

        async def gone() -> bool:
            return not await self._holds(node, client_id)

        if node in self.up and await eventually(gone, self.clock, NOTICED_WITHIN_MS) is None:
            name = self.clients.name_of(client_id)
            raise TargetError(f"{node} still holds {name}, {NOTICED_WITHIN_MS} ms after its connection ended")

    async def _holds(self, node: str, client_id: str) -> bool:
        return any(replica.client == client_id for replica in await self.reader.replicas(node))

    async def _from_now_on(self, clock: Clock) -> None:
        """Time is 0 now; where it is real, slack is measured until the end."""
        self.clock = clock
        await self._measuring.enter_async_context(clock.measured())

    def _records(self, journal: TraceJournal, profile: str) -> None:
        """Records events there from now on, under the names of this run."""
        self.journal = self.traffic.recording = journal
        journal.client_name = self.clients.name_of
        journal.run_started(self.names[0], profile)

    async def _bring_up(self, name: str, *, until_loaded: bool) -> None:
        if self.journal is not None:
            self.journal.node_started(name, self._lists[name])
        for (source, target), link in self.links.items():
            if source == name:
                link.source_back()
            elif target == name:
                link.target_back()
        self.traffic.snapshot_sources[name].clear()
        await self.servers[name].start(until_loaded=until_loaded)
        self.slack.watch(self.servers[name].pid)
        self.up = tuple(each for each in self.names if each in self.up or each == name)

    # Actions

    async def _perform(self, action: Action) -> None:
        match action:
            case Connect() | Register() | RegisterBatch() | Deregister():
                await self._client_acts(action)
                await self._record_client(action, action.client)
            case Disconnect(client):
                await self._disconnect(client)
            case FallSilent(client) | AnswerAgain(client):
                ends, silent = isinstance(action, AnswerAgain), self.clients.now[client]
                await (silent.answer_again() if ends else silent.fall_silent())
                if self.journal is not None:
                    self.journal.silence(silent.node, client, ends=ends)
            case BaseHttpRequest():
                await self._over_http(action)
            case BaseLinkAction():
                await self._fault(action)
            case Crash(node):
                await self._crash(node)
            case Restart(node):
                await self._bring_up(node, until_loaded=False)
                await self._started(node)
            case Move(node, address):
                members = sorted({*self._lists[node]} - {node} | {address})
                await self._change_list(address, members)
                await self._perform(Restart(address))
            case Pause(node):
                self._paused.add(node)
                signal_group(self.servers[node].pid, node, signal.SIGSTOP)
                if self.journal is not None:
                    self.journal.pause(node)
            case Resume(node):
                signal_group(self.servers[node].pid, node, signal.SIGCONT)
                self._paused.discard(node)
                if self.journal is not None:
                    self.journal.pause(node, ends=True)
            case ListMembers(node, members):
                await self._change_list(node, members)
                if self.journal is not None:
                    self.journal.members_changed(node, self._lists[node])

    async def _change_list(self, node: str, members: Sequence[str]) -> None:
        await self.servers[node].change_members([self.servers[member].address for member in members])
        self._lists[node] = sorted({node, *members})  # a server writes itself into it, and starts with that

    async def _client_acts(self, action: Connect | Register | RegisterBatch | Deregister) -> None:
        match action:
            case Connect(client, node):
                await self.clients.connect(client, node)
            case Register(client, service) | RegisterBatch(client, service):
                await self.clients.subscribe(client, service)
                self.answers = (await self.clients.act(action),)
            case Deregister():
                self.answers = (await self.clients.act(action),)

    async def _disconnect(self, client: str) -> None:
        gone = await self.clients.leave(client)
        await self._left(gone.node, gone.id)
        if self.journal is not None and self.journal.infers_state:
            self.journal.client_disconnected(gone.node, client)

    async def _over_http(self, action: HttpRequest) -> None:
        reply = await self._ask_over_http(action)
        answer = answer_over_http(reply.status, reply.text)
        self.answers = (answer,)
        if answer.is_refused and not answer.asks_to_register:
            raise RefusedError(f"{action.node} answers '{action}' with {reply}", answer)

    async def _ask_over_http(self, action: HttpRequest) -> HttpReply:
        self.clients.services[action.service] = None
        self.clients.names[action.client] = action.client
        ip, port, metadata = read_instance(action.instance)
        connector, api = self.clients.transport.http_connector, self._later_apis[action.node] if action.by_v2 else "v1"
        client = PlayedHttpClient(self.servers[action.node].address, ip, port, connector, api, self.clients.headers)
        match action:
            case HttpRegister():
                return await client.register(action.service, metadata)
            case HttpDeregister():
                return await client.deregister(action.service)
            case HttpBeat():
                return await client.beat(action.service, metadata)
            case HttpLightBeat():
                return await client.light_beat(action.service)

    async def _fault(self, action: LinkAction) -> None:
        link = self.links[action.source, action.target]
        match action:
            case Cut():
                link.cut()
            case Hold(distro=distro):
                link.hold(distro=distro)
            case Heal():
                link.heal()
            case Refuse():
                link.refuse()
            case Release():
                link.release()
            case Blackhole():
                link.blackhole()
            case Delay(ms=ms):
                link.delay(ms)
            case Throttle(ms=ms):
                link.throttle(ms)
            case Fault(held=False):
                link.arm(self._by_id(action))
            case BaseRequestAction():
                await self._decide(link, action)

    async def _decide(self, link: Link, action: BaseRequestAction) -> None:
        """In real time the request may still be on its way to the link."""
        decision = self._by_id(action)
        decide = partial(link.reply, decision) if isinstance(decision, Reply) else partial(link.decide, decision)
        if await eventually(poll_local(decide), self.clock, UNDER_WAY_MS if self.clock.is_real else 0) is None:
            raise TargetError(f"'{action}': no such message waits on the link")

    def _by_id(self, action: Decision) -> Decision:
        return replace(action, client=self.clients.id_of(action.client))

    async def _crash(self, name: str) -> None:
        for (source, target), link in self.links.items():
            if source == name:
                link.source_gone()
            elif target == name:
                link.target_gone()
        if self.journal is not None:
            self.journal.node_crashed(name)
        await self.reader.leave(name)
        self._paused.discard(name)
        self.up = tuple(each for each in self.up if each != name)
        await self.servers[name].stop()
        await self.clients.leave_with(name)

    # Reading

    def _by_name(self, replicas: Iterable[Replica]) -> Mapping[str, View]:
        names = self.clients.names
        seen = [each for each in replicas if not self.only_own or each.client in names]
        return {
            names.get(r.client, r.client): View(compared_revision(r.client, r.revision) or 0, published_of(r))
            for r in seen
        }

    # Recording of nodes that report nothing themselves

    async def _record_client(self, action: Action, client: str) -> None:
        """Records what the owner holds of its client after an operation; its syncs are sent later."""
        journal, at = self.journal, self.clients.now[client]
        if journal is None or not journal.infers_state:
            return
        held = next((r for r in await self.reader.replicas(at.node) if r.client == at.id), None)
        if held is None:
            raise TargetError(f"{at.node} does not hold its own client {client}")
        if isinstance(action, Connect):
            journal.client_connected(at.node, client, held.revision, held.digest)
            return
        batch = BATCH if isinstance(action, RegisterBatch) else None
        journal.client_changed(at.node, client, held.revision, held.digest, detail=batch)

    async def _record_held(self) -> None:
        """Reads every node into the trace."""
        journal = self.journal
        if journal is None or not journal.infers_state:
            return
        for name in self.up:
            await journal.probe(name, partial(self.reader.replicas, name))
