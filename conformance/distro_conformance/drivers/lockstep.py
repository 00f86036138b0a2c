"""Nodes in lockstep with the model: after each action the model must allow the state and the messages of the nodes.

The model returns the *set* of states that the action may lead to. The observation of the nodes removes states from it.
If none is left the nodes have diverged, and the error names the difference. The model has no service lists: answers to
queries and pushes must have the instances that the node holds (`service_lists.py`). The caller uses it like any
cluster.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence

from distro_conformance.drivers.embedded import EmbeddedCluster
from distro_conformance.drivers.service_lists import PUSHED_WITHIN_MS, projection, same_lists, wrong_lists
from distro_conformance.node.player import RefusedError
from distro_conformance.verdict import KitError
from distro_conformance.wire.transports import IN_MEMORY, Wire
from distro_impl import WorkFailedError
from distro_model.actions import Action, Advance, BaseHttpRequest, Fault, ListMembers, Restart, beyond_the_model
from distro_model.clock.cluster import start
from distro_model.clock.instants import TooManyOutcomesError
from distro_model.messages import CallResult
from distro_model.possible import Observation, PossibleStates, Rejection
from distro_model.profiles import Profile, beside_nodes, profile_named
from distro_traces.ndjson import Recorder

Watch = Callable[[Profile], Profile]
"""The same profile, with an observer of its rules."""

LONG_MS = 2_000
"""An advance of this length leaves time to observe that nothing changes any more and that pushes were sent."""

REST_MS = 300_000
"""The time that diverged nodes get to agree: loads are repeated after 30 s, a client of the HTTP API without heartbeats
is removed after 75 s, and a copy that is not renewed expires after a lease of 180 s."""


class DivergedError(AssertionError):
    """The nodes did something that the model does not allow. The text names the action and the difference. `history`:
    the observations about the client and the members until then."""

    def __init__(self, action: Action, at_ms: int, reason: Rejection | str, history: Sequence[str] = ()) -> None:
        super().__init__(
            action, at_ms, reason, history
        )  # all arguments, so that the error can be sent to another process
        self.action, self.at_ms = action, at_ms
        self.reason, self.history = reason, history

    def __str__(self) -> str:
        return f"at {self.at_ms} ms {self.reason}"


class LostError(KitError):
    """The model cannot follow the nodes any further. Until then nodes and model agreed."""

    exit_code = 3


class LockstepCluster(EmbeddedCluster):
    """Nodes with the model as their oracle. `mutant` changes the nodes, never the model; `watch` may observe the
    model's rules (`distro_model.rules.watching`)."""

    incomparable = None
    one_release = "in lockstep with the model all nodes have one release"

    def __init__(
        self,
        mutant: str | None = None,
        recorder: Recorder | None = None,
        wire: Wire = IN_MEMORY,
        watch: Watch = lambda profile: profile,
        *,
        serves_http: bool = False,
        reports_events: bool = False,
    ) -> None:
        super().__init__(mutant, recorder, serves_http=serves_http, wire=wire, reports_events=reports_events)
        self._watch = watch
        self._possible: PossibleStates
        self._last_seen: Observation = {}

    def cannot(self, action: Action) -> str | None:
        return beyond_the_model(action) or super().cannot(action)

    async def start(self, names: Sequence[str], profile: str, *, spare: Sequence[str] = ()) -> None:
        """Raises DivergedError if the nodes differ from the model after the start."""
        chosen = self._watch(beside_nodes(profile_named(profile)))
        self._possible = PossibleStates.of(start(names, chosen, spare=spare))
        await super().start(names, profile, spare=spare)

    def forbidden(self, action: Action) -> str | None:
        """The reason why the action is impossible now, or None."""
        return self._possible.guard(action)

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing is left to repair: all nodes hold the same, and all are loaded."""
        held = [*self._last_seen.values()]
        return self.is_loaded and all(each == held[0] for each in held)

    @property
    def is_loaded(self) -> bool:
        return all(node is not None and node.loaded for state in self._possible.states for node in state.nodes)

    def excluded_from_walk(self, action: Action) -> str | None:
        """Excludes also a fault that is already armed for the same requests: many pending faults would outlast every
        quiet period."""
        if isinstance(action, Fault):
            meant = (action.operation, action.client)
            wires = [state.wire(action.source, action.target) for state in self._possible.states]
            if any((each.operation, each.client) == meant for wire in wires for each in wire.faults):
                return "armed already"
        return self.cannot(action)

    async def perform(self, action: Action) -> None:
        """Perform the action on the nodes and in the model, and compare. Raises LostError, and DivergedError, also if a
        node fails or refuses a legal request.

        The state of a node is read if the node reports a change; after a long wait the states of all nodes are read.
        """
        try:
            await self._perform_and_compare(action)
        except (WorkFailedError, RefusedError) as error:
            raise DivergedError(action, self.clock.now_ms(), f"after `{action}` {error}") from error
        except TooManyOutcomesError as error:
            raise LostError(f"after `{action}` the model cannot follow the nodes any more: {error}") from error

    async def rest(self) -> None:
        """Run the nodes without the model, which can no longer follow them. All faults are healed, the nodes get time
        to agree, and a checkpoint ends their trace."""
        self.clear_faults()
        all_names = tuple(sorted(self.names))
        for name in self.names:
            await super().perform(ListMembers(name, all_names))
            if name not in self.up:
                await super().perform(Restart(name))
        await super().perform(Advance(REST_MS))
        await self.checkpoint()

    async def _perform_and_compare(self, action: Action) -> None:
        began_ms = self.clock.now_ms()
        pushed = await self._on_nodes(action)
        ended = self.traffic.take(began_ms)
        possible = self._possible.after(action, ended)
        query = self.changed_state if pushed is None else self.held_by
        seen = {**self._last_seen, **await query(self.names)}
        after = possible.matching(seen, [each.call for each in ended])
        if isinstance(after, Rejection):
            raise DivergedError(action, self.clock.now_ms(), after)
        self._compare_answer(action, after)
        self._possible = after
        await self._compare_lists(action, seen, pushed)

    def _compare_answer(self, action: Action, possible: PossibleStates) -> None:
        """Raises DivergedError if a request over HTTP is refused although the model carries it out, or the reverse."""
        if not isinstance(action, BaseHttpRequest) or not self.answers:
            return
        expected = {each.answer.result is CallResult.SUCCESS for each in possible.outcomes if each.answer is not None}
        if self.answers[0].is_refused in expected and len(expected) == 1:
            answer = "carries it out" if True in expected else "refuses it"
            what = f"{action.node} answers '{action}' with {self.answers[0].detail}; the model {answer}"
            raise DivergedError(action, self.clock.now_ms(), what)

    async def _on_nodes(self, action: Action) -> Mapping[str, object] | None:
        """Perform the action. If it leaves time for a push, return by node with subscribers the number of its changes
        before that time. The content alone is not enough: an instance that is removed and registered again is pushed
        twice."""
        if not isinstance(action, Advance) or action.ms < LONG_MS:
            await self._asked(action)
            return None
        await super().perform(Advance(action.ms - PUSHED_WITHIN_MS))
        changes = {name: self._changes(name) for name in self.subscribed}
        await super().perform(Advance(PUSHED_WITHIN_MS))
        return changes

    async def _asked(self, action: Action) -> None:
        """A node may pass a request on to a node that does not see itself as the owner, and refuses it. Whether that is
        correct follows from the clients that the nodes hold afterwards."""
        with contextlib.suppress(*(RefusedError,) if isinstance(action, BaseHttpRequest) else ()):
            await super().perform(action)

    async def _compare_lists(self, action: Action, seen: Observation, before: Mapping[str, object] | None) -> None:
        """Compare the lists of nodes whose content changed; after a long wait all lists, and the pushes."""
        changed = [node for node in seen if before is not None or not same_lists(seen[node], self._last_seen.get(node))]
        shown = await self.shown(changed)
        wrong = wrong_lists(shown, {node: projection(seen[node]) for node in shown})
        if wrong is None and before is not None:
            calm = [node for node, changes in before.items() if self._changes(node) == changes]
            services = dict.fromkeys(self.clients.services, ())
            wrong = self.clients.wrong_push({node: {**services, **projection(seen[node])} for node in calm})
        if wrong is not None:
            raise DivergedError(action, self.clock.now_ms(), f"after `{action}` {wrong}")
        self._last_seen = seen
