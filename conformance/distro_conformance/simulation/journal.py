"""What happens in a simulated cluster, as trace rows: the same ones that a recording of reference nodes has.

`recording.TraceJournal` observes messages on wires and has to read what nodes hold; here the model reports it
(`distro_model.simulation.cluster.Watch`). Rows are bare tuples with the fields of `run_writer.Row`, because a
simulation makes a hundred thousand of them a second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, get_args

from distro_model.actions import (
    Action,
    AnswerAgain,
    Connect,
    Crash,
    Cut,
    FallSilent,
    Fault,
    Heal,
    Hold,
    ListMembers,
    Pause,
    Refuse,
    Release,
    Restart,
    Resume,
)
from distro_model.clock.mutable_cluster import Handled
from distro_model.cluster.values import Call
from distro_model.events import (
    BEATS,
    ApplyDue,
    BatchRegistered,
    BeatCheckDue,
    CallEnded,
    ClientConnected,
    ClientDisconnected,
    ConnectionCheckEnds,
    Event,
    HttpFinished,
    HttpReceived,
    InstanceDeregistered,
    InstanceRegistered,
    InstanceRequest,
    LeaseCheckDue,
    RequestReceived,
)
from distro_model.messages import (
    Answer,
    CallResult,
    Change,
    Content,
    Delete,
    Operation,
    Request,
    Verify,
    instances_of,
    is_batch,
    subject_of,
)
from distro_model.node import Client
from distro_model.profiles import Profile
from distro_model.rules.owners import UNHEALTHY as IS_UNHEALTHY
from distro_model.rules.owners import is_ip_client
from distro_protos.addresses import split_address
from distro_traces.content import Published, digest
from distro_traces.event import BATCH, BATCH_OVER_SINGLE, EXPIRED, HEALTHY, UNHEALTHY, Kind, Outcome
from distro_traces.run_writer import Values

LEASE = "lease"
"""Why a copy was removed: its lease expired without a renewal."""

# As plain strings: Arrow takes them several times faster than members of an enumeration.
_SENT, _RECEIVED = Kind.REQUEST_SENT.value, Kind.REQUEST_RECEIVED.value
_REPLIED, _ENDED = Kind.REPLY_SENT.value, Kind.REPLY_RECEIVED.value
_APPLIED, _REMOVED = Kind.REPLICA_APPLIED.value, Kind.REPLICA_REMOVED.value
_NO_ANSWER = (CallResult.UNREADABLE, CallResult.UNHEARD)  # a trace records both as an error
_OUTCOMES = {result: (Outcome.ERROR if result in _NO_ANSWER else Outcome(result.value)).value for result in CallResult}
_SUCCESS = Outcome.SUCCESS.value
_OPERATIONS = {each: each.operation.value for each in get_args(Request)}
_FAULTS: dict[type[Action], str] = {
    Cut: "cut",
    Heal: "healed",
    Refuse: "refusing",
    Hold: "held",
    Release: "released",
    FallSilent: "silent",
    AnswerAgain: "answers",
}


class SimulationJournal:
    """Writes the rows of one run by `add`, which takes a node and its next row.

    A report has no rows. Nodes of which there are many rows are given by their position in `names`.
    """

    def __init__(self, add: Callable[[str, Values], None], names: Sequence[str], profile: Profile) -> None:
        self._add = add
        self._names = names
        self._copies_have_revisions = profile.revisions_travel
        self._applying: list[tuple[int, Call]] = []  # CHANGEs that are being applied in parts (B05), with their targets
        self._homes: dict[str, str] = {}  # of the clients that have connected
        self._rows: dict[type[Event], Callable[[int, Handled, Any], None]] = {
            RequestReceived: self._received,
            CallEnded: self._ended,
            ApplyDue: self._applied_part,
            LeaseCheckDue: self._leases_checked,
            ClientConnected: self._client_spoke,
            InstanceRegistered: self._client_spoke,
            InstanceDeregistered: self._client_spoke,
            BatchRegistered: self._client_spoke,
            ClientDisconnected: self._connections_ended,
            ConnectionCheckEnds: self._connections_ended,
            HttpReceived: self._http_clients_changed,
            HttpFinished: self._http_clients_changed,
            BeatCheckDue: self._http_clients_changed,
        }

    # What happens

    def acted(self, at_ms: int, action: Action) -> None:
        match action:
            case Restart(node):
                self._of_node(at_ms, node, Kind.NODE_STARTED, ",".join(self._names))
            case Crash(node):
                self._of_node(at_ms, node, Kind.NODE_STOPPED, "crash")
                self._applying = [each for each in self._applying if self._names[each[0]] != node]
            case Cut() | Heal() | Refuse() | Hold() | Release():
                self._fault(at_ms, action.source, action.target, _FAULTS[type(action)])
            case Fault():
                words = (action.verb, action.operation or "any", action.client or "")
                self._fault(at_ms, action.source, action.target, " ".join(words).rstrip())
            case ListMembers(node, members):
                self._of_node(at_ms, node, Kind.MEMBERS_CHANGED, ",".join(sorted({node, *members})))
            case Pause(node) | Resume(node):
                self._of_node(at_ms, node, Kind.LINK_FAULT, "paused" if isinstance(action, Pause) else "resumed")
            case Connect(client, node):
                self._homes[client] = node
            case FallSilent(client) | AnswerAgain(client):
                row = (at_ms, Kind.LINK_FAULT.value, *(None,) * 3, client, *(None,) * 4, _FAULTS[type(action)])
                self._add(self._homes[client], row)

    def sent(self, at_ms: int, source: int, target: int, call: Call) -> None:
        if not call.is_report:
            self._request(at_ms, _SENT, source, self._names[target], call)

    def handled(self, at_ms: int, handled: Handled) -> None:
        rows = self._rows.get(type(handled.event))
        if rows is not None:
            rows(at_ms, handled, handled.event)

    def _received(self, at_ms: int, handled: Handled, event: RequestReceived) -> None:
        call, position, request = handled.call, handled.position, event.request
        if request.operation is Operation.REPORT or call is None:
            return
        self._request(at_ms, _RECEIVED, position, event.source, call)
        if isinstance(request, Change) and handled.answer is not None:
            self._copied(at_ms, handled, request.client, call)
        elif isinstance(request, Delete) and request.client in _gone(handled):
            self._removed(at_ms, position, request.client, _message(call), None)
        elif isinstance(request, Verify) and handled.before.client(request.client) is None:
            self._copied(at_ms, handled, request.client, call)  # only a mutant creates what it does not know
        if handled.answer is None:
            self._applying.append((position, call))
        else:
            self._reply(at_ms, _REPLIED, position, event.source, call, handled.answer)

    def _applied_part(self, at_ms: int, handled: Handled, event: ApplyDue) -> None:
        apply = event.apply
        if handled.answer is None:
            return
        request = Change(apply.client, apply.revision, apply.content)
        for each in self._applying:
            if each[0] == handled.position and each[1].request == request:
                self._applying.remove(each)
                self._copied(at_ms, handled, request.client, each[1])
                self._reply(at_ms, _REPLIED, handled.position, apply.source, each[1], handled.answer)
                return

    def _ended(self, at_ms: int, handled: Handled, event: CallEnded) -> None:
        call = handled.call
        if call is None or event.request.operation is Operation.REPORT:
            return
        raised = BATCH_OVER_SINGLE if not handled.after.loaded and _has_batch_over_single(handled, event) else None
        self._reply(at_ms, _ENDED, handled.position, event.target, call, event.answer, raised)
        for copy in event.answer.copies:
            self._copied(at_ms, handled, copy.client, call)

    def _copied(self, at_ms: int, handled: Handled, client: str, call: Call) -> None:
        """A row for a copy that was applied, be it the same again; none where the node protected what it has."""
        held = handled.after.client(client)
        if held is not None and held is not handled.before.client(client):
            self._holds(at_ms, handled.position, _APPLIED, held, _message(call))

    def _leases_checked(self, at_ms: int, handled: Handled, _: LeaseCheckDue) -> None:
        for client in _gone(handled):
            self._removed(at_ms, handled.position, client, None, LEASE)

    def _client_spoke(self, at_ms: int, handled: Handled, event: ClientConnected | InstanceRequest) -> None:
        kind = Kind.CLIENT_CONNECTED if isinstance(event, ClientConnected) else Kind.CLIENT_CHANGED
        held = handled.after.client(event.client)
        if held is not None:
            self._holds(at_ms, handled.position, kind.value, held, None)

    def _connections_ended(self, at_ms: int, handled: Handled, _: Event) -> None:
        kind = Kind.CLIENT_DISCONNECTED.value
        for client in _gone(handled):
            row = (at_ms, kind, None, None, None, client, True, None, None, None, None)
            self._add(self._names[handled.position], row)

    def _http_clients_changed(
        self, at_ms: int, handled: Handled, event: HttpReceived | HttpFinished | BeatCheckDue
    ) -> None:
        """The owner of an ip:port client is the node that handles its requests and checks its beats."""
        for client in handled.after.clients:
            before = handled.before.client(client.name)
            shown = before is None or (before.content, before.revision) != (client.content, client.revision)
            if is_ip_client(client.name) and shown:
                beats = None if before is None else _by_beats(event, before.content, client.content)
                self._holds(at_ms, handled.position, Kind.CLIENT_CHANGED.value, client, None, owned=True, detail=beats)
        self._connections_ended(at_ms, handled, event)

    # Rows

    def run_started(self, profile: str) -> None:
        self._of_node(0, self._names[0], Kind.RUN_STARTED, profile)

    def checkpoint(self, at_ms: int, node: str, number: int) -> None:
        self._of_node(at_ms, node, Kind.CHECKPOINT, str(number))

    def _fault(self, at_ms: int, source: str, target: str, what: str) -> None:
        self._add(source, (at_ms, Kind.LINK_FAULT.value, target, *(None,) * 7, what))

    def _removed(self, at_ms: int, node: int, client: str, message: str | None, reason: str | None) -> None:
        row = (at_ms, _REMOVED, None, message, None, client, None, None, None, None, reason)
        self._add(self._names[node], row)

    def _holds(
        self,
        at_ms: int,
        node: int,
        kind: str,
        client: Client,
        message: str | None,
        *,
        owned: bool = False,
        detail: str | None = None,
    ) -> None:
        owned = owned or client.native
        revision = client.revision if owned or self._copies_have_revisions else None
        content = digest_of(client.content)
        batch = BATCH if kind == Kind.CLIENT_CHANGED and has_batch(client.content) else None
        row = (at_ms, kind, None, message, None, client.name, owned, revision, content, None, detail or batch)
        self._add(self._names[node], row)

    def _request(self, at_ms: int, kind: str, node: int, peer: str, call: Call) -> None:
        request = call.request
        about, revision = (
            (request.client, request.revision) if isinstance(request, Change | Verify) else (subject_of(request), None)
        )
        message, operation, carried = f"m{call.number}", _OPERATIONS[type(request)], content_of(request)
        detail = BATCH if isinstance(request, Change) and has_batch(request.content) else None
        self._add(
            self._names[node], (at_ms, kind, peer, message, operation, about, None, revision, carried, None, detail)
        )

    def _reply(
        self, at_ms: int, kind: str, node: int, peer: str, call: Call, answer: Answer, detail: str | None = None
    ) -> None:
        request, result = call.request, answer.result
        outcome = _SUCCESS if result is CallResult.SUCCESS else _OUTCOMES[result]
        message, operation, about = f"m{call.number}", _OPERATIONS[type(request)], subject_of(request)
        self._add(self._names[node], (at_ms, kind, peer, message, operation, about, None, None, None, outcome, detail))

    def _of_node(self, at_ms: int, node: str, kind: Kind, detail: str) -> None:
        self._add(node, (at_ms, kind.value, *(None,) * 8, detail))


def _message(call: Call) -> str:
    return f"m{call.number}"


def _gone(handled: Handled) -> list[str]:
    """The clients that the node no longer has."""
    if handled.after.clients is handled.before.clients:
        return []
    return [client.name for client in handled.before.clients if handled.after.client(client.name) is None]


def _has_batch_over_single(handled: Handled, event: CallEnded) -> bool:
    """Whether a snapshot has a batch for a service under which the node has a single instance of that client."""
    for copy in event.answer.copies:
        held = handled.before.client(copy.client)
        before = {} if held is None else dict(held.content)
        if any(is_batch(each) and not is_batch(before.get(service, each)) for service, each in copy.content):
            return True
    return False


def _by_beats(event: Event, before: Content, after: Content) -> str | None:
    """What beats, or their absence, made of an ip:port client; None: a request changed it."""
    if isinstance(event, BeatCheckDue):
        return EXPIRED if len(after) < len(before) else UNHEALTHY
    is_beat = isinstance(event, HttpReceived) and event.action in BEATS and len(after) == len(before)
    return HEALTHY if is_beat else None


def content_of(request: Request) -> str | None:
    """The digest of what a request carries; None for one that carries nothing."""
    return digest_of(request.content) if isinstance(request, Change) else None


def has_batch(content: Content) -> bool:
    return any(is_batch(published) for _, published in content)


@lru_cache(maxsize=1 << 16)
def digest_of(content: Content) -> str:
    """The digest of what a client publishes, as if it had been read from the wire."""
    return digest(_published(service, each) for service, text in content for each in instances_of(text))


def _published(service: str, instance: str) -> Published:
    """An instance as a scenario writes it: `ip:port key=value …`."""
    address, *metadata = instance.removesuffix(IS_UNHEALTHY).split(" ")
    ip, port = split_address(address)
    pairs = ",".join(f'"{key}":"{value}"' for key, _, value in sorted(word.partition("=") for word in metadata))
    return Published(
        "public",
        "DEFAULT_GROUP",
        service,
        ip,
        int(port),
        healthy=not instance.endswith(IS_UNHEALTHY),
        attributes=f"{{{pairs}}}",
    )
