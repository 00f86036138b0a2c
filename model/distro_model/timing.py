"""Assigning times to a run of the search: every link is held, each call is decided separately, and only timers wait.

A choice of the search is an action, or an automatic event: a task, a round, the end of a call. The clock waits for an
automatic event, from one instant to the next, and after each the nodes and links are compared, without times, with the
current row of the run. Events that happen meanwhile and are not in the run must change nothing; a verify is
acknowledged without delivery. Otherwise there is a conflict, and its reason is reported. Only the time of a client's
action or a node's failure is open: now, or just before an automatic event, so that the next transitions come after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import permutations

from distro_model import actions
from distro_model.actions import Action, Advance, Hold
from distro_model.bounded.bounds import Bounds
from distro_model.bounded.view import Situation, situation_of
from distro_model.clock.cluster import ClusterState, IllegalActionError, apply, prologue, start
from distro_model.clock.timers import NEVER, next_instant
from distro_model.clock.traffic import Traffic
from distro_model.cluster.nodes import beat_timer, next_round
from distro_model.cluster.values import Link, Phase
from distro_model.messages import Operation, Request, subject_of
from distro_model.node import NodeState
from distro_model.profiles import Profile
from distro_model.search.results import Run
from distro_model.transitions import (
    AUTOMATIC,
    Cause,
    ClientActs,
    HttpAsks,
    NoActionError,
    NodeFails,
    Transition,
    action_of,
    cause_of,
    labelled,
)

TRIES = 400
"""The limit of choices tried on a clock, for one run, before the longest beginning so far is returned."""


class NoTimesError(ValueError):
    """This run cannot be repeated on a clock; the message states why."""


class ConflictError(Exception):
    """The clock differs from the run in the next transition."""


@dataclass(frozen=True, slots=True)
class TimedWalk:
    """After `actions[n]` the first `taken[n]` transitions of the run are done, whatever the outcome.

    `stopped_at` is the transition that no action or wait leads to, and `why` the reason; None: the run is done to its
    end.
    """

    actions: tuple[Action, ...]
    taken: tuple[int, ...]
    stopped_at: Transition | None
    why: str = ""

    @property
    def transitions(self) -> int:
        return self.taken[-1]


States = tuple[ClusterState, ...]
Calls = frozenset[tuple[tuple[Request, Phase], int]]
Shown = tuple[tuple[NodeState | None, ...], tuple[Calls, ...]]
"""The nodes without times; and for each link its calls, and the number of each."""


@dataclass(frozen=True, slots=True)
class Place:
    """`position` transitions of the run are done in all of these states. `taken`: as in TimedWalk."""

    states: States
    position: int = 0
    actions: tuple[Action, ...] = ()
    taken: tuple[int, ...] = ()
    traffic: tuple[Traffic, ...] = ()
    """All calls that have ended in the first state."""

    @property
    def now_ms(self) -> int:
        return self.states[0].now_ms

    def do(self, action: Action) -> Place:
        """Raises ConflictError."""
        try:
            outcomes = [outcome for state in self.states for outcome in apply(state, action)]
        except IllegalActionError as error:
            raise ConflictError(str(error)) from error
        states = tuple(dict.fromkeys(outcome.state for outcome in outcomes))
        traffic = self.traffic + outcomes[0].traffic
        return Place(states, self.position, (*self.actions, action), (*self.taken, self.position), traffic)

    def at(self, position: int) -> Place:
        """The same states after the last action, at this position of the run."""
        return replace(self, position=position, taken=(*self.taken[:-1], position) if self.taken else ())


class Timing:
    """The start of timed runs of one bounded cluster: the nodes are up, loaded and quiet, and every link is held."""

    def __init__(self, bounds: Bounds, profile: Profile) -> None:
        self.bounds, self.profile = bounds, profile
        self.links = tuple(permutations(bounds.node_names, 2))
        self.quiet = Place((start(bounds.node_names, profile),))
        for action in prologue(bounds.node_names, profile):
            self.quiet = self.quiet.do(action)
        self.quiet = Place(self.quiet.states)
        self.beginning = self.quiet
        for source, target in self.links:
            self.beginning = self.beginning.do(Hold(source, target, distro=True))

    def timed(self, run: Run) -> TimedWalk:
        """The longest beginning that was found. Raises NoTimesError when not even its first transition has a time."""
        place, why = _Search(run, self).farthest()
        if not place.position:
            raise NoTimesError(why)
        whole = place.position == len(run.transitions)
        stopped_at = None if whole else labelled(run.transitions[place.position].label)
        return TimedWalk(place.actions, place.taken, stopped_at, why)


def whole(walk: TimedWalk) -> TimedWalk:
    """The same walk, when it has times to its end. Raises NoTimesError."""
    if walk.stopped_at is not None:
        raise NoTimesError(walk.why)
    return walk


class _Search:
    """Depth first: of the times for the next choice, the earliest; backtracks at a conflict."""

    def __init__(self, run: Run, timing: Timing) -> None:
        self.steps = [labelled(each.label) for each in run.transitions]
        self.rows = [situation_of(row, timing.bounds) for row in run.rows]
        self.timing = timing
        self.expected = cache(lambda position: _shown_in(self.rows[position]))

    def farthest(self) -> tuple[Place, str]:
        """The farthest place, and the reason why there is none that is farther; empty at the end of the run."""
        farthest, why, tries, deepest = self.timing.beginning, "", 0, 0
        stack = [self.onwards(farthest)]
        while stack and tries < TRIES:
            tries += 1
            place = next(stack[-1], None)
            if place is None:
                stack.pop()
            elif isinstance(place, str):
                why = place if len(stack) > deepest else why
                deepest = max(deepest, len(stack))
            else:
                farthest = place if place.position > farthest.position else farthest
                if place.position == len(self.steps):
                    return place, ""
                stack.append(self.onwards(place))
        return farthest, why

    def onwards(self, place: Place) -> Iterator[Place | str]:
        """Every way to do the next choice; where there is none, the reason."""
        step = self.steps[place.position]
        for wait_ms in self.waits_ms(step, place):
            try:
                if cause_of(step) in AUTOMATIC:
                    yield self.awaited(place, step)
                else:
                    action = action_of(step)
                    done = self.idle(place, wait_ms).do(action)
                    position = self.shown(done, place.position + 1)
                    if position is None:
                        raise ConflictError(f"{self.difference(done)} after `{action}`")
                    yield done.at(position)
            except ConflictError as conflict:
                yield f"{conflict}: {step}"
            except NoActionError as reason:
                yield str(reason)

    # Waiting

    def waits_ms(self, step: Transition, place: Place) -> Iterable[int]:
        """The actions of an environment come between two ticks. Clients and failures may also wait until just before a
        timer."""
        if cause_of(step) in AUTOMATIC:
            return (0,)
        state, profile = place.states[0], self.timing.profile
        running = [node for node in state.nodes if node is not None]
        phases = {(node.started_ms - place.now_ms) % profile.tick_ms for node in running}
        between = next(ms for ms in (0, profile.tick_ms // 2, *range(profile.tick_ms)) if ms not in phases)
        if not isinstance(step, ClientActs | NodeFails | HttpAsks):
            return (between,)
        later = [timer(node, place.now_ms, profile) for node in running for timer in (next_round, beat_timer)]
        later += [node.load_at_ms for node in running if node.load_at_ms is not None]
        later += [call.deadline_ms for link in state.links for call in link.calls if not call.is_report]
        before = [at_ms - profile.sync_delay_ms // 2 + between - place.now_ms for at_ms in later]
        return (between, *sorted(ms for ms in dict.fromkeys(before) if ms > between))

    def idle(self, place: Place, ms: int) -> Place:
        """Let this time pass, in which no event happens that the run does not have. Raises ConflictError."""
        until_ms = place.now_ms + ms
        while place.now_ms < until_ms:
            before = place
            place = self.passed(place, until_ms)
            if self.shown(place, place.position, (place.position,)) is None:
                raise ConflictError(self.unexpected(before, place))
        return place

    def awaited(self, place: Place, step: Transition) -> Place:
        """Wait until the run has continued by automatic events. Raises ConflictError."""
        profile = self.timing.profile
        wait_ms = profile.load_retry_ms + profile.verify_interval_ms
        if cause_of(step) is Cause.LEASE:
            wait_ms = profile.lease_ms + 2 * profile.lease_check_ms
        until_ms = place.now_ms + wait_ms
        position = self.shown(place, place.position + 1)
        if position is not None:
            return replace(place, position=position)
        while place.now_ms < until_ms:
            before = place
            place = self.passed(place, until_ms)
            position = self.shown(place, place.position + 1)
            if position is not None:
                return place.at(position)
            if self.shown(place, place.position, (place.position,)) is None:
                raise ConflictError(self.unexpected(before, place))
        raise ConflictError(f"it does not happen within {wait_ms // 1000} s")

    def passed(self, place: Place, until_ms: int) -> Place:
        """Advance to the next instant with an event. A verify that the run does not have is not delivered."""
        at_ms = min(next_instant(state.mutable(), place.now_ms)[0] for state in place.states)
        place = place.do(Advance(min(at_ms, until_ms) - place.now_ms))
        if self.shown(place, place.position + 1) is not None:
            return place
        expected, shown = self.expected(place.position)[1], shown_by(place.states[0])[1]
        for (source, target), wanted, there in zip(self.timing.links, expected, shown, strict=True):
            for (request, _), count in (Counter(dict(there)) - Counter(dict(wanted))).items():
                if request.operation is Operation.VERIFY:
                    swallow = actions.Swallow(source, target, "VERIFY", subject_of(request), held=True)
                    for _ in range(count):
                        place = place.do(swallow)
        return place

    # Comparing

    def shown(self, place: Place, first: int, positions: Iterable[int] | None = None) -> int | None:
        """The position that the run has reached, `first` at least: automatic events may have happened already."""
        shown = {shown_by(state) for state in place.states}
        for position in positions or range(first, len(self.rows)):
            if shown == {self.expected(position)}:
                return position
            if position == len(self.steps) or cause_of(self.steps[position]) not in AUTOMATIC:
                return None
        return None

    def unexpected(self, before: Place, after: Place) -> str:
        """The automatic event, and its time since the beginning of the run."""
        names, began_ms = before.states[0].plan.names, self.timing.quiet.now_ms
        at_ms, due = next_instant(before.states[0].mutable(), before.now_ms)
        if at_ms == NEVER or at_ms > after.now_ms:
            return f"something happens at {after.now_ms - began_ms:,} ms, {self.difference(after)}"
        what = " and ".join(f"a {kind} of {names[position]}" for position, kind in sorted(due))
        return f"{what} is due at {at_ms - began_ms:,} ms, before"

    def difference(self, place: Place) -> str:
        if len({shown_by(state) for state in place.states}) > 1:
            return "in more than one way"
        for (source, target), link in self.rows[place.position + 1].links.items():
            if any(call.phase is Phase.REFUSED for call in link.calls):
                return f"{source} observes at once that there is no connection to {target},"
        here, there = shown_by(place.states[0]), self.expected(place.position + 1)
        places = (*self.timing.bounds.node_names, *(f"{source}->{target}" for source, target in self.timing.links))
        mine, its = (*here[0], *here[1]), (*there[0], *there[1])
        others = [name for name, one, other in zip(places, mine, its, strict=True) if one != other]
        return f"{' and '.join(others)} would be different"


# Comparable states


def shown_by(state: ClusterState) -> Shown:
    links = (state.links[source * len(state.nodes) + target] for source, target in state.plan.pairs)
    return tuple(map(_without_times, state.nodes)), tuple(map(_calls_on, links))


def _shown_in(row: Situation) -> Shown:
    return tuple(_without_times(row.nodes[name]) for name in sorted(row.nodes)), tuple(
        map(_calls_on, row.links.values())
    )


def _calls_on(link: Link) -> Calls:
    """Without reports, and without calls without a connection: their senders observe the end at once."""
    calls = [call for call in link.calls if not call.is_report and call.phase is not Phase.REFUSED]
    return frozenset(Counter((call.request, call.phase) for call in calls).items())


def _without_times(node: NodeState | None) -> NodeState | None:
    """The state without times and beliefs about members: those change with time alone."""
    if node is None:
        return None
    return replace(
        node,
        started_ms=0,
        load_at_ms=None if node.load_at_ms is None else 0,
        clients=tuple(
            replace(client, renewed_ms=0, beats=tuple((service, 0) for service, _ in client.beats), turn_ms=0)
            for client in node.clients
        ),
        tasks=tuple(replace(task, since_ms=0, delay_ms=0) for task in node.tasks),
        members=(),
        addresses=(),
        gone=tuple((name, 0) for name, _ in node.gone),
        sent=(),
    )
