"""A random walk run by Hypothesis, with any rules: actions are done one by one, and the end is reported."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from distro_conformance.drivers.lockstep import LostError
from distro_conformance.walks.stage import Stage
from distro_model.actions import Action, Advance, Disconnect

T = TypeVar("T", bound=Any)


SHORT_PAUSES_MS = (100, 300, 600, 1_000, 1_100)
"""Around the tick of 100 ms and the sync delay of a second."""

PAUSES_MS = (2_000, 3_100, 5_000) * 5 + (31_000,)
"""Around report, retry and verify; sometimes past the retry of a failed load."""

SYNC_MS = 1_100
"""The sync delay and a tick: changes have been sent by then."""


class Walk(RuleBasedStateMachine):
    """A run begins with `start` and ends with `on_end`, which receives the actions and the error that ended the run.

    When `start` returns None the run does nothing and passes: so Hypothesis ends when no more runs are wanted.
    """

    start: Callable[[], Stage | None]
    on_end: Callable[[list[Action], BaseException | None], None]
    beginnings: Sequence[Sequence[Action]] = ()

    def __init__(self) -> None:
        super().__init__()
        self.done: list[Action] = []
        self.failure: BaseException | None = None
        try:
            self.stage = type(self).start()
        except BaseException as error:  # the nodes do not start, or differ from the model at the start
            type(self).on_end(self.done, error)
            raise

    def note(self, action: Action) -> None:
        """Update the state of the rules: the action is about to be done."""

    def perform(self, action: Action) -> None:
        self.note(action)
        suited = self.stage.suited(action) if self.stage is not None else None
        if self.stage is None or suited is None or self.failure is not None:
            return
        self.done.append(suited)
        try:
            self.stage.perform(suited)
        except LostError as error:  # no later action is done
            self.failure = error
        except BaseException as error:
            self.failure = error
            raise

    def suits(self, action: Action) -> bool:
        """Whether the stage can do such actions."""
        return self.stage is not None and self.stage.suited(action) is not None

    def leave_after_sync(self, client: str, after_ms: int | None) -> None:
        """A change of the client has been sent; with `after_ms` the client leaves that much later."""
        self.perform(Advance(SYNC_MS))
        if after_ms:
            self.perform(Advance(after_ms))
        if after_ms is not None:
            self.perform(Disconnect(client))

    @rule(ms=st.sampled_from(SHORT_PAUSES_MS))
    def advance(self, ms: int) -> None:
        self.perform(Advance(ms))

    @rule(ms=st.sampled_from(PAUSES_MS))
    def advance_more(self, ms: int) -> None:
        self.perform(Advance(ms))

    def come_to_rest(self, stage: Stage) -> None:
        """After the last rule: repair all faults, and wait for their effects."""
        raise NotImplementedError

    def teardown(self) -> None:
        """Check safety first, then heal and require progress: views are compared only after the run is calm."""
        if self.stage is None:
            return
        try:
            if self.failure is None:
                self.come_to_rest(self.stage)
            if self.failure is None:  # else it failed on the way, and comes to rest when it is closed
                self.stage.checkpoint()
        except BaseException as error:
            self.failure = error
            raise
        finally:
            self._close(self.stage)

    def _close(self, stage: Stage) -> None:
        """In any case report the end of the run, so that it is counted: Hypothesis may repeat it."""
        try:
            stage.close()
        except BaseException as error:
            self.failure = self.failure or error
            raise
        finally:
            type(self).on_end(self.done, self.failure)


def draw(machine: type[Walk], seed: int, runs: int, steps: int, **members: Any) -> None:
    """Let Hypothesis draw this many walks, or some more; `members` of the class set their stage and their report."""
    profile = settings(
        max_examples=runs,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=Verbosity.quiet,
    )
    run_state_machine_as_test(hypothesis.seed(seed)(type("Walk", (machine,), members)), settings=profile)


def pick(choices: Collection[T], index: int) -> T:
    return sorted(choices)[index % len(choices)]
