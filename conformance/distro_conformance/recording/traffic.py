"""The messages on the links of a run, with the client names of the run.

Links know connection ids, a run knows names. The log keeps the Distro calls that have ended, to be compared with the
model, and passes everything on to the recording, where there is one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from distro_conformance.recording.journal import TraceJournal
from distro_conformance.wire.messages import RoutedCall
from distro_model.clock.traffic import Ended, Traffic, compared_revision
from distro_model.messages import CallResult, Operation
from distro_protos import Message
from distro_traces.event import Outcome


@dataclass
class TrafficLog:
    """A `links.Journal`. `client_name` translates an id; an id that is unknown to the run stays unchanged."""

    client_name: Callable[[str | None], str | None]
    now_ms: Callable[[], int]
    recording: TraceJournal | None = None
    snapshot_sources: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """For each node the members that have sent it a snapshot since the last clear."""
    last_event: str | None = None
    """The last ended call about a client, or the last report of a node about its clients, with the time."""
    _ended: list[Ended] = field(default_factory=list)
    _ids: int = 0

    def take(self, since_ms: int) -> tuple[Ended, ...]:
        """The calls that have ended since the last look, each with its time after `since_ms`."""
        ended, self._ended = self._ended, []
        return tuple(Ended(each.after_ms - since_ms, each.call) for each in ended)

    def happened(self, what: str) -> None:
        self.last_event = f"{what} at {self.now_ms() / 1000:.1f} s"

    def new_id(self) -> str:
        self._ids += 1
        return f"m{self._ids}"

    def sent(self, routed: RoutedCall) -> None:
        if self.recording:
            self.recording.sent(self._by_name(routed))

    def received(self, routed: RoutedCall) -> None:
        if self.recording:
            self.recording.received(self._by_name(routed))

    def replied(self, routed: RoutedCall, outcome: Outcome, reply: Message) -> None:
        if self.recording:
            self.recording.replied(self._by_name(routed), outcome, reply)

    def ended(self, routed: RoutedCall, outcome: Outcome) -> None:
        if routed.call.operation in Operation.__members__:
            self._end(routed, Operation(routed.call.operation), CallResult(outcome.value))
        else:  # the model has no such request
            self.happened(f"{routed.call.operation} of {routed.source} to {routed.target}: {outcome}")
        if self.recording:
            self.recording.ended(self._by_name(routed), outcome)

    def _end(self, routed: RoutedCall, operation: Operation, result: CallResult) -> None:
        client = self.client_name(routed.call.client)
        revision = compared_revision(client, routed.call.revision)
        traffic = Traffic(routed.source, routed.target, operation, client, revision, result)
        self._ended.append(Ended(self.now_ms(), traffic))
        if (operation, result) != (Operation.VERIFY, CallResult.SUCCESS):
            self.happened(str(traffic))
        if (operation, result) == (Operation.SNAPSHOT, CallResult.SUCCESS):
            self.snapshot_sources[routed.source].add(routed.target)

    def fault(self, source: str, target: str, what: str) -> None:
        if self.recording:
            self.recording.fault(source, target, " ".join(self.client_name(word) or word for word in what.split()))

    def _by_name(self, routed: RoutedCall) -> RoutedCall:
        name = self.client_name(routed.call.client)
        return replace(routed, call=replace(routed.call, client=name))
