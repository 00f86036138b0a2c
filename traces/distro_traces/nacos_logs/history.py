"""From actions to trace rows: the clients that each node held, and the records that are two ends of one call.

The content of a client on a node is the set of services that its log shows as published, from the client's `connect`
on; the content of a client that is older than the logs is unknown, and no row about it is written. Whether a client is
the node's own or a copy is known only where the logs would name a copy (`Coverage`); else `owned` is null and the row
is `observed`, which names no owner. Where a file is missing in the middle (`holes`), the state of the node is
forgotten, as far as the file would have changed it.
A call's target logs neither the sender nor the answer, so both ends are matched by client, operation and target: a
received request belongs to the latest call that is not received yet.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Unpack

from distro_protos.addresses import entries, one_name, split_address
from distro_traces.content import Published, digest
from distro_traces.endings import Endings
from distro_traces.event import EXPIRED, Kind, Outcome
from distro_traces.nacos_logs.clocks import SKEW_MS
from distro_traces.nacos_logs.coverage import CALLS, CLIENTS, COPIES, Coverage
from distro_traces.nacos_logs.facts import Fact, What
from distro_traces.nacos_logs.holes import Hole
from distro_traces.nacos_logs.troubles import Troubles
from distro_traces.nacos_logs.window import WINDOW_MS, Action
from distro_traces.ndjson import EventFields, Recorder
from distro_traces.unreached import Unreachables

OLDER = "about the content of a client that is older than the logs"
UNCOVERED = "about the content of a client, at a time that naming-server does not cover"
NOT_HELD = "the end of a connection that held no client"
NAMELESS = "a call that failed, of which neither the log nor its duration says which"
NO_START = "the end of a call whose start is not in the logs"
HALF = "the last line of a file, which has no end: its client may be half of a name"
NOTHING_WENT = "an expiry, of which it is not logged what went"
COMES_WITHIN_MS = 2000
"""A client that appears so soon after a CHANGE for it arrived may be a copy, although no record says so."""

START_LASTS_MS = 120_000
"""A start is logged in several records; a server is up within that time, or it is started again."""

_Service = tuple[str, str, str]
_Call = tuple[str, str, str]  # operation, client, target


@dataclass(frozen=True, slots=True)
class _Held:
    owned: bool | None
    services: frozenset[_Service] | None = frozenset()  # None: unknown
    revision: int | None = None


class _Open(NamedTuple):
    """A call that has no answer yet."""

    message: str
    operation: str
    since_ms: int


@dataclass(slots=True)
class _Node:
    """The state of one node in its log so far."""

    name: str
    whole: bool = False  # logged from its start on: what is not held here, the node does not hold
    has_started: bool = False
    starting_ms: int | None = None  # since when only its start is logged
    has_lived: bool = False  # it logs more than a start and a list of members
    held: dict[str, _Held] = field(default_factory=dict)
    members: str = ""
    received: dict[str, tuple[int, str]] = field(default_factory=dict)  # client: when, message
    load: str | None = None
    calls: dict[tuple[str, str], _Open] = field(default_factory=dict)  # client, target
    nameless: deque[Fact] = field(default_factory=deque)  # failures whose call is not known yet
    own: dict[str, int] = field(default_factory=dict)  # clients with a connection to this server, since when


class History:
    """Writes the rows of one import. `began_ms` is the first stamp; `addresses`: earlier addresses of nodes, with the
    present one; `coverage` and `holes`: by node, what its logs can show, and the missing files.

    The revision of a copy is recorded when it is known: it is that of the message that created the copy; the effect of
    a further message depends on the `release`, and a failed verify reports the revision.
    """

    def __init__(
        self,
        recorder: Recorder,
        began_ms: int,
        skipped: Counter[str],
        *,
        release: str | None,
        addresses: Mapping[str, str],
        coverage: Mapping[str, Coverage],
        holes: Mapping[str, Sequence[Hole]],
        unreached: Unreachables,
        endings: Endings,
        troubles: Troubles,
    ) -> None:
        self._recorder = recorder
        self._began_ms = began_ms
        self._skipped = skipped
        self._release = release or ""
        self._addresses = addresses
        self._coverage = coverage
        self._holes = {name: deque(each) for name, each in holes.items()}
        self._unreached = unreached
        self._endings = endings
        self._troubles = troubles
        self._shows_content = {name: bool(each.read(CLIENTS)) for name, each in coverage.items()}
        self._nodes: dict[str, _Node] = {}
        self._on_their_way: dict[_Call, tuple[str, str, int]] = {}  # message, source, when
        self._unsent: dict[_Call, tuple[int, str]] = {}  # received, and no start seen yet: when, message
        self._refused: dict[tuple[str, str], tuple[int, str]] = {}  # target, client: when, message
        self._taken = 0

    def take(self, name: str, action: Action) -> None:
        """Handle the next action of a node."""
        fact, node = action.fact, self._nodes.setdefault(name, _Node(name))
        ahead = self._holes.get(name)
        while ahead and ahead[0].from_ms < fact.at_ms:
            self._cross(node, ahead.popleft())
        if fact.is_cut and not any(fact.client in each.held for each in self._nodes.values()):
            self._skipped[HALF] += 1
            return
        if fact.what is What.STARTS:
            self._start(node, fact)
            return
        self._taken += 1
        if self._taken % _FORGETS_EVERY == 0:
            self._forget(fact.at_ms)
        if fact.what not in (What.MEMBERS, What.LOAD, What.LOAD_ENDS, What.LOAD_FAILS):
            node.starting_ms, node.has_lived = None, True
        match fact.what:
            case What.MEMBERS:
                self._members(node, fact)
            case What.CONNECT | What.PUBLISH | What.WITHDRAW | What.HEALTH:
                self._change(node, fact)
            case What.EXPIRE:
                self._expire(node, action)
            case What.APPLY:
                self._apply(node, action)
            case What.REMOVE | What.DISCONNECT:
                self._end(node, fact)
            case What.CALL:
                self._call(node, fact)
            case What.CALL_FAILS if fact.client is None:
                self._nameless_fails(node, fact)
            case What.NATIVE:
                self._is_native(node, fact)
            case What.CALL_ENDS | What.CALL_FAILS:
                self._call_ends(node, fact)
            case What.RECEIVED:
                self._receive(node, action)
            case What.VERIFY | What.VERIFY_DIFFERS:
                self._verified(node, action)
            case What.VERIFY_REFUSED | What.VERIFY_FAILED:
                self._verify_fails(node, fact)
            case What.LOAD | What.LOAD_ENDS | What.LOAD_FAILS:
                self._load(node, fact)

    # The node

    def _cross(self, node: _Node, hole: Hole) -> None:
        """A file is missing here: forget what it may have changed; for a file with all logs, forget everything."""
        is_other = hole.log not in (CALLS, COPIES, CLIENTS)
        node.whole, node.load = False, None
        if hole.log == CLIENTS or is_other:
            node.held.clear()
            node.own.clear()
        if hole.log == CALLS or is_other:
            node.calls.clear()
            node.nameless.clear()
            node.received.clear()
            self._on_their_way = {call: sent for call, sent in self._on_their_way.items() if sent[1] != node.name}
        if hole.log == COPIES or is_other:
            node.held = {client: replace(held, revision=None) for client, held in node.held.items()}
        self._unreached.forget(self._recorder.header.run, node.name)
        self._endings.forget(self._recorder.header.run, node.name)

    def _start(self, node: _Node, fact: Fact) -> None:
        if node.starting_ms is not None and fact.at_ms - node.starting_ms < START_LASTS_MS:
            return
        if "last_ms" in fact.details and (node.has_lived or node.has_started):
            reason = "started again; what ended it is not logged, this is its last record"
            self._troubles.restarted(node.name, int(fact["last_ms"]), fact)
            self._row(node, int(fact["last_ms"]), Kind.NODE_STOPPED, detail=reason)
        self._nodes[node.name] = _Node(
            node.name,
            whole=self._coverage[node.name].reads(CLIENTS, fact.at_ms),
            has_started=True,
            starting_ms=fact.at_ms,
        )
        self._row(node, fact.at_ms, Kind.NODE_STARTED, detail=",".join(self._recorder.header.nodes))

    def _members(self, node: _Node, fact: Fact) -> None:
        listed = map(one_name, entries(fact["members"]))
        members = ",".join(sorted(self._addresses.get(each, each) for each in listed))
        if members != node.members:
            node.members = members
            self._row(node, fact.at_ms, Kind.MEMBERS_CHANGED, detail=members)

    # What it holds

    def _expire(self, node: _Node, action: Action) -> None:
        if not action.effects:
            self._skipped[NOTHING_WENT] += 1
        for effect in action.effects:
            expiry = action.fact
            self._change(node, effect, f"{expiry['ip']}:{expiry['port']} in {expiry['service']} {EXPIRED}")

    def _change(self, node: _Node, fact: Fact, detail: str | None = None) -> None:
        client = fact.client or ""
        held, was_there = self._held(node, client, fact), client in node.held
        by_beats = fact.what is What.HEALTH or detail is not None
        if held.owned is None and by_beats:  # only the owner checks beats
            held = replace(held, owned=True)
        if held.owned is False and not by_beats:  # by a request to this node, which gives the content a new number
            held = replace(held, revision=None)
        node.held[client] = held
        if held.services is None and self._shows_content[node.name]:
            self._skipped[OLDER] += 1
            return
        if fact.what is What.HEALTH:
            detail = f"{fact['ip']}:{fact['port']} in {fact['service']} is {_HEALTH[fact['health']]}"
        kind = Kind.CLIENT_CHANGED if was_there else Kind.CLIENT_CONNECTED
        if not held.owned:
            kind = Kind.OBSERVED if held.owned is None else Kind.REPLICA_APPLIED
        self._state(node, fact.at_ms, kind, client, held, detail=detail)

    def _apply(self, node: _Node, action: Action) -> None:
        fact = action.fact
        client = fact["client"]
        held = node.held.get(client)
        is_new = held is None and (node.whole or any(effect.what is What.CONNECT for effect in action.effects))
        held = held or _Held(False, frozenset() if is_new else None)
        revision = _revision(fact)
        if not is_new and revision != held.revision and not _TAKES_REVISIONS.match(self._release):
            has_no_batch = any(effect.what is What.NO_BATCH for effect in action.effects)
            keeps = has_no_batch and _KEEPS_REVISIONS.match(self._release)
            revision = held.revision if keeps else None
        for effect in action.effects:
            held = _after(held, effect)
        if self._shows_content[node.name] and not self._coverage[node.name].reads(CLIENTS, fact.at_ms):
            node.held[client] = replace(held, services=None, revision=revision)
            self._skipped[UNCOVERED] += 1
            return
        held = node.held[client] = replace(held, revision=revision)
        when, message = node.received.get(client, (0, None))
        message = message if fact.at_ms - when <= WINDOW_MS else node.load
        if held.services is None and self._shows_content[node.name]:
            self._skipped[OLDER] += 1
            return
        self._state(node, fact.at_ms, Kind.REPLICA_APPLIED, client, held, message=message)

    def _end(self, node: _Node, fact: Fact) -> None:
        client = fact["client"]
        held = node.held.pop(client, None)
        if held is None and node.whole:
            self._skipped[NOT_HELD] += 1
            return
        if held is not None and held.owned and fact.what is What.DISCONNECT:
            self._row(node, fact.at_ms, Kind.CLIENT_DISCONNECTED, client=client, owned=True)
            return
        when, message = node.received.get(client, (0, None))
        if fact.what is What.REMOVE:
            is_answer = fact.at_ms - when <= WINDOW_MS
            how = {"message": message} if is_answer else {"detail": "a DELETE that is logged where it was applied"}
            self._row(node, fact.at_ms, Kind.REPLICA_REMOVED, client=client, **how)
        elif held is None or held.owned is None:
            age = "; a client that is older than the logs" if held is None else ""
            self._row(node, fact.at_ms, Kind.OBSERVED, client=client, detail=f"gone; whose it was is not logged{age}")
        else:
            is_covered = self._coverage[node.name].shows_copies(fact.at_ms)
            detail = "no DELETE is logged" if is_covered else "the logs that would name a DELETE do not cover this time"
            self._row(node, fact.at_ms, Kind.REPLICA_REMOVED, client=client, detail=detail)

    def _held(self, node: _Node, client: str, fact: Fact) -> _Held:
        held = node.held.get(client)
        if held is None:
            is_new = node.whole or fact.what is What.CONNECT
            held = _Held(self._is_own(node, fact) if is_new else None, frozenset() if is_new else None)
        return _after(held, fact)

    def _is_own(self, node: _Node, fact: Fact) -> bool | None:
        """A client that no record names as a copy is the node's own if the logs would have named a copy."""
        if node.own.pop(fact.client or "", None) is not None:
            return True
        coverage, (received_ms, _) = self._coverage[node.name], node.received.get(fact.client or "", (0, ""))
        might_be_loaded = node.load is not None and not coverage.reads(COPIES, fact.at_ms)
        if might_be_loaded or fact.at_ms - received_ms <= COMES_WITHIN_MS:
            return None
        return True if coverage.shows_copies(fact.at_ms) else None

    # Calls

    def _call(self, node: _Node, fact: Fact) -> None:
        call = (fact["operation"].upper(), fact["client"], fact["target"])
        received_ms, message = self._unsent.pop(call, (0, ""))
        if not message or fact.at_ms + SKEW_MS < received_ms or received_ms < fact.at_ms - SKEW_MS:
            message = self._recorder.new_message_id()
            self._on_their_way[call] = (message, node.name, fact.at_ms)
        if (before := node.calls.get((fact["client"], fact["target"]))) is not None and node.nameless:
            # The call is repeated, so the one before it has ended: it is one of the failures that name no call.
            failed = node.nameless.popleft()
            if before.since_ms <= failed.at_ms:
                self._named_fails(node, replace(failed, details={**fact.details}))
        node.calls[fact["client"], fact["target"]] = _Open(message, call[0], fact.at_ms)
        self._call_row(node, fact, Kind.REQUEST_SENT, call[0], message, fact["target"])

    def _call_ends(self, node: _Node, fact: Fact) -> None:
        message, operation, _ = node.calls.pop((fact["client"], fact["target"]), ("", "", 0))
        if not message:
            self._skipped[NO_START] += 1
            return
        outcome = _outcome(fact)
        call = (operation, fact["client"], fact["target"])
        if outcome is not Outcome.SUCCESS and self._on_their_way.get(call, ("",))[0] == message:
            del self._on_their_way[call]
        self._call_row(node, fact, Kind.REPLY_RECEIVED, operation, message, fact["target"], outcome=outcome)

    def _nameless_fails(self, node: _Node, fact: Fact) -> None:
        """Up to 2.1.0 the record names no call: it is the one that has been open for the time in the exception, or the
        only open one; else the one that is repeated next."""
        limit = _TIMEOUT.search(fact.more)
        waited = [key for key, call in node.calls.items() if limit is None or _fits(fact.at_ms - call.since_ms, limit)]
        if len(waited) == 1:
            client, target = waited[0]
            self._named_fails(node, replace(fact, details={"client": client, "target": target}))
        elif node.calls and len(node.nameless) < _NAMELESS_MAX:
            node.nameless.append(fact)
        else:
            self._skipped[NAMELESS] += 1
            self._troubles.take(node.name, fact)

    def _named_fails(self, node: _Node, fact: Fact) -> None:
        self._call_ends(node, fact)
        self._troubles.take(node.name, fact)

    def _is_native(self, node: _Node, fact: Fact) -> None:
        client = fact["client"]
        held = node.held.get(client)
        if held is None:
            node.own[client] = fact.at_ms
        elif held.owned is None:
            node.held[client] = replace(held, owned=True)

    def _forget(self, now_ms: int) -> None:
        """Forget the records kept to match others close to them, so that memory does not grow with the logs."""
        since_ms = now_ms - _FORGETS_MS
        for node in self._nodes.values():
            node.received = {client: got for client, got in node.received.items() if got[0] >= since_ms}
            node.own = {client: at_ms for client, at_ms in node.own.items() if at_ms >= since_ms}
        self._on_their_way = {call: sent for call, sent in self._on_their_way.items() if sent[2] >= since_ms}
        self._unsent = {call: got for call, got in self._unsent.items() if got[0] >= since_ms}
        self._refused = {key: got for key, got in self._refused.items() if got[0] >= since_ms}

    def _receive(self, node: _Node, action: Action) -> None:
        fact = action.fact
        operation = "DELETE" if fact["operation"] == "DELETE" else "CHANGE"
        call = (operation, fact["client"], node.name)
        message, source, _ = self._on_their_way.pop(call, (None, None, 0))
        if message is None:
            message = self._recorder.new_message_id()
            self._unsent[call] = (fact.at_ms, message)
        node.received[fact["client"]] = (fact.at_ms, message)
        revision = next((_revision(effect) for effect in action.effects), None)
        self._call_row(node, fact, Kind.REQUEST_RECEIVED, operation, message, source, revision=revision)

    def _verified(self, node: _Node, action: Action) -> None:
        """Handle a received verify; where the copy has another revision, the node logs both."""
        fact, client, message = action.fact, action.fact["client"], self._recorder.new_message_id()
        node.received[client] = (fact.at_ms, message)
        differs = fact if fact.what is What.VERIFY_DIFFERS else next(iter(action.effects), None)
        asked = None if differs is None else int(differs["remote"])
        self._call_row(node, fact, Kind.REQUEST_RECEIVED, "VERIFY", message, None, revision=asked)
        if differs is None:
            return
        held = node.held.get(client, _Held(None, None))
        if held.services is None:
            self._skipped[OLDER] += 1
            return
        held = node.held[client] = replace(held, revision=int(differs["local"]))
        if self._shows_content[node.name]:
            detail = f"verified with revision {asked}"
            self._state(node, fact.at_ms, Kind.OBSERVED, client, held, detail=detail)

    def _verify_fails(self, node: _Node, fact: Fact) -> None:
        client, message = fact["client"], self._recorder.new_message_id()
        kind, peer, detail = Kind.REPLY_SENT, None, None
        if fact.what is What.VERIFY_REFUSED:
            when, verify = node.received.get(client, (0, message))
            message = verify if fact.at_ms - when <= WINDOW_MS else message
            self._refused[node.name, client] = (fact.at_ms, message)
            peer, detail = self._member_at(fact["ip"]), f"get new client from {fact['ip']}"
        else:
            peer = fact["target"]
            _, message = self._refused.pop((peer, client), (0, message))
            kind = Kind.REPLY_RECEIVED
        self._call_row(node, fact, kind, "VERIFY", message, peer, outcome=Outcome.FAIL, detail=detail)

    def _member_at(self, ip: str) -> str | None:
        """The only member with this address, on any port."""
        found = [node for node in self._recorder.header.nodes if split_address(node)[0].strip("[]") == ip.strip("[]")]
        return found[0] if len(found) == 1 else None

    def _load(self, node: _Node, fact: Fact) -> None:
        peer = fact["target"]
        if fact.what is What.LOAD:
            node.load = self._recorder.new_message_id()
            self._call_row(node, fact, Kind.REQUEST_SENT, "SNAPSHOT", node.load, peer)
            return
        if node.load is None:
            self._skipped[NO_START] += 1
            return
        self._call_row(node, fact, Kind.REPLY_RECEIVED, "SNAPSHOT", node.load, peer, outcome=_outcome(fact))
        node.load = None

    def _state(
        self, node: _Node, at_ms: int, kind: Kind, client: str, held: _Held, /, **fields: Unpack[EventFields]
    ) -> None:
        fields |= {"client": client, "owned": held.owned, "revision": held.revision}
        if self._shows_content[node.name]:
            fields["digest"] = digest(_published(client, held.services or ()))
        self._row(node, at_ms, kind, **fields)

    def _call_row(
        self,
        node: _Node,
        fact: Fact,
        kind: Kind,
        operation: str,
        message: str,
        peer: str | None,
        /,
        **fields: Unpack[EventFields],
    ) -> None:
        fields |= {"client": fact.client, "operation": operation, "message": message, "peer": peer}
        self._row(node, fact.at_ms, kind, **fields)

    def _row(self, node: _Node, at_ms: int, kind: Kind, **fields: Unpack[EventFields]) -> None:
        event = self._recorder.record(node.name, kind, at_ms=at_ms - self._began_ms, **fields)
        self._unreached.take(event)
        self._endings.take(event)


_TIMEOUT = re.compile(r"[Tt]imeout after (\d+) ?m|Waited (\d+) m", re.IGNORECASE)
_LATE_MS = 500
"""A call that timed out is logged that much later at most, and a little earlier by another clock."""
_NAMELESS_MAX = 1000
_FORGETS_EVERY = 10_000
_FORGETS_MS = 600_000


def _fits(waited_ms: int, limit: re.Match[str]) -> bool:
    limit_ms = int(limit[1] or limit[2])
    return limit_ms - 50 <= waited_ms <= limit_ms + _LATE_MS


_TAKES_REVISIONS = re.compile(r"(2\.[3-9]|[3-9])\.")
_KEEPS_REVISIONS = re.compile(r"2\.[12]\.")
"""What a copy that is there does with the revision of a CHANGE without a batch (docs/protocol #receive-revision)."""

_HEALTH = {"ENABLED": "healthy", "DISABLED": "unhealthy"}


def _revision(fact: Fact) -> int | None:
    return int(fact["revision"]) if "revision" in fact.details else None


def _outcome(fact: Fact) -> Outcome:
    """Of a call or a load that has ended."""
    if "result" in fact.details:
        return Outcome.SUCCESS if fact["result"] == "true" else Outcome.FAIL
    return Outcome.TIMEOUT if fact.what is What.CALL_FAILS and "imeout" in fact.more else Outcome.ERROR


def _after(held: _Held, fact: Fact) -> _Held:
    if held.services is None or fact.what not in (What.PUBLISH, What.WITHDRAW):
        return held
    service = frozenset({(fact["namespace"], fact["group"], fact["service"])})
    return replace(held, services=held.services | service if fact.what is What.PUBLISH else held.services - service)


def _published(client: str, services: frozenset[_Service] | tuple[()]) -> list[Published]:
    """The instances that the logs name: those of an ip:port client are in its id."""
    address, _, is_ip_port = client.partition("#")
    ip, port = split_address(address) if is_ip_port else ("", "0")
    return [Published(*service, ip, int(port) if port.isdigit() else 0) for service in services]
