"""A run of the bounded cluster on a clock: what each named choice of the explorer is when time passes by itself.

The explorer chooses when a timer fires; on a clock it fires when it is due. So a choice becomes an action or a wait: a
client acts, a queued task is waited for, a loss is armed before its request is sent, a late delivery becomes hold and
release. A `Walker` does that, one choice after another; what the choices leave open (how long to wait, which
deliveries are late) is decided by who drives it: `timing.py` for a counterexample, `walks.py` for any other walk.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from enum import Enum
from typing import Self

from distro_model.actions import Action, Advance, Drop, Hold, LoseReply, Release, Restart, Swallow
from distro_model.bounded.bounds import Bounds
from distro_model.clock.cluster import ClusterState, Outcome, apply, start
from distro_model.cluster.values import Phase
from distro_model.messages import Request, Snapshot, subject_of
from distro_model.profiles import Profile
from distro_model.transitions import (
    ClientActs,
    Delivers,
    InsideNode,
    LoadRuns,
    Loses,
    LosesReply,
    NodeFails,
    OnLink,
    Swallows,
    TaskRuns,
    TimesOut,
    Transition,
    VerifyRuns,
)

START_GAP_MS = 10
"""Nodes start so far apart that no two timers of different nodes ever fall into one instant."""

SETTLE_IN_MS = 1000
"""After the load of the first node, which finds nobody to load from and is loaded only when it has tried again."""


class NoTimesError(ValueError):
    """This run could not be repeated on a clock: it needs what actions cannot say, or no waiting times led there."""


class LostWayError(Exception):
    """The timed run is no longer where the explorer's was: what should happen next is not on its way."""


class Wait(Enum):
    """How long a client waits before it acts. What it does is queued when the thing named happens."""

    NOT = 0
    UNTIL_JUST_BEFORE_A_TIME_OUT = 1
    UNTIL_JUST_BEFORE_A_VERIFY = 2


def prologue(nodes: Sequence[str], profile: Profile) -> tuple[Action, ...]:
    """The common beginning of every timed run: all nodes up, loaded, and quiet."""
    starts = [action for node in nodes for action in (Restart(node), Advance(START_GAP_MS))]
    return (*starts, Advance(profile.load_retry_ms + SETTLE_IN_MS - START_GAP_MS * len(nodes)))


def unsayable(steps: Sequence[Transition]) -> str | None:
    """What no action says of these choices, or None."""
    for step in steps:
        match step:
            case InsideNode():
                return f"no action decides what goes on inside a node: {step}"
    return None


class Walker:
    """Does choices on a clock. All possible states are carried along; waits are computed from the first."""

    def __init__(self, bounds: Bounds, profile: Profile) -> None:
        """The nodes are up, loaded and quiet."""
        self.profile = profile
        self.clients = bounds.clients
        self.actions: tuple[Action, ...] = ()
        self.fixed = 0
        """So many of the actions stay as they are: no time is added to the last of them."""
        self.outcomes: tuple[Outcome, ...] = (Outcome(start(bounds.node_names, profile)),)
        for action in prologue(bounds.node_names, profile):
            self.do(action)
        self.actions = ()

    @property
    def state(self) -> ClusterState:
        return self.outcomes[0].state

    def fork(self) -> Self:
        """Another one in the same place."""
        return copy(self)

    def do(self, action: Action) -> None:
        """Times that follow each other become one, unless they are fixed. Raises IllegalActionError."""
        if isinstance(action, Advance) and action.ms == 0:
            return
        before = dict.fromkeys(outcome.state for outcome in self.outcomes)
        self.outcomes = tuple(outcome for state in before for outcome in apply(state, action))
        last = self.actions[-1] if len(self.actions) > self.fixed else None
        if isinstance(action, Advance) and isinstance(last, Advance):
            self.actions = (*self.actions[:-1], Advance(last.ms + action.ms))
        else:
            self.actions = (*self.actions, action)

    def take(self, step: Transition) -> None:
        """The action that a choice is, or the wait until it comes. Raises LostWayError and IllegalActionError."""
        self.do(Advance(self.wait_ms(step)))
        match step:
            case ClientActs(action):
                self.do(action)
            case NodeFails(action):
                self.do(action)
            case Delivers():
                if self.state.wire(step.source, step.target).held:
                    self.do(Release(step.source, step.target))

    def wait_ms(self, step: Transition) -> int:
        """How long until a timer or a time-out makes this choice; 0 for all others. Raises LostWayError."""
        match step:
            case TaskRuns(node, target, client):
                return self.wait_for_task_ms(node, target, client)
            case VerifyRuns(node):
                return self.wait_for_verify_ms(node)
            case LoadRuns(node):
                return self.wait_for_load_ms(node)
            case TimesOut():
                return self.wait_for_time_out_ms(step)
        return 0

    def arm(self, fate: OnLink) -> None:
        """What is to become of a request that is about to be sent: lost, swallowed, or held until it is released."""
        ends = fate.source, fate.target
        match fate:
            case Swallows():
                self.do(Swallow(*ends, str(fate.request.operation), self.named(fate.request)))
            case LosesReply():
                self.do(LoseReply(*ends, str(fate.request.operation), self.named(fate.request)))
            case Loses():
                self.do(Drop(*ends, str(fate.request.operation), self.named(fate.request)))
            case Delivers():
                self.hold(*ends)

    def hold(self, source: str, target: str) -> None:
        if not self.state.wire(source, target).held:
            self.do(Hold(source, target))

    def named(self, request: Request) -> str | None:
        """Whose request is meant, where it could be somebody else's."""
        return subject_of(request) if self.clients > 1 else None

    def wait_for_task_ms(self, node: str, target: str, client: str) -> int:
        """Until the first tick at which the task is due."""
        state = self.state.node(node)
        task = None if state is None else state.task(client, target)
        if state is None or task is None:
            return 0
        due_ms = max(task.due_ms, self.state.now_ms)
        return due_ms + (state.started_ms - due_ms) % self.profile.tick_ms - self.state.now_ms

    def wait_for_verify_ms(self, node: str) -> int:
        """Until the next multiple of its period since the node's start."""
        state = self.state.node(node)
        if state is None:
            raise LostWayError
        period_ms = self.profile.verify_interval_ms
        return period_ms - (self.state.now_ms - state.started_ms) % period_ms

    def wait_for_load_ms(self, node: str) -> int:
        state = self.state.node(node)
        if state is None or state.load_at_ms is None:
            raise LostWayError
        return state.load_at_ms - self.state.now_ms

    def wait_for_time_out_ms(self, step: TimesOut) -> int:
        waiting = [
            call.deadline_ms
            for call in self.state.link(step.source, step.target).calls
            if call.phase is Phase.LOST and call.request.operation is step.request.operation
        ]
        if not waiting:
            raise LostWayError
        return min(waiting) - self.state.now_ms

    def wait_before(self, client: str, wait: Wait) -> None:
        """Half a sync delay before the moment in question, so that what the client does is still queued then."""
        now_ms = self.state.now_ms
        match wait:
            case Wait.NOT:
                return
            case Wait.UNTIL_JUST_BEFORE_A_TIME_OUT:
                moments = [
                    call.deadline_ms
                    for link in self.state.links
                    for call in link.calls
                    if not isinstance(call.request, Snapshot)
                ]
            case Wait.UNTIL_JUST_BEFORE_A_VERIFY:
                home = self.state.home(client)
                owner = None if home is None else self.state.node(home)
                period_ms = self.profile.verify_interval_ms
                moments = [] if owner is None else [now_ms + period_ms - (now_ms - owner.started_ms) % period_ms]
        self.do(Advance(max(0, min(moments, default=now_ms) - self.profile.sync_delay_ms // 2 - now_ms)))
