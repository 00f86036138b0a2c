"""The possible states of a cluster, given the observations: the non-deterministic wrapper of a deterministic model.

An action turns each possible state into all its outcomes; the observation after it keeps those that agree. When none is
left, the observation is rejected, and the rejection states the values of the nearest outcome.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from distro_model.actions import Action
from distro_model.clock.cluster import (
    ClusterState,
    IllegalActionError,
    Outcome,
    View,
    apply_to,
    enabled,
    observe,
    why_unreached,
)
from distro_model.clock.traffic import Ended, Traffic, seen_calls
from distro_model.messages import text_of
from distro_model.rules.watching import Refusal, watched

Observation = Mapping[str, Mapping[str, View] | None]
"""node -> client -> view; None: the node is down."""


REFUSALS_MAX = 5
"""The limit of refusals in the text of a rejection; the rejection has them all."""


_SENT, _NOT_SENT = "sent", "not sent"


@dataclass(frozen=True, slots=True)
class Difference:
    """One value in which a possible outcome and the observation disagree."""

    node: str
    client: str | None
    field: str
    possible: str
    seen: str
    peer: str | None = None
    """The other end of a call."""

    def __str__(self) -> str:
        if self.peer is not None:
            sends, expects = ("sends", "no such call") if self.seen == _SENT else ("does not send", "it")
            return f"{self.node} {sends} {self.field}; the model expects {expects}"
        where = self.node if self.client is None else f"{self.client} at {self.node}"
        return f"{where}: {self.field} is {self.seen}; the model expects {self.possible}"


@dataclass(frozen=True, slots=True)
class Rejection:
    """No possible outcome agrees with the observation. `nearest` are the outcomes with the fewest differences.

    `refusals`: the guards that were false where the model did not do what was observed.
    """

    action: Action | None
    candidates: int
    nearest: tuple[tuple[Difference, ...], ...]
    refusals: tuple[Refusal, ...] = ()

    def __str__(self) -> str:
        after = "at the start" if self.action is None else f"after `{self.action}`"
        allowed = "the only outcome" if self.candidates == 1 else f"any of the {self.candidates} outcomes"
        lines = [f"{after} what was observed is not {allowed} that the model allows"]
        for number, differences in enumerate(self.nearest, start=1):
            lines += [f"  nearest {number}: {difference}" for difference in differences]
        lines += [f"  {refusal}" for refusal in self.refusals[:REFUSALS_MAX]]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class PossibleStates:
    """The outcomes of the last action; `action` is None before the first one. `before`: the states before it, `ended`:
    the calls that ended meanwhile."""

    outcomes: tuple[Outcome, ...]
    action: Action | None = None
    before: tuple[ClusterState, ...] = ()
    ended: Sequence[Ended] | None = None

    @classmethod
    def of(cls, state: ClusterState) -> PossibleStates:
        return cls((Outcome(state),))

    @property
    def states(self) -> frozenset[ClusterState]:
        return frozenset(outcome.state for outcome in self.outcomes)

    def guard(self, action: Action) -> str | None:
        """None when the action is legal in some possible state, else the guard that forbids it."""
        guards = [enabled(outcome.state, action) for outcome in self.outcomes]
        return None if None in guards else guards[0]

    def unreached(self, action: Action) -> str | None:
        """Why a request of a client reaches no node in any possible state, or None."""
        reasons = [why_unreached(outcome.state, action) for outcome in self.outcomes]
        return None if None in reasons else reasons[0]

    def after(self, action: Action, ended: Sequence[Ended] | None = None) -> PossibleStates:
        """All outcomes of the action. States in which a guard forbids it are impossible and removed.

        `ended`: the calls that were observed to end, in order, which avoids outcomes that `matching` would reject.
        Raises IllegalActionError when the action is forbidden in every state.
        """
        states = tuple(self._different())
        try:  # in nearly all cases all states allow it
            return PossibleStates(apply_to(states, action, ended), action, states, ended)
        except IllegalActionError:
            allowing = tuple(state for state in states if enabled(state, action) is None)
            if not allowing:
                raise
            return PossibleStates(apply_to(allowing, action, ended), action, allowing, ended)

    def _different(self) -> Iterable[ClusterState]:
        """The states, in order; there is usually one, which need not be hashed."""
        first = self.outcomes[0].state
        if len(self.outcomes) == 1:
            return (first,)
        return dict.fromkeys(outcome.state for outcome in self.outcomes)

    def matching(self, seen: Observation, traffic: Iterable[Traffic] | None = None) -> PossibleStates | Rejection:
        """Keep the outcomes that agree with the observation.

        `traffic` counts as a multiset, and without its UNREACHABLE calls, which cannot be observed; None: not observed.
        """
        calls = None if traffic is None else seen_calls(traffic)
        kept = tuple(outcome for outcome in self.outcomes if _agrees(outcome, seen, calls))
        if kept:
            return PossibleStates(kept, self.action)
        differences = sorted((_differences(each, seen, calls) for each in self.outcomes), key=len)
        nearest = tuple(each for each in differences if len(each) == len(differences[0]))
        return Rejection(self.action, len(self.outcomes), tuple(dict.fromkeys(nearest)), self._refusals(nearest))

    def _refusals(self, nearest: Iterable[tuple[Difference, ...]]) -> tuple[Refusal, ...]:
        """The guards that were false for the differences: the action is applied once more to a watched profile."""
        if self.action is None:
            return ()
        found: list[Refusal] = []
        for state in self.before:
            plan = replace(state.plan, profile=watched(state.plan.profile, found))
            apply_to((replace(state, plan=plan),), self.action, self.ended)
        places = {
            (node, each.client) for differences in nearest for each in differences for node in (each.node, each.peer)
        }
        return tuple(
            each
            for each in dict.fromkeys(found)
            if not {(each.node, each.client), (each.node, None)}.isdisjoint(places)
        )


def _agrees(outcome: Outcome, seen: Observation, traffic: Counter[Traffic] | None) -> bool:
    return observe(outcome.state) == seen and (traffic is None or seen_calls(outcome.traffic) == traffic)


def _differences(outcome: Outcome, seen: Observation, traffic: Counter[Traffic] | None) -> tuple[Difference, ...]:
    possible = observe(outcome.state)
    found = [
        difference
        for node in sorted({*possible, *seen})
        for difference in _at_node(node, possible.get(node), seen.get(node))
    ]
    if traffic is not None:
        expected = seen_calls(outcome.traffic)
        missing, unexpected = expected - traffic, traffic - expected
        found += _answers(missing, unexpected)
        found += [_call(call, count, _NOT_SENT, _SENT) for call, count in missing.items()]
        found += [_call(call, count, _SENT, _NOT_SENT) for call, count in unexpected.items()]
    return tuple(found)


def _answers(missing: Counter[Traffic], unexpected: Counter[Traffic]) -> list[Difference]:
    """Calls that were sent as expected and ended otherwise are one difference, at the node that received them; they are
    removed from both."""
    found = []
    for call in list(missing):
        alike = (each for each in unexpected if each.request == call.request and unexpected[each] == missing[call])
        if (seen := next(alike, None)) is not None:
            del missing[call], unexpected[seen]
            field = f"the answer to {call._replace(client=None).request}"
            found.append(Difference(call.target, call.client, field, call.outcome, seen.outcome))
    return found


def _at_node(node: str, possible: Mapping[str, View] | None, seen: Mapping[str, View] | None) -> Iterable[Difference]:
    if possible is None or seen is None:
        if possible is not seen:
            yield Difference(node, None, "the node", _running(possible), _running(seen))
        return
    for client in sorted({*possible, *seen}):
        expected, found = possible.get(client), seen.get(client)
        if expected is None or found is None:
            yield Difference(node, client, "the client", _known(expected), _known(found))
            continue
        if expected.revision != found.revision:
            yield Difference(node, client, "revision", str(expected.revision), str(found.revision))
        if expected.content != found.content:
            yield Difference(node, client, "content", text_of(expected.content), text_of(found.content))


def _running(view: Mapping[str, View] | None) -> str:
    return "down" if view is None else "up"


def _known(view: View | None) -> str:
    return "unknown" if view is None else f"there at revision {view.revision} with {text_of(view.content)}"


def _call(call: Traffic, count: int, seen: str, possible: str) -> Difference:
    times = "" if count == 1 else f" {count} times"
    return Difference(call.source, call.client, f"{call}{times}", possible, seen, call.target)
