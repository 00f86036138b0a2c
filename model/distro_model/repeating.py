"""A counterexample as actions: its calls are decided as early as possible, the run is given times, and actions without
effect on the end are omitted.

Every link is held while times are searched (`timing.py`), and each call is an action. Only the actions that the end
needs are kept: most requests may arrive at once, and most faults may wait for their request. Each such reduction is run
again from the beginning and kept when it ends in the same way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from distro_model import actions
from distro_model.actions import Action, Advance, Hold, Release
from distro_model.bounded.cluster import bounded_cluster
from distro_model.clock.cluster import ClusterState, View, observe, prologue
from distro_model.explorer import Counterexample
from distro_model.profiles import Profile
from distro_model.properties import property_named
from distro_model.search.results import Run
from distro_model.search.system import Row, System, findings, transitions
from distro_model.search.system import Transition as StepTaken
from distro_model.timing import ConflictError, NoTimesError, Place, Timing, shown_by, whole
from distro_model.transitions import CallStep, Cause, Happens, OnLink

LASTING = frozenset({"INV-CONV", "INV-DELETE", "EVENTUALLY-CONV"})
"""Properties about settled states: their findings must persist over two more verify rounds of every node."""

UNSEEN = {
    "INV-OWNER": "the owner in the view of each node",
    "INV-INDEX": "the index of queries and pushes",
}
"""Properties whose subject no view shows: a repeated run would look the same on a correct node."""


@dataclass(frozen=True, slots=True)
class TimedRun:
    """`prologue` brings the nodes up and loaded; every possible outcome of `actions` after it ends as the run does."""

    nodes: tuple[str, ...]
    prologue: tuple[Action, ...]
    actions: tuple[Action, ...]


def as_timed(counterexample: Counterexample, profile: Profile) -> TimedRun:
    """`profile` is the one explored. Actions without effect on the end are omitted. Raises NoTimesError."""
    property_id = counterexample.property_id
    if property_id in UNSEEN:
        raise NoTimesError(f"{property_id}: {UNSEEN[property_id]} does not show in any view")
    timing = Timing(counterexample.bounds, profile)
    try:
        found = whole(timing.timed(_as_on_a_clock(counterexample.run, timing)))
        done = _plain(timing, found.actions, lasting=property_id in LASTING)
    except (ConflictError, NoTimesError) as reason:
        raise NoTimesError(f"{property_id}: {reason}") from reason
    names = counterexample.bounds.node_names
    return TimedRun(names, prologue(names, profile), done)


def _as_on_a_clock(run: Run, timing: Timing) -> Run:
    """A run with the same finding, in which less has to wait for long: on a clock calls and tasks take seconds.

    The sender of a call without a connection receives its end at once; then tasks are executed and calls decided as
    soon as that leads to the same finding. The last transition stays the last, since it has the finding.
    """
    system = bounded_cluster(timing.bounds, timing.profile, [property_named(run.finding.property_id)])
    return _early(_failed_at_once(run, system), system)


def _failed_at_once(run: Run, system: System) -> Run:
    """The unchanged run where that leads to another end."""
    left, steps, row = [each.label for each in run.transitions], list[StepTaken](), run.rows[0]
    while left:
        refused = next((each for each in transitions(system, row) if _finds_no_connection(each.label)), None)
        step = refused or _taken(system, row, left[0])
        if step is None:
            return run
        if step.label in left:
            left.remove(step.label)
        steps.append(step)
        row = step.after
    found = [each.property_id for each in (*steps[-1].findings, *findings(system, row))]
    rows = (run.rows[0], *(step.after for step in steps))
    return replace(run, transitions=tuple(steps), rows=rows) if run.finding.property_id in found else run


def _early(run: Run, system: System) -> Run:
    steps, rows = list(run.transitions), list(run.rows)
    for late in range(1, len(steps) - 1):
        label = steps[late].label
        if not _may_come_earlier(label):
            continue
        for at in range(late, 0, -1):
            sooner = _taken(system, rows[at - 1], steps[at].label)
            then = None if sooner is None else _taken(system, sooner.after, steps[at - 1].label)
            if sooner is None or then is None or then.after != rows[at + 1]:
                break
            steps[at - 1 : at + 1], rows[at] = [sooner, then], sooner.after
    return replace(run, transitions=tuple(steps), rows=tuple(rows))


def _finds_no_connection(label: object) -> bool:
    return isinstance(label, OnLink) and label.step is CallStep.FAILS


def _may_come_earlier(label: object) -> bool:
    if isinstance(label, OnLink):
        return label.step.decided_by is not None
    return isinstance(label, Happens) and label.cause is Cause.TASK


def _taken(system: System, row: Row, label: object) -> StepTaken | None:
    return next((each for each in transitions(system, row) if each.label == label), None)


def _plain(timing: Timing, done: tuple[Action, ...], *, lasting: bool) -> tuple[Action, ...]:
    """The shorter run: a link is held only where that decides the end. Raises ConflictError when the finding is
    repaired."""
    end = _end(timing, done)
    for link in timing.links:
        for verifies_too in (False, True):
            freed = tuple(_without_hold(done, link, verifies_too=verifies_too))
            if len(freed) < len(done) and _end(timing, freed) == end:
                done = freed
                break
    if not lasting:
        return tuple(joined(done))
    rounds_ms = 2 * timing.profile.verify_interval_ms + 2 * timing.profile.tick_ms
    held = [action for action in done if isinstance(action, Hold)]
    done = (*done, *(Release(action.source, action.target) for action in held), Advance(rounds_ms))
    *_, before, after = _places(timing, done)
    if {_seen(state) for state in after.states} != {_seen(state) for state in before.states}:
        raise ConflictError("the finding is repaired within two verify rounds")
    return tuple(joined(done))


def _places(timing: Timing, done: Iterable[Action]) -> Iterator[Place]:
    place = timing.quiet
    for action in done:
        place = place.do(action)
        yield place


def _end(timing: Timing, done: Iterable[Action]) -> object:
    """The end of the run, and all calls that were sent; None where an action is forbidden."""
    try:
        *_, last = _places(timing, done)
    except ConflictError:
        return None
    return frozenset(map(shown_by, last.states)), Counter(last.traffic)


def _without_hold(done: Iterable[Action], link: tuple[str, str], *, verifies_too: bool) -> Iterator[Action]:
    """Requests of this link arrive at once, or meet a fault that waited for them; `verifies_too`: verifies too."""
    kept: list[Action] = []
    for action in done:
        if not isinstance(action, Hold | actions.BaseRequestAction) or (action.source, action.target) != link:
            kept.append(action)
        elif isinstance(action, actions.Fault) and (verifies_too or action.operation != "VERIFY"):
            waits = [at for at, each in enumerate(kept) if isinstance(each, Advance)]
            while len(waits) > 1 and waits[-2] == waits[-1] - 1:
                waits.pop()
            kept.insert(waits[-1] if waits else 0, replace(action, held=False))
    return iter(kept)


def joined(done: Iterable[Action]) -> Iterator[Action]:
    """Consecutive waits are joined into one."""
    for waits, group in groupby(done, lambda action: isinstance(action, Advance)):
        if waits:
            yield Advance(sum(action.ms for action in group if isinstance(action, Advance)))
        else:
            yield from group


def _seen(state: ClusterState) -> tuple[tuple[str, tuple[tuple[str, View], ...]], ...]:
    return tuple((name, tuple((held or {}).items())) for name, held in observe(state).items())
