"""Nodes and model side by side: after every action, what the nodes hold and said must be possible in the model.

The model answers with the *set* of states that the action may lead to; the observation narrows it, and an empty set is
a divergence that names what differed. What queries and pushes show is not in the model: it must be what the node holds
(`service_lists.py`). Hypothesis drives this (`machine.py`), and so does the replay of a scenario.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from distro_conformance.drivers.embedded_run import EmbeddedRun
from distro_conformance.drivers.service_lists import PUSHED_WITHIN_MS, projection, same_lists, wrong_lists
from distro_conformance.node.player import RefusedError
from distro_impl import WorkFailedError
from distro_model.actions import (
    Action,
    Advance,
    Connect,
    Cut,
    Deregister,
    Disconnect,
    Drop,
    Heal,
    Hold,
    Register,
    Swallow,
)
from distro_model.clock import start
from distro_model.clockwork import prologue
from distro_model.possible import Observation, PossibleStates, Rejection
from distro_model.profiles import profile_named
from distro_traces.ndjson import Recorder

LONG_MS = 2_000
"""An advance of so long leaves time to see that nothing changes any more, and that subscribers were told."""


class DivergedError(AssertionError):
    """The nodes did what the model does not allow. The text says which action, and what differed."""

    def __init__(self, action: Action, at_ms: int, reason: Rejection | str) -> None:
        super().__init__(f"at {at_ms} ms {reason}")
        self.action = action
        self.reason = reason


class Lockstep:
    """A run on embedded nodes with the model as its oracle. `mutant` changes the nodes, never the model."""

    def __init__(
        self,
        nodes: Sequence[str],
        profile: str,
        mutant: str | None = None,
        recorder: Recorder | None = None,
        *,
        compare: bool = True,
    ) -> None:
        """With `compare` False the model only says which actions make sense."""
        self._compare = compare
        self._nodes = tuple(nodes)
        self.profile = profile_named(profile)
        self._possible = PossibleStates.of(start(nodes, self.profile))
        self._run = EmbeddedRun(nodes, profile, mutant, recorder)
        self._last_seen: Observation = {}
        self._zero_ms = 0
        try:
            for action in prologue(nodes, self.profile):
                self.perform(action)
        except BaseException:
            self.close()
            raise
        self._zero_ms = self._run.now_ms()

    def now_ms(self) -> int:
        """Time since the nodes were up, loaded and quiet."""
        return self._run.now_ms() - self._zero_ms

    def forbidden(self, action: Action) -> str | None:
        """Why the action makes no sense now, or None."""
        return self._possible.guard(action)

    @property
    def is_at_rest(self) -> bool:
        """All nodes hold the same, and none of them still has to load: nothing is left to repair."""
        held = [*self._last_seen.values()]
        nodes = [node for state in self._possible.states for node in state.nodes]
        return all(each == held[0] for each in held) and all(node is not None and node.loaded for node in nodes)

    def perform(self, action: Action) -> None:
        """Do it on both sides and compare. Raises DivergedError, also when a node breaks or refuses what is legal."""
        hearing, timers_fired = self._hearing(action), self._run.timers_fired
        try:
            pushed = self._perform(action)
        except (WorkFailedError, RefusedError) as error:
            raise DivergedError(action, self.now_ms(), f"after `{action}` {error}") from error
        possible = self._possible.after(action)
        if not self._compare:
            self._possible = possible
            return
        if isinstance(action, Advance) and self._run.timers_fired == timers_fired:
            hearing = ()  # time has passed, and nothing was due
        seen = {**self._last_seen, **self._run.observe(hearing)}
        after = possible.matching(seen, self._run.take_traffic())
        if isinstance(after, Rejection):
            raise DivergedError(action, self.now_ms(), after)
        self._possible = after
        self._compare_lists(action, seen, pushed)

    def _hearing(self, action: Action) -> Sequence[str]:
        """The nodes that can hear of it before time passes. What the others held they still hold.

        One that changes all the same is seen as soon as time has passed, or somebody has spoken to it.
        """
        match action:
            case Heal() | Hold() | Drop() | Swallow():
                return ()
            case Cut(source=source):  # what it still waited for has ended
                return (source,)
            case Connect(node=node):
                return (node,)
            case Register(client=client) | Deregister(client=client) | Disconnect(client=client):
                return (self._run.node_of(client),)
            case _:
                return self._nodes

    def _perform(self, action: Action) -> Observation | None:
        """Where the action leaves time for a push: what nodes with subscribers held before the last such time."""
        if not self._compare or not isinstance(action, Advance) or action.ms < LONG_MS:
            self._run.perform(action)
            return None
        self._run.perform(Advance(action.ms - PUSHED_WITHIN_MS))
        seen = self._run.observe(self._run.subscribed)
        self._run.perform(Advance(PUSHED_WITHIN_MS))
        return seen

    def _compare_lists(self, action: Action, seen: Observation, before: Observation | None) -> None:
        """A node's lists are looked at when its content changed, all of them and the pushes after a long while."""
        changed = [node for node in seen if before is not None or not same_lists(seen[node], self._last_seen.get(node))]
        wrong = wrong_lists(seen, self._run.shown(changed), "shows")
        if wrong is None and before is not None:
            calm = {node: seen[node] for node, held in before.items() if same_lists(seen[node], held)}
            wrong = self._run.wrong_pushes({node: projection(held) for node, held in calm.items()})
        if wrong is not None:
            raise DivergedError(action, self.now_ms(), f"after `{action}` {wrong}")
        self._last_seen = seen

    def observe(self) -> Observation:
        return self._run.observe(self._nodes)

    def checkpoint(self) -> None:
        self._run.checkpoint()

    def close(self) -> None:
        self._run.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
