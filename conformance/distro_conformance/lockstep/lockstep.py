"""Nodes and model side by side: after every action, what the nodes hold and said must be possible in the model.

The model answers with the *set* of states that the action may lead to; the observation narrows it, and an empty set is
a divergence that names what differed. Hypothesis drives this (`machine.py`), and so does the replay of a scenario.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from distro_conformance.lockstep.embedded_run import EmbeddedRun
from distro_model.actions import Action
from distro_model.cluster import start
from distro_model.possible import Observation, PossibleStates, Rejection
from distro_model.profiles import profile_named
from distro_model.timing import prologue
from distro_traces.ndjson import Recorder


class DivergedError(AssertionError):
    """The nodes did what the model does not allow. The text says which action, and what differed."""

    def __init__(self, action: Action, at_ms: int, rejection: Rejection) -> None:
        super().__init__(f"at {at_ms} ms {rejection}")
        self.action = action
        self.rejection = rejection


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
        self.profile = profile_named(profile)
        self._possible = PossibleStates.of(start(nodes, self.profile))
        self._run = EmbeddedRun(nodes, profile, mutant, recorder)
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

    def perform(self, action: Action) -> None:
        """Do it on both sides and compare. Raises DivergedError."""
        self._run.perform(action)
        possible = self._possible.after(action)
        if not self._compare:
            self._possible = possible
            return
        after = possible.matching(self._run.observe(), self._run.take_traffic())
        if isinstance(after, Rejection):
            raise DivergedError(action, self.now_ms(), after)
        self._possible = after

    def observe(self) -> Observation:
        return self._run.observe()

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
