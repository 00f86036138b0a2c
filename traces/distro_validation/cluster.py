"""The state that the clients of a trace share: lives of nodes, faults of links, open calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from distro_traces.event import Event, Kind, Outcome
from distro_traces.header import Header
from distro_validation.verdict import Rejection, rejected

_OWN_MESSAGE = ("operation", "client", "revision", "digest")
_OF_NODES_THAT_ARE_DOWN = (Kind.REPLY_RECEIVED, Kind.MEMBERS_CHANGED)
"""A call of before that the recorder observes to end; what is written where the node reads its list when it starts."""
_CHANGE_COPIES = ("CHANGE", "DELETE", "SNAPSHOT")
_ENDED_BY_NETWORK = frozenset({Outcome.TIMEOUT, Outcome.UNREACHABLE, Outcome.ERROR})
_ENDS_WITHIN_MS = {"SNAPSHOT": 60_000}
CALL_ENDS_WITHIN_MS = 10_000
"""Every call of a server has a time limit of a third to a half of this (docs/protocol #sync-result, #load-snapshot)."""


@dataclass(slots=True)
class Handling:
    """When a node was handling a request: in which of its lives, and between which of its rows (`seq`)."""

    life: int
    begin: int
    end: int | None = None

    def overlaps(self, other: Handling) -> bool:
        is_before, is_after = self._ends_before(other), other._ends_before(self)
        return self.life == other.life and not is_before and not is_after

    def _ends_before(self, other: Handling) -> bool:
        return self.end is not None and self.end < other.begin


@dataclass(slots=True)
class Call:
    """One message id. `received` and `answers` count the rows at the target; `handled`: the last time there."""

    sent: Event | None = None
    received: int = 0
    answers: list[Outcome | None] = field(default_factory=list)
    ended: bool = False
    handled: Handling | None = None


class ClusterRows:
    """Takes the rows in causal order, before the slices do."""

    def __init__(self, header: Header) -> None:
        self.observed = header.observed
        self._nodes = header.nodes
        self.shows_state = cache(header.observed.contents_of)  # asked for every row
        self.shows_causes = cache(self._shows_causes)
        self._shows_sending = cache(header.observed.sending)
        self._shows_receiving = cache(header.observed.receiving)
        self.calls: dict[str, Call] = {}
        self.lives: defaultdict[str, int] = defaultdict(int)  # how often a node was started or stopped
        self.down: set[str] = set()
        self.started_ms: dict[str, int] = {}
        self.asked: dict[str, Call] = {}  # node: its last snapshot request
        self._faults: defaultdict[frozenset[str], set[str]] = defaultdict(set)  # by link, its first words
        self._loads: defaultdict[str, int] = defaultdict(
            int
        )  # snapshots that a node loaded while its state was not observed
        self._stopped_at: dict[str, int] = {}
        self._began_ms: int | None = None

    def _shows_causes(self, node: str) -> bool:
        """Is there a row for everything that changes what the node holds?"""
        others = [other for other in self._nodes if other != node]
        return (
            self.observed.lossless
            and {*_CHANGE_COPIES} <= {*self.observed.operations}
            and all(self._shows_receiving(other, node) and self._shows_sending(node, other) for other in others)
        )

    def take(self, event: Event) -> Rejection | None:
        """The rejection of a row in the shared state, or None."""
        self._began_ms = event.at_ms if self._began_ms is None else self._began_ms
        match event.kind:
            case Kind.NODE_STARTED | Kind.NODE_STOPPED:
                self._life(event)
                return None
            case Kind.LINK_FAULT:
                word = (event.detail or "").partition(" ")[0]
                self._faults[frozenset((event.node, event.peer or ""))].add(word)
                return None
        if event.node in self.down and event.kind not in _OF_NODES_THAT_ARE_DOWN:
            return rejected(event, "any", "the node is up", f"{event.node} down", event.kind.value)
        if event.message is None or event.kind not in _ENDS:
            return None
        call = self.calls.setdefault(event.message, Call())
        return _ENDS[event.kind](self, event, call)

    def life(self, node: str) -> tuple[int, int]:
        """Changes when the known state of the node is lost."""
        return self.lives[node], self._loads[node]

    def is_empty_at_first(self, node: str) -> bool:
        """The node was observed to start, and it received no unobserved snapshot since."""
        return node in self.started_ms and not self._loads[node]

    def _life(self, event: Event) -> None:
        self.lives[event.node] += 1
        if event.kind is Kind.NODE_STARTED:
            self.down.discard(event.node)
            self._loads[event.node] = 0
            self.started_ms[event.node] = event.at_ms
        else:
            self.down.add(event.node)
            self._stopped_at[event.node] = event.at_ms

    def _sent(self, event: Event, call: Call) -> Rejection | None:
        if call.sent is not None:
            return rejected(event, "send", "a message is sent once", _call(call.sent), _call(event))
        call.sent = event
        if event.operation == "SNAPSHOT":
            self.asked[event.node] = call
        return None

    def _received(self, event: Event, call: Call) -> Rejection | None:
        call.received += 1
        call.handled = Handling(self.lives[event.node], event.seq)
        if not self._shows_sending(event.peer or "", event.node):
            return None
        if call.sent is None:
            return self._missing(rejected(event, "receive", "it was sent", "no such message", _call(event)))
        if not self._is_as_sent(event, call.sent) or (call.sent.node, call.sent.peer) != (event.peer, event.node):
            return rejected(event, "receive", "it arrives as it was sent", _call(call.sent), _call(event))
        if call.received > 1 and not self._has_fault(event, "duplicate"):
            return rejected(event, "receive", "it arrives once", "received before", _call(event))
        return None

    def _is_as_sent(self, event: Event, sent: Event) -> bool:
        """Logs record the content of a message at one end only."""
        pairs = zip(_content(sent), _content(event), strict=True)
        return all(one == other or (None in (one, other) and not self.observed.lossless) for one, other in pairs)

    def _answered(self, event: Event, call: Call) -> Rejection | None:
        call.answers.append(event.outcome)
        if call.handled is not None:
            call.handled.end = event.seq
        if len(call.answers) > call.received:
            received, answers = f"{call.received} received", f"{len(call.answers)} answers"
            return self._missing(rejected(event, "answer", "it was received", received, answers))
        return self._same_subject(event, call)

    def _ended(self, event: Event, call: Call) -> Rejection | None:
        if call.sent is None and self._may_be_older(event):
            return None
        if call.sent is None or call.ended:
            return self._missing(
                rejected(event, "receive the answer", "the call is open", "no open call", _call(event))
            )
        call.ended = True
        is_load = event.operation == "SNAPSHOT" and event.outcome is Outcome.SUCCESS
        if is_load and not self.shows_state(event.node):
            self._loads[event.node] += 1
        if call.sent.node != event.node:
            return rejected(event, "receive the answer", "the caller receives it", call.sent.node, event.node)
        if event.outcome in call.answers or not self._both_ends(event) or self._may_end(event, call):
            return self._same_subject(event, call)
        answered = ", ".join(str(answer) for answer in call.answers) or "no answer"
        return self._missing(
            rejected(event, "receive the answer", "it is the outcome of the answer", answered, str(event.outcome))
        )

    def _may_be_older(self, event: Event) -> bool:
        """The node was there before its rows begin, and so may the call have been."""
        within_ms = _ENDS_WITHIN_MS.get(event.operation or "", CALL_ENDS_WITHIN_MS)
        return event.node not in self.started_ms and event.at_ms - (self._began_ms or 0) <= within_ms

    def _missing(self, rejection: Rejection) -> Rejection | None:
        """A rejection for want of a row, where rows may be missing."""
        return rejection if self.observed.lossless else None

    def _same_subject(self, event: Event, call: Call) -> Rejection | None:
        sent = call.sent
        if sent is not None and (sent.operation, sent.client) != (event.operation, event.client):
            return rejected(event, event.kind.value, "it has the subject of the call", _call(sent), _call(event))
        return None

    def _may_end(self, event: Event, call: Call) -> bool:
        """The outcome may differ from the answer, because of the network or a link of the kit."""
        if event.outcome in _ENDED_BY_NETWORK:
            since_ms = event.at_ms if call.sent is None else call.sent.at_ms
            has_stopped = any(self._stopped_at.get(node, -1) >= since_ms for node in (event.node, event.peer or ""))
            return not call.answers or has_stopped or bool(self._faults.get(_link(event)))
        is_swallowed = call.received == 0 and self._has_fault(event, "swallow", "refus")
        return is_swallowed or self._has_fault(event, "answer", "lose", "duplicate", "reply")

    def _may_stay_open(self, call: Call) -> bool:
        """A Java server that no longer waits for a snapshot does not cancel its request, which a link of the kit keeps
        then (docs/protocol #load-snapshot)."""
        sent = call.sent
        if sent is None or sent.operation != "SNAPSHOT" or self.observed.reports(sent.node):
            return False
        return bool(self._faults.get(_link(sent)))

    def _has_fault(self, event: Event, *words: str) -> bool:
        """A fault whose name has this beginning was set on the link of the row."""
        return any(fault.startswith(words) for fault in self._faults.get(_link(event), ()))

    def _both_ends(self, event: Event) -> bool:
        peer = event.peer or ""
        return self._shows_sending(event.node, peer) and self._shows_receiving(event.node, peer)

    def finish(self, last_ms: int) -> Iterator[Rejection]:
        """Calls that never ended, although their nodes kept running and enough time has passed."""
        if not self.observed.lossless:
            return
        for call in self.calls.values():
            sent = call.sent
            if sent is None:
                continue
            if last_ms - sent.at_ms < _ENDS_WITHIN_MS.get(sent.operation or "", CALL_ENDS_WITHIN_MS):
                continue
            if not call.ended and self._stopped_at.get(sent.node, -1) < sent.at_ms and not self._may_stay_open(call):
                yield rejected(sent, "send", "every call ends", f"an end by {last_ms} ms", "none")
            target = sent.peer or ""
            if call.received > len(call.answers) and self._stopped_at.get(target, -1) < sent.at_ms:
                yield rejected(sent, "send", "what is received is answered", f"{call.received} answers", "fewer")


def _link(event: Event) -> frozenset[str]:
    return frozenset((event.node, event.peer or ""))


def _content(event: Event) -> tuple[object, ...]:
    return tuple(getattr(event, name) for name in _OWN_MESSAGE)


def _call(event: Event) -> str:
    parts = (event.operation, event.client, event.revision, event.digest, event.outcome)
    ends = f"{event.node} and {event.peer}"
    return " ".join(str(part) for part in parts if part is not None) + f" between {ends}"


_ENDS = {
    Kind.REQUEST_SENT: ClusterRows._sent,
    Kind.REQUEST_RECEIVED: ClusterRows._received,
    Kind.REPLY_SENT: ClusterRows._answered,
    Kind.REPLY_RECEIVED: ClusterRows._ended,
}
