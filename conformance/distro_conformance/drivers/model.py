"""The model as a cluster: no nodes run, and time is a number.

If several timers of a node are due at the same time, several states are possible.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations

from distro_conformance.drivers.cluster import CannotError, Cluster, Ends, VirtualTime
from distro_conformance.drivers.service_lists import projection
from distro_conformance.node.http_player import LIGHT_BEATS_ONLY, later_api
from distro_conformance.node.player import (
    BEAT_TAKEN,
    BEAT_UNKNOWN,
    OK,
    WRAPPED_OK,
    WRAPPED_UNKNOWN,
    ClientAnswer,
    RefusedError,
)
from distro_model.actions import (
    Action,
    Advance,
    BaseHttpRequest,
    HttpBeat,
    HttpLightBeat,
    Move,
    Restart,
    beyond_the_model,
)
from distro_model.clock.cluster import ClusterState, IllegalActionError, observe, prologue, start
from distro_model.clock.environment import unknown_to
from distro_model.messages import NO_SUCH_API, NOT_THE_OWNER, UNKNOWN_INSTANCE, Answer, CallResult, Operation, text_of
from distro_model.mutants import with_mutant
from distro_model.possible import Observation, PossibleStates
from distro_model.profile import Profile
from distro_model.profiles import beside_nodes, profile_named

BAD_REQUEST, NOT_FOUND, SERVER_ERROR = 400, 404, 500
WRAPPED_SERVER_ERROR = 30000
_QUIET = (Operation.VERIFY, CallResult.SUCCESS)


class ModelCluster(Cluster):
    """Raises UnknownMutantError when it starts; an action that a guard forbids raises CannotError."""

    one_release = "the model has one release for all nodes; reference nodes (embedded) have each their own"

    def __init__(self, mutant: str | None = None, lease_ms: int | None = None) -> None:
        self.names: tuple[str, ...] = ()
        self.links: tuple[Ends, ...] = ()
        self._at_ms = 0
        self.clock = VirtualTime(lambda: self._at_ms, self.perform)
        self._mutant, self._lease_ms = mutant, lease_ms
        self._profile: Profile | None = None
        self._states: PossibleStates
        self._last_event: str | None = None
        self._snapshot_sources: dict[str, set[str]] = {}
        self._later_api = "v2"

    def cannot(self, action: Action) -> str | None:
        if isinstance(action, HttpBeat) and action.by_v2 and self._later_api == "v3":
            return LIGHT_BEATS_ONLY
        unknown = None if self._profile is None else unknown_to(self._profile, action)
        return unknown or beyond_the_model(action)

    async def start(self, names: Sequence[str], profile: str, *, spare: Sequence[str] = ()) -> None:
        chosen = with_mutant(beside_nodes(profile_named(profile)), self._mutant)
        chosen = replace(chosen, lease_ms=self._lease_ms) if self._lease_ms else chosen
        self._profile, self._later_api = chosen, later_api(profile)
        self.names = tuple(sorted((*names, *spare)))
        self.links = tuple(permutations(self.names, 2))
        self._states = PossibleStates.of(start(names, chosen, spare=spare))
        for action in prologue(names, chosen):
            await self.perform(action)
        self.clock = VirtualTime(lambda: self._at_ms, self.perform)

    def forbidden(self, action: Action) -> str | None:
        """The reason why the action is impossible now, or None."""
        return self._states.guard(action)

    def unreached(self, action: Action) -> str | None:
        return self._states.unreached(action)

    def last_event(self) -> str | None:
        return self._last_event

    async def perform(self, action: Action) -> None:
        before = self._states.outcomes[0].state
        try:
            self._states = self._states.after(action)
        except IllegalActionError as error:
            raise CannotError(str(error)) from error
        match action:
            case Restart(started) | Move(_, started):
                self._snapshot_sources[started] = set()
        for outcome in self._states.outcomes:
            for call in outcome.traffic:
                if (call.operation, call.outcome) == (Operation.SNAPSHOT, CallResult.SUCCESS):
                    self._snapshot_sources.setdefault(call.source, set()).add(call.target)
        if isinstance(action, Advance):
            self._at_ms += action.ms
        self._note_events(before)
        answered = [each.answer for each in self._states.outcomes if each.answer is not None]
        if answered:
            self._note_answers(action, answered)

    def _note_events(self, before: ClusterState) -> None:
        """Note the events of the first possible state: calls that have ended, and changes of the state of nodes."""
        now = self._states.outcomes[0]
        calls = [str(call) for call in now.traffic if (call.operation, call.outcome) != _QUIET]
        events = [*calls, *_changes(observe(before), observe(now.state))]
        if events:
            self._last_event = f"{events[-1]} at {self.clock.now_ms() / 1000:.1f} s"

    def _note_answers(self, action: Action, answered: Sequence[Answer]) -> None:
        """Raises RefusedError if every possible state refuses it."""
        self.answers = tuple({answer_of_model(action, answer, self._later_api): None for answer in answered})
        refused = [each for each in self.answers if each.is_refused and not each.asks_to_register]
        if len(refused) == len(self.answers):
            raise RefusedError(f"'{action}' is answered with {refused[0]}", refused[0])

    async def observe(self) -> Sequence[Observation]:
        return [observe(state) for state in self._states.states]

    async def query(self, node: str, service: str) -> Sequence[tuple[str, ...]]:
        """The list that follows from the clients of the node, since the model has no lists of its own."""
        return [projection(held[node]).get(service, ()) for held in await self.observe()]

    async def subscribe(self, client: str, service: str) -> None:
        """Does nothing: pushes, too, follow from the clients of the node."""

    async def subscription(self, client: str, service: str) -> Sequence[tuple[str, ...]]:
        nodes = {home for state in self._states.states if (home := state.home(client)) is not None}
        return [shown for node in sorted(nodes) for shown in await self.query(node, service)]

    async def members(self, node: str) -> Sequence[Mapping[str, str]]:
        seen = []
        for state in self._states.states:
            held = state.node(node)
            if held is None:
                raise CannotError(f"{node} is down: it cannot be asked for the members")
            seen.append({**{each.name: each.state.value.upper() for each in held.members}, node: "UP"})
        return seen

    async def snapshot_sources(self, node: str) -> frozenset[str]:
        return frozenset(self._snapshot_sources.get(node, ()))

    async def checkpoint(self) -> None:
        """Does nothing, since the model is not recorded."""

    async def stop(self) -> None:
        """Does nothing, since no node runs."""


def _changes(before: Observation, now: Observation) -> Iterator[str]:
    """The differences between what nodes hold, as clauses."""
    for node, clients in now.items():
        earlier = before.get(node) or {}
        for client, view in (clients or {}).items():
            if view != earlier.get(client):
                yield f"{node} holds {client} with {text_of(view.content)}"
        for client in sorted(earlier.keys() - (clients or {}).keys()):
            yield f"{node} holds {client} no more"


def answer_of_model(action: Action, answer: Answer, later_api: str) -> ClientAnswer:
    """`later_api`: the version of the HTTP API that the release has beside version 1, v2 or v3."""
    api = later_api if isinstance(action, BaseHttpRequest) and action.by_v2 else "v1"
    is_refused = answer.result is not CallResult.SUCCESS
    return ClientAnswer(_code(action, answer, api), is_refused, answer.reason or str(answer.result))


def _code(action: Action, answer: Answer, api: str) -> int:
    is_beat = isinstance(action, HttpBeat | HttpLightBeat) and api != "v3"
    if answer.result is CallResult.SUCCESS:
        return BEAT_TAKEN if is_beat else WRAPPED_OK if api != "v1" else OK
    codes = {
        NOT_THE_OWNER: BAD_REQUEST,
        NO_SUCH_API: NOT_FOUND,
        UNKNOWN_INSTANCE: WRAPPED_UNKNOWN if api == "v3" else BEAT_UNKNOWN,
    }
    return codes.get(answer, SERVER_ERROR if api == "v1" else WRAPPED_SERVER_ERROR)
