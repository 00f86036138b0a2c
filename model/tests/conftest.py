"""One small language for all tests of the timed model: a cluster that is up, and actions on it.

pytest imports test modules without making their directory importable (import mode `importlib`), so what several of
them use, as `mazes.py`, is put on the path here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from distro_model.actions import Action, Advance
from distro_model.clock.cluster import ClusterState, View, observe, prologue, start
from distro_model.clock.traffic import Traffic
from distro_model.messages import CallResult
from distro_model.possible import PossibleStates
from distro_model.profiles import Profile, profile_named

sys.path.insert(0, str(Path(__file__).parent))


class Lab:
    """A cluster in the timed mode. Where several outcomes are possible it follows the first, like one who saw it."""

    def __init__(self, profile: Profile, nodes: str) -> None:
        self.profile = profile
        self.possible = PossibleStates.of(start(nodes, profile))
        self.said: list[tuple[int, Traffic]] = []

    @property
    def state(self) -> ClusterState:
        return self.possible.outcomes[0].state

    def brought_up(self) -> Lab:
        """All nodes run and are loaded; time since then is `now_ms`."""
        self.do(*prologue(self.state.plan.names, self.profile))
        self.said.clear()
        self._zero_ms = self.state.now_ms
        return self

    def do(self, *actions: Action) -> Lab:
        for action in actions:
            self.possible = self.possible.after(action)
            self.possible = PossibleStates(self.possible.outcomes[:1])
            self.said += [(self.state.now_ms, call) for call in self.possible.outcomes[0].traffic]
        return self

    def run(self, ms: int) -> Lab:
        """Let time pass in small steps, so that `calls` knows when each one ended."""
        for _ in range(ms // 100):
            self.do(Advance(100))
        return self.do(Advance(ms % 100))

    def calls(self, pattern: str = "", since_ms: int = 0) -> list[tuple[int, str]]:
        """(time, text) of the finished calls whose text contains the pattern; time as in `now_ms`."""
        ended = [(at_ms - self._zero_ms, str(call)) for at_ms, call in self.said]
        return [(at_ms, text) for at_ms, text in ended if pattern in text and at_ms >= since_ms]

    def outcomes(self, pattern: str) -> list[CallResult]:
        return [call.outcome for _, call in self.said if pattern in str(call)]

    def view(self, node: str, client: str) -> View | None:
        held = observe(self.state)[node]
        assert held is not None, f"{node} is down"
        return held.get(client)

    def instance(self, node: str, client: str, service: str = "web") -> str | None:
        view = self.view(node, client)
        return None if view is None else dict(view.content).get(service)


@pytest.fixture
def cluster() -> Callable[..., Lab]:
    def brought_up(profile: str | Profile = "strict", nodes: str = "abc") -> Lab:
        return Lab(profile if isinstance(profile, Profile) else profile_named(profile), nodes).brought_up()

    return brought_up
