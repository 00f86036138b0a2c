"""A random walk as Hypothesis runs it, whatever its rules are: actions are done one by one, and the end is reported."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol, TypeVar

from hypothesis.stateful import RuleBasedStateMachine

from distro_conformance.drivers.lockstep import DivergedError
from distro_model.actions import Action

T = TypeVar("T", bound=Any)


class Stage(Protocol):
    """What a walk is done on: nodes beside the model, a node among played members, or a cluster in its own time."""

    @property
    def is_at_rest(self) -> bool: ...

    @property
    def is_loaded(self) -> bool: ...

    def forbidden(self, action: Action) -> str | None: ...

    def suited(self, action: Action) -> Action | None:
        """The action as it is done here; None when it cannot be done."""
        ...

    def perform(self, action: Action) -> None: ...

    def checkpoint(self) -> None: ...

    def close(self) -> None: ...


class Walk(RuleBasedStateMachine):
    """A run begins with `start` and ends with `on_end`, which hears its actions and what ended it.

    When `start` gives None the run does nothing and passes: so Hypothesis comes to an end when nobody wants more.
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
        except DivergedError as error:  # the nodes do not even start as the model does
            type(self).on_end(self.done, error)
            raise

    def perform(self, action: Action) -> None:
        suited = self.stage.suited(action) if self.stage is not None else None
        if self.stage is None or suited is None:
            return
        self.done.append(suited)
        try:
            self.stage.perform(suited)
        except BaseException as error:
            self.failure = error
            raise

    def come_to_rest(self, stage: Stage) -> None:
        """After the last rule: what is broken is repaired, and whatever must come of it is waited for."""
        raise NotImplementedError

    def teardown(self) -> None:
        """First safety, then heal and demand progress: the run ends calm, and only then are views compared."""
        if self.stage is None:
            return
        try:
            if self.failure is None:
                self.come_to_rest(self.stage)
        except DivergedError as error:
            self.failure = error
            raise
        finally:
            self.stage.close()
            type(self).on_end(self.done, self.failure)


def pick(choices: Collection[T], index: int) -> T:
    return sorted(choices)[index % len(choices)]
