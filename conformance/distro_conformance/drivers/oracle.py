"""The oracle beside one node under test: the model of a node seen from outside, which gets all that the node does.

Its input: each Distro request that the node sends, the result of the call, each change of a client that it is asked
for. The first observation that the model cannot explain is kept, and raised by the next action.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from distro_conformance.drivers.clients import ConnectedClients
from distro_conformance.drivers.lockstep import DivergedError
from distro_conformance.drivers.service_lists import published_of
from distro_conformance.recording.traffic import TrafficLog
from distro_conformance.waiting import Clock
from distro_conformance.wire.messages import DISTRO_RESPONSE, UNHEARD_TYPE, DistroCall, RoutedCall, read_snapshot
from distro_model.actions import Action, Advance
from distro_model.events import Event
from distro_model.messages import Answer, CallResult, Change, Delete, Request, Snapshot, Verify
from distro_model.outside import NodeOutside, Unexplained
from distro_model.outside.ip_clients import as_seen
from distro_model.outside.slack import DUE_WITHIN_MS
from distro_protos import Message
from distro_traces.content import Replica
from distro_traces.event import Outcome

_UNREAD = {
    (Outcome.ERROR, UNHEARD_TYPE): CallResult.UNHEARD,
    (Outcome.ERROR, DISTRO_RESPONSE): CallResult.UNREADABLE,  # else it would be a success or a failure
}
"""An answer that a trace records as an error and that its sender does not treat as one (docs/protocol
#sync-unreadable)."""


class OracleTraffic(TrafficLog):
    """Messages from the node to its peers, passed to the oracle as they happen."""

    def __init__(self, oracle: Oracle) -> None:
        super().__init__(oracle.clients.name_of, oracle.now_ms)
        self._oracle = oracle
        self._results: dict[str, tuple[CallResult, tuple[Change, ...]]] = {}

    def sent(self, routed: RoutedCall) -> None:
        super().sent(routed)
        self._oracle.sent(self._by_name(routed))

    def replied(self, routed: RoutedCall, outcome: Outcome, reply: Message) -> None:
        super().replied(routed, outcome, reply)
        result = _UNREAD.get((outcome, reply.type), CallResult(outcome.value))
        copies: tuple[Change, ...] = ()
        if routed.call.operation == "SNAPSHOT" and result is CallResult.SUCCESS:
            copies = self._oracle.changes_of(read_snapshot(reply))
        self._results[routed.id] = result, copies

    def ended(self, routed: RoutedCall, outcome: Outcome) -> None:
        super().ended(routed, outcome)
        received = self._results.pop(routed.id, None)
        is_answered = received is not None and outcome not in (Outcome.TIMEOUT, Outcome.UNREACHABLE)
        result, copies = received if received is not None and is_answered else (CallResult(outcome.value), ())
        self._oracle.ended(routed.id, result, copies)


OBSERVED_WITHIN_MS = 30_000
"""A request that was under way may be observed late by this time."""


class Oracle:
    """In real time requests about clients that this run has not named belong to a run that is over, and a server ejects
    a client that sends nothing for too long.

    `outside` is there from the start of the cluster on.
    """

    outside: NodeOutside

    def __init__(self, clients: ConnectedClients, clock: Clock) -> None:
        self.clients, self.clock, self._in_real_time = clients, clock, clock.is_real
        self._found: Unexplained | None = None
        self._last_sent = ""
        self._keys = 0

    def now_ms(self) -> int:
        return self.clock.now_ms()

    # Actions of the node

    def sent(self, routed: RoutedCall) -> None:
        """The node has sent a Distro request."""
        call = routed.call
        if self._in_real_time and call.client is not None and call.client not in self.clients.names.values():
            return
        self._last_sent = f"{call.operation} of {call.client} to {routed.target}" if call.client else call.operation
        self.note(lambda: self.outside.sent(routed.id, routed.target, _request(routed), self.now_ms()))

    def ended(self, call: str, result: CallResult, copies: Sequence[Change]) -> None:
        """The node has the result of a request of its own."""
        self.note(lambda: self.outside.ended(call, result, copies, self.now_ms()))

    async def perform_answered(
        self,
        client: str,
        event: Event,
        ask: Callable[[], Awaitable[Answer | None]],
        what: str,
        words: Sequence[str] = (),
    ) -> None:
        """Between request and answer the node has handled the event. None: no answer. `words`: the words of the answer,
        once they are known."""
        with self._begun(client, event) as key:
            answer = await ask()
        self.measure_slack()
        observed = " ".join((what, *(() if answer is None else (answer.result,)), *words))
        self.outside.finish(key, client, answer, self.now_ms(), observed)

    async def perform_unanswered(self, client: str, event: Event, act: Callable[[], Awaitable[None]]) -> None:
        """The node notices the event by itself; a server notices it later than it happens."""
        with self._begun(client, event) as key:
            await act()
        self.measure_slack()
        self.outside.notice(key, client, self.now_ms())

    @contextmanager
    def _begun(self, client: str, event: Event) -> Iterator[str]:
        """If the end of the event stays unknown, the client is no longer judged."""
        self._keys += 1
        key = f"k{self._keys}"
        self.outside.begin(key, client, event, self.now_ms())
        try:
            yield key
        except Unexplained:
            raise
        except BaseException:
            self.outside.lose(client, self.now_ms())
            raise

    def changes_of(self, replicas: Iterable[Replica]) -> tuple[Change, ...]:
        return tuple(Change(self.clients.name_of(r.client) or "", r.revision, published_of(r)) for r in replicas)

    def measure_slack(self) -> None:
        """Measures, before a judgement, how late events may be, and stops judging clients that a server may have
        removed."""
        if not self._in_real_time:
            return
        now_ms = self.now_ms()
        taken_ms = self.clock.slack_since(now_ms - DUE_WITHIN_MS)
        self.outside.slack.measure(taken_ms, self.clock.peak_since(now_ms - OBSERVED_WITHIN_MS))
        for client in self.clients.idle_for(self.outside.profile.connection_idle_ms - taken_ms):
            self.outside.lose(client, now_ms)

    # Unexplained observations

    def note(self, observe: Callable[[], None]) -> None:
        """Keeps the first unexplained observation, which the next action raises."""
        if self._found is not None:
            return
        self.measure_slack()
        try:
            observe()
        except Unexplained as found:
            self._found = found

    def raise_found(self, action: Action | None) -> None:
        if self._found is not None:
            raise self.diverged(action, self._found) from self._found

    def diverged(self, action: Action | None, found: BaseException) -> DivergedError:
        after = "" if action is None else f"after `{action}` "
        last = f"; the last it sent: {self._last_sent}" if self._last_sent else ""
        history = self.outside.history.of(found.client) if isinstance(found, Unexplained) else ()
        return DivergedError(action or Advance(0), self.now_ms(), f"{after}{self.outside.name}: {found}{last}", history)

    def discard_findings(self) -> None:
        """Judges the node only from now on: earlier findings have been reported."""
        self._found = None
        self.outside.forget()


def _request(routed: RoutedCall) -> Request:
    return as_seen(_as_sent(routed))


def _as_sent(routed: RoutedCall) -> Request:
    call = routed.call
    match call.operation:
        case "VERIFY":
            return Verify(call.client or "", call.revision or 0)
        case "DELETE":
            return Delete(call.client or "")
        case "SNAPSHOT":
            return Snapshot()
        case "CHANGE":
            return _change(call)
    seen = f"it sends {call.operation} of {call.client} to {routed.target}"
    raise Unexplained("execute-a-task", call.client, seen, "CHANGE, DELETE, VERIFY or SNAPSHOT")


def _change(call: DistroCall) -> Change:
    return Change(call.client or "", call.revision or 0, () if call.replica is None else published_of(call.replica))
