"""Giving times to a run of the explorer: from named choices to actions that anybody can repeat.

The explorer chooses when a timer fires; on a clock it fires when it is due. So each choice becomes an action or a wait:
a client acts, a queued task is waited for, a loss is armed before its request is sent, a late delivery becomes hold and
release. What the choices leave open (how long a client waits before it acts, which deliveries really have to be late)
is tried out, simplest first, by running the timed model, and only a run that ends as the explorer's did is returned.
That check is part of the function: a translation is either verified or refused.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice, product

from distro_model.actions import Action, Advance, Drop, Hold, RegisterBatch, Release, Restart, Swallow
from distro_model.bounded.bounds import Bounds
from distro_model.cluster import ClusterState, IllegalActionError, Outcome, View, apply, observe, start
from distro_model.explorer import Counterexample
from distro_model.messages import Request, Snapshot, revision_of, subject_of
from distro_model.profiles import Profile
from distro_model.transitions import (
    ClientActs,
    Delivers,
    InsideNode,
    LoadRuns,
    Loses,
    LosesReply,
    NodeFails,
    OnLink,
    Swallows,
    TaskRuns,
    TimesOut,
    Transition,
    VerifyRuns,
)
from distro_model.turn import Traffic

START_GAP_MS = 10
"""Nodes start so far apart that no two timers of different nodes ever fall into one instant."""

SETTLE_IN_MS = 1000
"""After the load of the first node, which finds nobody to load from and is loaded only when it has tried again."""

ATTEMPTS = 512
"""So many combinations of what is left open are tried before a run counts as one that has no times."""

LASTING = frozenset({"INV-CONV", "INV-DELETE", "EVENTUALLY-CONV"})
"""Properties about settled states: what they found must still be so after two more verify rounds of every node."""

UNSEEN = {
    "INV-OWNER": "who believes to own a client",
    "INV-INDEX": "what queries and pushes go by",
}
"""Properties about something that no view shows: a repeated run would look the same on a node that is right."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What the run ends with: client -> node -> view; None: that node does not know the client."""

    property_id: str
    found: str
    views: Mapping[str, Mapping[str, View | None]]
    calls: tuple[Traffic, ...]
    """What the last action finishes among other calls; empty where the run goes on to show that the end lasts."""

    @property
    def diverged(self) -> tuple[str, ...]:
        """The clients of which two nodes show different instances."""
        shown = {
            client: {() if view is None else view.content for view in at.values()} for client, at in self.views.items()
        }
        return tuple(client for client, contents in shown.items() if len(contents) > 1)

    def met_by(self, outcome: Outcome) -> bool:
        seen = observe(outcome.state)
        return not Counter(self.calls) - Counter(outcome.traffic) and all(
            (held := seen.get(node)) is not None and held.get(client) == view
            for client, at in self.views.items()
            for node, view in at.items()
        )


@dataclass(frozen=True, slots=True)
class TimedRun:
    """`prologue` brings the nodes up and loaded; every possible outcome of `actions` after it is as expected."""

    nodes: tuple[str, ...]
    prologue: tuple[Action, ...]
    actions: tuple[Action, ...]
    expectation: Expectation


class NoTimesError(ValueError):
    """This run could not be repeated on a clock: it needs what actions cannot say, or no waiting times led there."""


def as_timed(counterexample: Counterexample, profile: Profile) -> TimedRun:
    """Translate and verify. `profile` is the one explored. Raises NoTimesError."""
    if counterexample.property_id in UNSEEN:
        raise NoTimesError(
            f"{counterexample.property_id}: {UNSEEN[counterexample.property_id]} does not show in any view"
        )
    steps = [step.transition for step in counterexample.steps]
    unsayable = next((each for each in steps if isinstance(each, LosesReply)), None)
    if unsayable is not None:
        raise NoTimesError(f"no action loses a reply after its request took effect: {unsayable}")
    inside = next((each for each in steps if isinstance(each, InsideNode)), None)
    if inside is not None:
        raise NoTimesError(f"no action decides what goes on inside a node: {inside}")
    if any(isinstance(each, ClientActs) and isinstance(each.action, RegisterBatch) for each in steps):
        raise NoTimesError("no action registers a batch so far")
    nodes = counterexample.bounds.node_names
    expectation = _expectation(counterexample, profile)
    for choices in islice(_choices(steps), ATTEMPTS):
        walker = _Walker(counterexample.bounds, profile, steps, choices)
        try:
            outcomes = walker.run(lasting=counterexample.property_id in LASTING)
        except (IllegalActionError, _LostWayError):
            continue
        if all(expectation.met_by(outcome) for outcome in outcomes):
            return TimedRun(nodes, prologue(nodes, profile), tuple(walker.actions), expectation)
    raise NoTimesError(
        f"{counterexample.property_id}: no waiting times were found that lead {profile.name} to: {counterexample.found}"
    )


def prologue(nodes: Sequence[str], profile: Profile) -> tuple[Action, ...]:
    """The common beginning of every timed run: all nodes up, loaded, and quiet."""
    starts = [action for node in nodes for action in (Restart(node), Advance(START_GAP_MS))]
    return (*starts, Advance(profile.load_retry_ms + SETTLE_IN_MS - START_GAP_MS * len(nodes)))


class _LostWayError(Exception):
    """The timed run is no longer where the explorer's was: what should happen next is not on its way."""


class _Wait(Enum):
    """How long a client waits before it acts. What it does is queued when the thing named happens."""

    NOT = 0
    UNTIL_JUST_BEFORE_A_TIME_OUT = 1
    UNTIL_JUST_BEFORE_A_VERIFY = 2


@dataclass(frozen=True, slots=True)
class _Choices:
    """What is left open: how long to wait before each step, and which deliveries are really late."""

    waits: Mapping[int, _Wait]
    held: frozenset[int]


def _choices(steps: Sequence[Transition]) -> Iterator[_Choices]:
    """Every combination, those with few waits and holds first."""
    acts = [position for position, step in enumerate(steps) if isinstance(step, ClientActs) and position > 0]
    late = [position for position, step in enumerate(steps) if isinstance(step, Delivers)]
    every = product(*[(0, 1, 2)] * len(acts), *[(0, 1)] * len(late))
    for picked in sorted(islice(every, 8 * ATTEMPTS), key=lambda each: sum(map(bool, each))):
        yield _Choices(
            {position: _Wait(number) for position, number in zip(acts, picked, strict=False)},
            frozenset(position for position, number in zip(late, picked[len(acts) :], strict=True) if number),
        )


class _Walker:
    """Walks the steps on a clock. All possible states are carried along; waits are computed from the first."""

    def __init__(self, bounds: Bounds, profile: Profile, steps: Sequence[Transition], choices: _Choices) -> None:
        self.profile = profile
        self.steps = steps
        self.choices = choices
        self.actions: list[Action] = []
        self.outcomes: tuple[Outcome, ...] = (Outcome(start(bounds.node_names, profile)),)
        self.fates = _fates(steps)
        self.clients = bounds.clients

    @property
    def state(self) -> ClusterState:
        return self.outcomes[0].state

    def run(self, *, lasting: bool) -> tuple[Outcome, ...]:
        for action in prologue(self.state.plan.names, self.profile):
            self.do(action)
        self.actions = []
        for position, step in enumerate(self.steps):
            self.step(position, step)
        if lasting:
            self.do(Advance(2 * self.profile.verify_interval_ms + 2 * self.profile.tick_ms))
        return self.outcomes

    def do(self, action: Action) -> None:
        if isinstance(action, Advance) and action.ms == 0:
            return
        if isinstance(action, Advance) and self.actions and isinstance(self.actions[-1], Advance):
            self.actions[-1] = Advance(self.actions[-1].ms + action.ms)
        else:
            self.actions.append(action)
        before = dict.fromkeys(outcome.state for outcome in self.outcomes)
        self.outcomes = tuple(outcome for state in before for outcome in apply(state, action))

    def step(self, position: int, step: Transition) -> None:
        match step:
            case ClientActs(action) if not isinstance(action, RegisterBatch):
                self.wait_before(action.client, self.choices.waits.get(position, _Wait.NOT))
                self.do(action)
            case NodeFails(action):
                if isinstance(action, Restart):
                    self.arm(action.node)
                self.do(action)
            case TaskRuns(node, target, client):
                self.arm(node, target)
                self.wait_for_task(node, target, client)
            case VerifyRuns(node):
                self.arm(node)
                self.wait_until(node, self.profile.verify_interval_ms)
            case LoadRuns(node):
                self.arm(node)
                self.wait_for_load(node)
            case TimesOut():
                self.wait_for_time_out(step)
            case Delivers():
                if self.state.link(step.source, step.target).held:
                    self.do(Release(step.source, step.target))
            case Loses() | Swallows() | LosesReply():
                pass  # armed before the request was sent

    def arm(self, source: str, target: str | None = None) -> None:
        """What is about to be sent from here meets its fate: arm the fault, or hold the link."""
        for link, fates in self.fates.items():
            if link[0] != source or (target is not None and link[1] != target) or not fates:
                continue
            position, fate = fates.pop(0)
            match fate:
                case Swallows():
                    self.do(Swallow(*link, str(fate.request.operation), self.named(fate.request)))
                case Loses():
                    self.do(Drop(*link, str(fate.request.operation), self.named(fate.request)))
                case Delivers() if position in self.choices.held and not self.state.link(*link).held:
                    self.do(Hold(*link))

    def named(self, request: Request) -> str | None:
        """Whose request is meant, where it could be somebody else's."""
        return subject_of(request) if self.clients > 1 else None

    def wait_for_task(self, node: str, target: str, client: str) -> None:
        state = self.state.node(node)
        task = None if state is None else state.task(client, target)
        if state is not None and task is not None:
            due_ms = max(task.due_ms, self.state.now_ms)
            self.do(Advance(due_ms - self.state.now_ms))
            self.wait_until(node, self.profile.tick_ms, now_counts=True)

    def wait_until(self, node: str, period_ms: int, *, now_counts: bool = False) -> None:
        """Wait for the next multiple of the period since the node's start."""
        state = self.state.node(node)
        if state is None:
            raise _LostWayError
        since_ms = self.state.now_ms - state.started_ms
        rest_ms = -since_ms % period_ms
        self.do(Advance(rest_ms if rest_ms or now_counts else period_ms))

    def wait_for_load(self, node: str) -> None:
        state = self.state.node(node)
        if state is None or state.load_at_ms is None:
            raise _LostWayError
        self.do(Advance(state.load_at_ms - self.state.now_ms))

    def wait_for_time_out(self, step: TimesOut) -> None:
        waiting = [
            call.deadline_ms
            for call in self.state.link(step.source, step.target).calls
            if call.lost and call.request.operation is step.request.operation
        ]
        if not waiting:
            raise _LostWayError
        self.do(Advance(min(waiting) - self.state.now_ms))

    def wait_before(self, client: str, wait: _Wait) -> None:
        """Half a sync delay before the moment in question, so that what the client does is still queued then."""
        now_ms = self.state.now_ms
        match wait:
            case _Wait.NOT:
                return
            case _Wait.UNTIL_JUST_BEFORE_A_TIME_OUT:
                moments = [
                    call.deadline_ms
                    for link in self.state.links
                    for call in link.calls
                    if not isinstance(call.request, Snapshot)
                ]
            case _Wait.UNTIL_JUST_BEFORE_A_VERIFY:
                connection = self.state.connection(client)
                owner = self.state.node(connection.node) if connection is not None and connection.node else None
                period_ms = self.profile.verify_interval_ms
                moments = [] if owner is None else [now_ms + period_ms - (now_ms - owner.started_ms) % period_ms]
        self.do(Advance(max(0, min(moments, default=now_ms) - self.profile.sync_delay_ms // 2 - now_ms)))


def _fates(steps: Sequence[Transition]) -> dict[tuple[str, str], list[tuple[int, OnLink]]]:
    """For each link, what becomes of its requests in the order in which they are sent (links keep their order)."""
    fates: dict[tuple[str, str], list[tuple[int, OnLink]]] = defaultdict(list)
    for position, step in enumerate(steps):
        if isinstance(step, OnLink) and not isinstance(step, TimesOut):
            fates[step.source, step.target].append((position, step))
    return fates


def _expectation(counterexample: Counterexample, profile: Profile) -> Expectation:
    last = counterexample.last
    call = None if counterexample.property_id in LASTING else counterexample.last_call
    calls = () if call is None else (_traffic(call),)
    views = {
        client: {node: held.get(client) for node, held in last.views(profile).items() if held is not None}
        for client in last.lives
    }
    return Expectation(counterexample.property_id, counterexample.found, views, calls)


def _traffic(call: OnLink) -> Traffic:
    assert call.outcome is not None
    request = call.request
    return Traffic(call.source, call.target, request.operation, subject_of(request), revision_of(request), call.outcome)
