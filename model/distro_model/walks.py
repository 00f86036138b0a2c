"""Giving times to any walk of the bounded cluster, as far as a clock can follow it.

A counterexample is worth something only whole (`timing.py`); a walk of a tour is worth every transition that is taken.
So after each choice the timed nodes and links are held against the row that the walk has come to, with the times taken
out, and where they differ another wait, or another way to deliver, is tried. What comes out is the longest beginning
for which every possible outcome goes through the rows of the walk.

Things that follow at once happen in one instant on the clock (a request is sent, delivered and answered), so the clock
may be ahead of the walk by what becomes of requests; then it has to show the row after those. Of a request that will be
lost or swallowed this is known when it is sent; in the walk it seems to be on its way until then, which no node sees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import count

from distro_model.actions import Action, Advance, Crash
from distro_model.bounded.bounds import Bounds
from distro_model.bounded.view import situation_of
from distro_model.clock.cluster import ClusterState, IllegalActionError
from distro_model.clockwork import LostWayError, NoTimesError, Walker, unsayable
from distro_model.cluster.values import Call, Phase
from distro_model.messages import Operation, Request
from distro_model.node import NodeState
from distro_model.profiles import Profile
from distro_model.search.results import Run
from distro_model.transitions import ClientActs, Delivers, Fails, Loses, LosesReply, NodeFails, Swallows, Transition

TRIES = 200
"""So many times a choice is done on a clock, for one walk, before its longest beginning so far counts."""

AT_ONCE = (Delivers, Loses, LosesReply, Swallows, Fails)
"""What may become of a request in the instant in which it is sent."""

Ends = tuple[str, str]
Shown = tuple[tuple[NodeState | None, ...], tuple[frozenset[tuple[tuple[Request, bool], int]], ...]]
"""The nodes without times; and for each link its requests, whether each is lost, and how many there are of it."""


@dataclass(frozen=True, slots=True)
class TimedWalk:
    """After `actions[n]` the first `taken[n]` transitions of the walk are done, whatever the outcome.

    `stopped_at` is the transition that no action or wait leads to; None: the walk is done to its end.
    """

    actions: tuple[Action, ...]
    taken: tuple[int, ...]
    stopped_at: Transition | None

    @property
    def transitions(self) -> int:
        return self.taken[-1]


class Clock:
    """Where timed walks of one bounded cluster begin: the nodes are up, loaded and quiet."""

    def __init__(self, bounds: Bounds, profile: Profile) -> None:
        self.bounds = bounds
        self._beginning = Walker(bounds, profile)

    def timed(self, walk: Run) -> TimedWalk:
        """The longest beginning that was found. Raises NoTimesError when not even its first transition has a time."""
        return _Search(walk, self.bounds).timed(self._beginning.fork())


def whole(walk: TimedWalk) -> TimedWalk:
    """The same, when it has times to its end. Raises NoTimesError."""
    if walk.stopped_at is not None:
        raise NoTimesError(f"no waiting times were found for transition {walk.transitions + 1}: {walk.stopped_at}")
    return walk


@dataclass(frozen=True, slots=True)
class _Place:
    """A walker that shows the row after so many transitions. `taken`: as in TimedWalk."""

    walker: Walker
    position: int
    taken: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Sent:
    """A request that a transition sends, what becomes of it within the walk, and whether that follows at once."""

    ends: Ends
    fate: Transition | None
    at_once: bool

    @property
    def is_open(self) -> bool:
        """It may be delivered in the instant in which it is sent, or be held at first."""
        return self.at_once and isinstance(self.fate, Delivers)


class _Search:
    """Depth first: of the ways to do the next choice, the simplest; back where none shows the next row."""

    def __init__(self, walk: Run, bounds: Bounds) -> None:
        self.steps: list[Transition] = [_transition(each.label) for each in walk.transitions]
        why_not = unsayable(self.steps[:1])
        if why_not is not None:
            raise NoTimesError(why_not)
        self.situations = [situation_of(row, bounds) for row in walk.rows]
        self.tries = 0
        self.shown_at = cache(self._shown_at)

    def timed(self, beginning: Walker) -> TimedWalk:
        farthest = _Place(beginning, 0)
        stack = [iter((farthest,))]
        while stack and self.tries < TRIES:
            place = next(stack[-1], None)
            if place is None:
                stack.pop()
                continue
            if place.position > farthest.position:
                farthest = place
            if place.position == len(self.steps):
                break
            stack.append(self.onwards(place))
        if not farthest.position:
            raise NoTimesError(f"no waiting times were found for transition 1: {self.steps[0]}")
        at_end = farthest.position == len(self.steps)
        return TimedWalk(farthest.walker.actions, farthest.taken, None if at_end else self.steps[farthest.position])

    def onwards(self, place: _Place) -> Iterator[_Place]:
        """Every way to do the next choice after which the clock shows where the walk has come to."""
        position = place.position
        step = self.steps[position]
        if unsayable((step,)):
            return
        new = self.new_calls(position)
        for wait_ms in self.waits_ms(step, place.walker):
            for holds in (False, True) if any(each.is_open for each in new) else (False,):
                self.tries += 1
                walker = place.walker.fork()
                walker.fixed = len(walker.actions)
                try:
                    walker.do(Advance(wait_ms))
                    walker.do(Advance(max(0, walker.wait_ms(step) - 1)))
                    if walker.actions != place.walker.actions and not self.shows(walker, position):
                        continue  # while it waited something else happened
                    _arm(walker, new, holds=holds)
                    walker.take(step)
                except (IllegalActionError, LostWayError):
                    continue
                after = self.after(walker, position)
                if after is not None:
                    done = len(walker.actions) - len(place.taken)
                    # Before the last action of a step, what it takes is not done; after it, all is.
                    taken = (*place.taken, *[position] * (done - 1), *[after] * min(done, 1))
                    if not done and place.taken:
                        taken = (*place.taken[:-1], after)
                    yield _Place(walker, after, taken)

    def after(self, walker: Walker, position: int) -> int | None:
        """How many transitions are done after the one at `position`; None where the clock shows something else."""
        for done in range(position + 1, len(self.steps) + 1):
            if self.shows(walker, done):
                return done
            if done == len(self.steps) or not isinstance(self.steps[done], AT_ONCE):
                return None
        return None

    def shows(self, walker: Walker, position: int) -> bool:
        expected = self.shown_at(position)
        return all(_shown(outcome.state) == expected for outcome in walker.outcomes)

    def waits_ms(self, step: Transition, walker: Walker) -> tuple[int, ...]:
        """Clients and failures may come at any time: at once, just before the next timer or time-out, or after it.

        A delivery may come between two ticks: in the instant of one, what follows from it may be done or not.
        """
        state, profile = walker.state, walker.profile
        if isinstance(step, Delivers):
            return (0, profile.tick_ms // 2)
        if not isinstance(step, ClientActs | NodeFails):
            return (0,)
        period_ms = profile.verify_interval_ms
        running_ms = [state.now_ms - node.started_ms for node in state.nodes if node is not None]
        verifies = [period_ms - ms % period_ms for ms in running_ms]
        ends = [call.deadline_ms - state.now_ms for link in state.links for call in link.calls if not _is_report(call)]
        before = [ms - profile.sync_delay_ms // 2 for ms in (*ends, *verifies)]
        after = [ms + profile.tick_ms for ms in verifies]
        return (0, *dict.fromkeys(ms for ms in (*before, *after) if ms > 0))

    def new_calls(self, position: int) -> list[_Sent]:
        before, after = self.situations[position], self.situations[position + 1]
        found = []
        for ends, link in after.links.items():
            sent = sum(call.phase is Phase.SENT for call in link.calls)
            new = list((Counter(link.calls) - Counter(before.links[ends].calls)).elements())
            new = [call for call in new if call.phase is Phase.SENT]
            for rank in range(sent - len(new), sent):
                fate = self.fate(position + 1, ends, rank)
                between = self.steps[position + 1 : fate]
                at_once = fate is not None and all(isinstance(step, AT_ONCE) for step in between)
                found.append(_Sent(ends, None if fate is None else self.steps[fate], at_once))
        return found

    def fate(self, position: int, ends: Ends, rank: int) -> int | None:
        """Where the walk decides about the request that is the `rank`-th on its way, counted from 0."""
        for at in range(position, len(self.steps)):
            step = self.steps[at]
            if isinstance(step, NodeFails) and isinstance(step.action, Crash) and step.action.node in ends:
                return None
            if isinstance(step, AT_ONCE) and not isinstance(step, Fails) and (step.source, step.target) == ends:
                if not rank:
                    return at
                rank -= 1
        return None

    def _shown_at(self, position: int) -> Shown:
        situation = self.situations[position]
        links = []
        for ends, link in situation.links.items():
            requests: Counter[tuple[Request, bool]] = Counter()
            ranks = count()
            for call in link.calls:
                if call.phase is Phase.LOST:
                    requests[call.request, True] += 1
                elif call.phase is Phase.SENT:
                    fate = self.fate(position, ends, next(ranks))
                    step = None if fate is None else self.steps[fate]
                    if not isinstance(step, Swallows):
                        requests[call.request, isinstance(step, Loses)] += 1
            links.append(frozenset(requests.items()))
        nodes = tuple(_without_times(situation.nodes[name]) for name in sorted(situation.nodes))
        return nodes, tuple(links)


def _arm(walker: Walker, new: Iterable[_Sent], *, holds: bool) -> None:
    for each in new:
        if isinstance(each.fate, Loses | LosesReply | Swallows):
            walker.arm(each.fate)
        elif holds or not each.at_once:
            walker.hold(*each.ends)


def _shown(state: ClusterState) -> Shown:
    links = []
    for source, target in state.plan.pairs:
        calls = state.links[source * len(state.nodes) + target].calls
        requests = Counter((call.request, call.phase is Phase.LOST) for call in calls if not _is_report(call))
        links.append(frozenset(requests.items()))
    return tuple(map(_without_times, state.nodes)), tuple(links)


def _is_report(call: Call) -> bool:
    return call.request.operation is Operation.REPORT


def _without_times(node: NodeState | None) -> NodeState | None:
    """And without what it believes of the members: that changes with time alone."""
    if node is None:
        return None
    return replace(
        node,
        started_ms=0,
        load_at_ms=None if node.load_at_ms is None else 0,
        clients=tuple(replace(client, renewed_ms=0) for client in node.clients),
        tasks=tuple(replace(task, since_ms=0, delay_ms=0) for task in node.tasks),
        members=(),
        addresses=(),
        gone=tuple((name, 0) for name, _ in node.gone),
        sent=(),
    )


def _transition(label: object) -> Transition:
    assert isinstance(label, Transition)  # every chain of the bounded cluster says what it does
    return label
