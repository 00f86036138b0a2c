"""The model as a cluster: no nodes run, time is a number. Where timers of a node tie, several states are possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations

from distro_conformance.drivers.cluster import CannotError, Ends, VirtualTime
from distro_conformance.drivers.service_lists import projection
from distro_model.actions import Action, Advance, Move, Restart, beyond_the_model
from distro_model.clock.cluster import IllegalActionError, observe, prologue, start
from distro_model.clock.environment import unknown_to
from distro_model.messages import CallResult, Operation
from distro_model.mutants import with_mutant
from distro_model.possible import Observation, PossibleStates
from distro_model.profile import Profile
from distro_model.profiles import beside_nodes, profile_named


class ModelCluster:
    """Raises UnknownMutantError when it starts; an action that a guard forbids raises CannotError."""

    incomparable = None

    def __init__(self, mutant: str | None = None, lease_ms: int | None = None) -> None:
        self.names: tuple[str, ...] = ()
        self.links: tuple[Ends, ...] = ()
        self._at_ms = 0
        self.clock = VirtualTime(lambda: self._at_ms, self.perform)
        self._mutant, self._lease_ms = mutant, lease_ms
        self._profile: Profile | None = None
        self._states: PossibleStates
        self._givers: dict[str, set[str]] = {}

    def cannot(self, action: Action) -> str | None:
        unknown = None if self._profile is None else unknown_to(self._profile, action)
        return unknown or beyond_the_model(action)

    async def start(self, names: Sequence[str], profile: str, *, spare: Sequence[str] = ()) -> None:
        chosen = with_mutant(beside_nodes(profile_named(profile)), self._mutant)
        chosen = replace(chosen, lease_ms=self._lease_ms) if self._lease_ms else chosen
        self._profile = chosen
        self.names = tuple(sorted((*names, *spare)))
        self.links = tuple(permutations(self.names, 2))
        self._states = PossibleStates.of(start(names, chosen, spare=spare))
        for action in prologue(names, chosen):
            await self.perform(action)
        self.clock = VirtualTime(lambda: self._at_ms, self.perform)

    def forbidden(self, action: Action) -> str | None:
        """Why the action makes no sense now, or None."""
        return self._states.guard(action)

    async def perform(self, action: Action) -> None:
        try:
            self._states = self._states.after(action)
        except IllegalActionError as error:
            raise CannotError(str(error)) from error
        match action:
            case Restart(started) | Move(_, started):
                self._givers[started] = set()
        for outcome in self._states.outcomes:
            for call in outcome.traffic:
                if (call.operation, call.outcome) == (Operation.SNAPSHOT, CallResult.SUCCESS):
                    self._givers.setdefault(call.source, set()).add(call.target)
        if isinstance(action, Advance):
            self._at_ms += action.ms

    async def observe(self) -> Sequence[Observation]:
        return [observe(state) for state in self._states.states]

    async def query(self, node: str, service: str) -> Sequence[tuple[str, ...]]:
        """What follows from the client table, where the model ends."""
        return [projection(held[node]).get(service, ()) for held in await self.observe()]

    async def subscribe(self, client: str, service: str) -> None:
        """Nothing changes: what is pushed follows from the client table as well."""

    async def subscription(self, client: str, service: str) -> Sequence[tuple[str, ...]]:
        nodes = {home for state in self._states.states if (home := state.home(client)) is not None}
        return [shown for node in sorted(nodes) for shown in await self.query(node, service)]

    async def members(self, node: str) -> Sequence[Mapping[str, str]]:
        seen = []
        for state in self._states.states:
            held = state.node(node)
            if held is None:
                raise CannotError(f"{node} is down: nobody can ask it for the members")
            seen.append({**{each.name: each.state.value.upper() for each in held.members}, node: "UP"})
        return seen

    async def givers(self, node: str) -> frozenset[str]:
        return frozenset(self._givers.get(node, ()))

    async def checkpoint(self) -> None:
        """There is no recording."""

    async def stop(self) -> None:
        """Nothing runs."""
