"""Giving times to a counterexample of the explorer: from named choices to actions that anybody can repeat.

What the choices leave open (how long a client waits before it acts, which deliveries really have to be late) is tried
out, simplest first, by walking the choices on a clock (`clockwork.py`), and only a run that ends as the explorer's did
is returned. That check is part of the function: a translation is either verified or refused.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product

from distro_model.actions import Action, Advance, Restart
from distro_model.bounded.bounds import Bounds
from distro_model.clock.board import Traffic
from distro_model.clock.cluster import IllegalActionError, Outcome, View, observe
from distro_model.clockwork import LostWayError, NoTimesError, Wait, Walker, prologue, unsayable
from distro_model.explorer import Counterexample
from distro_model.messages import revision_of, subject_of
from distro_model.profiles import Profile
from distro_model.transitions import (
    ClientActs,
    Delivers,
    LoadRuns,
    NodeFails,
    OnLink,
    TaskRuns,
    TimesOut,
    Transition,
    VerifyRuns,
)

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


def as_timed(counterexample: Counterexample, profile: Profile) -> TimedRun:
    """Translate and verify. `profile` is the one explored. Raises NoTimesError."""
    if counterexample.property_id in UNSEEN:
        raise NoTimesError(
            f"{counterexample.property_id}: {UNSEEN[counterexample.property_id]} does not show in any view"
        )
    steps = [step.transition for step in counterexample.steps]
    why_not = unsayable(steps)
    if why_not is not None:
        raise NoTimesError(why_not)
    nodes = counterexample.bounds.node_names
    expectation = _expectation(counterexample, profile)
    for choices in islice(_choices(steps), ATTEMPTS):
        walker = _Walker(counterexample.bounds, profile, steps, choices)
        try:
            outcomes = walker.run(lasting=counterexample.property_id in LASTING)
        except (IllegalActionError, LostWayError):
            continue
        if all(expectation.met_by(outcome) for outcome in outcomes):
            return TimedRun(nodes, prologue(nodes, profile), tuple(walker.actions), expectation)
    raise NoTimesError(
        f"{counterexample.property_id}: no waiting times were found that lead {profile.name} to: {counterexample.found}"
    )


@dataclass(frozen=True, slots=True)
class _Choices:
    """What is left open: how long to wait before each step, and which deliveries are really late."""

    waits: Mapping[int, Wait]
    held: frozenset[int]


def _choices(steps: Sequence[Transition]) -> Iterator[_Choices]:
    """Every combination, those with few waits and holds first."""
    acts = [position for position, step in enumerate(steps) if isinstance(step, ClientActs) and position > 0]
    late = [position for position, step in enumerate(steps) if isinstance(step, Delivers)]
    every = product(*[(0, 1, 2)] * len(acts), *[(0, 1)] * len(late))
    for picked in sorted(islice(every, 8 * ATTEMPTS), key=lambda each: sum(map(bool, each))):
        yield _Choices(
            {position: Wait(number) for position, number in zip(acts, picked, strict=False)},
            frozenset(position for position, number in zip(late, picked[len(acts) :], strict=True) if number),
        )


class _Walker(Walker):
    """Walks all of the steps with one combination of choices."""

    def __init__(self, bounds: Bounds, profile: Profile, steps: Sequence[Transition], choices: _Choices) -> None:
        super().__init__(bounds, profile)
        self.steps = steps
        self.choices = choices
        self.fates = _fates(steps)

    def run(self, *, lasting: bool) -> tuple[Outcome, ...]:
        for position, step in enumerate(self.steps):
            self.step(position, step)
        if lasting:
            self.do(Advance(2 * self.profile.verify_interval_ms + 2 * self.profile.tick_ms))
        return self.outcomes

    def step(self, position: int, step: Transition) -> None:
        match step:
            case ClientActs(action):
                self.wait_before(action.client, self.choices.waits.get(position, Wait.NOT))
            case NodeFails(Restart(node)) | VerifyRuns(node) | LoadRuns(node):
                self.meet_fates(node)
            case TaskRuns(node, target, _):
                self.meet_fates(node, target)
        self.take(step)

    def meet_fates(self, source: str, target: str | None = None) -> None:
        """What is about to be sent from here meets its fate: arm the fault, or hold the link."""
        for link, fates in self.fates.items():
            if link[0] != source or (target is not None and link[1] != target) or not fates:
                continue
            position, fate = fates.pop(0)
            if not isinstance(fate, Delivers) or position in self.choices.held:
                self.arm(fate)


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
