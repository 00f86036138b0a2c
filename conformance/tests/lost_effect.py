"""A recording with an injected defect: one CHANGE was acknowledged and had no effect at one node.

A check over traces is tested with a recording that violates it. Real servers do not diverge on demand, so a healthy
recording is rewritten as if the message had been swallowed on its way: the rows of sender and owner are
unchanged, the receiver never received it and keeps its old content until another row changes it. The CHANGE is chosen
from the recording: only one that nothing repairs before the next checkpoint makes a difference that must be found.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from distro_traces.content import NOTHING_PUBLISHED
from distro_traces.event import STATE_KINDS, Event, Kind
from distro_traces.ndjson import Recorder, TraceFile


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a CHANGE at its receiver.

    `change` is the owner's first change that it carried: those of one second travel together. `applied` is the row of
    the receiver, `checkpoint` its first checkpoint afterwards, the one at which the loss must show.
    """

    change: Event
    applied: Event
    checkpoint: Event

    @property
    def message(self) -> str:
        return self.applied.message or ""


def effects(events: Sequence[Event]) -> Iterator[Effect]:
    """The CHANGEs whose receiver was sent nothing more of that client until the next checkpoint, in their order."""
    for index, applied in enumerate(events):
        if applied.kind is not Kind.REPLICA_APPLIED or applied.message is None:
            continue
        before = _held(events[:index], applied)
        if _shown(before) == _shown(applied):
            continue
        change = _first_carried(events[:index], applied, before)
        checkpoint = _checkpoint_before_repair(events[index + 1 :], applied)
        if change is not None and checkpoint is not None:
            yield Effect(change, applied, checkpoint)


def without(effect: Effect, events: Sequence[Event]) -> Iterator[Event]:
    """The same run as if that CHANGE had been swallowed; `seq` is numbered without a gap."""
    applied = effect.applied
    before = _held(events[: events.index(applied)], applied)
    seq: Counter[str] = Counter()
    stale = False
    for event in events:
        if (event.node, event.message) == (applied.node, applied.message):
            stale = stale or event == applied
            continue
        row = event
        if _has_state_of(event, applied) and stale:
            stale = event.kind is Kind.OBSERVED
            row = _as_before(event, before) if stale else event
        seq[row.node] += 1
        yield replace(row, seq=seq[row.node])


def record_without(effect: Effect, trace: TraceFile, directory: Path, run: str) -> Path:
    """Write the rewritten recording as run `run`; returns its file. Raises TraceError when there is one already."""
    header = trace.header
    with Recorder(
        directory,
        run,
        profile=header.profile,
        target=header.target,
        clock=header.clock,
        nodes=header.nodes,
        observed=header.observed,
    ) as recorder:
        for event in without(effect, trace.events):
            fields = event.to_json()
            del fields["run"], fields["seq"]
            recorder.record(**fields)
    return recorder.path


def _has_state_of(event: Event, applied: Event) -> bool:
    return event.kind in STATE_KINDS and (event.node, event.client) == (applied.node, applied.client)


def _held(earlier: Sequence[Event], applied: Event) -> Event | None:
    """The last row with the state of this client on this node, if any."""
    return next((event for event in reversed(earlier) if _has_state_of(event, applied)), None)


def _shown(event: Event | None) -> str:
    """Nothing published and no client at all look the same to every subscriber."""
    return event.digest or NOTHING_PUBLISHED if event is not None else NOTHING_PUBLISHED


def _first_carried(earlier: Sequence[Event], applied: Event, before: Event | None) -> Event | None:
    """The owner's first row after it showed what the receiver held, if its last one has the applied content."""
    own = [e for e in earlier if e.client == applied.client and e.kind in (Kind.CLIENT_CONNECTED, Kind.CLIENT_CHANGED)]
    if not own or own[-1].digest != applied.digest:
        return None
    routed = list(itertools.takewhile(lambda row: _shown(row) != _shown(before), reversed(own)))
    return routed[-1]


def _checkpoint_before_repair(later: Sequence[Event], applied: Event) -> Event | None:
    for event in later:
        if event.node == applied.node and event.kind is Kind.CHECKPOINT:
            return event
        if _has_state_of(event, applied) and event.kind is not Kind.OBSERVED:
            return None
    return None


def _as_before(observed: Event, before: Event | None) -> Event:
    if before is None or before.digest is None:
        return replace(observed, owned=None, revision=None, digest=None)
    return replace(observed, revision=before.revision, digest=before.digest)
