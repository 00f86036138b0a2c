"""The deadlines of a node's own actions about one client: send queued tasks, end a lease, check beats.

Each is the time of the release's own clocks, plus the delay that a node in real time may have. There is no deadline
where the node may be unable to act: its target may not have been reached, another may own the client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from distro_model.node import Action, NodeState, Task
from distro_model.outside.ip_clients import Alive, checked, is_publishing
from distro_model.outside.possible import Possible
from distro_model.outside.slack import Slack
from distro_model.outside.unexplained import request_text
from distro_model.profile import Profile

Reach = Callable[[str], int | None]
"""Peer -> since when it can certainly be reached, None where that is not certain."""


@dataclass(slots=True)
class Deadlines:
    """The facts besides the possible states of the node: times in ms, of the observer's clock."""

    client: str
    is_ip_client: bool
    profile: Profile
    slack: Slack
    reach: Reach
    alive: Alive = field(default_factory=dict)
    """The members that the node may believe; of a client of the HTTP API only."""
    believed_ms: int = 0
    """Since when."""
    published_ms: int = 0
    """When the client may still have published something."""
    touched_ms: int = 0
    """The time of the last event of the client."""

    def is_passed(self, state: Possible, now_ms: int) -> bool:
        return any(True for _ in self.overdue(state, now_ms))

    def overdue(self, state: Possible, now_ms: int) -> Iterator[str]:
        """The overdue event, as a clause."""
        for waiting in state.waiting:
            if waiting.until_ms is not None and waiting.until_ms < now_ms:
                yield f"{type(waiting.event).__name__} by {waiting.until_ms} ms"
        for unseen in state.unseen:
            if now_ms > unseen.at_ms + self.slack.skew_ms + self.slack.late_ms:
                yield f"{request_text(unseen.request)} to {unseen.target} by {unseen.at_ms + self.slack.skew_ms} ms"
        for task in state.node.tasks:
            by_ms = self._task_by_ms(state.node, task)
            if by_ms is not None and now_ms > by_ms:
                yield f"{task.action} {task.client} to {task.target} by {by_ms} ms"
        by_ms = self._expired_by_ms(state.node)
        if by_ms is not None and now_ms > by_ms:
            yield f"the end of the lease of {self.client} by {by_ms} ms"
        is_checked = self.is_ip_client and self.is_owner_known
        for from_ms, _ in checked(state.node, self.client, now_ms, self.profile) if is_checked else ():
            by_ms = max(from_ms, self._settled_ms(state.node)) + self._checks_ms
            if now_ms > by_ms:
                yield f"a check of the beats and the lease of {self.client} by {by_ms} ms"

    def may_expire(self, node: NodeState, now_ms: int) -> bool:
        lease_ms = self.profile.lease_ms - self.slack.skew_ms
        held = node.client(self.client)
        expires = held is not None and not held.native and now_ms - held.renewed_ms > lease_ms
        return expires or any(now_ms - since_ms > lease_ms for _, since_ms in node.gone)

    @property
    def is_owner_known(self) -> bool:
        """Otherwise immediate actions of the owner may be as late as its node detects that it is the owner."""
        return all(len(options) == 1 for options in self.alive.values())

    def _task_by_ms(self, node: NodeState, task: Task) -> int | None:
        """A task waits at most one tick; it may be due before it was queued, if it continues an older one. A task
        for a target that could not be reached is retried after the retry delay."""
        due_ms, reached_ms, profile = task.due_ms, self.reach(task.target), self.profile
        if reached_ms is None or not self.is_owner_known:
            return None
        if self.slack.skew_ms and task.action is Action.DELETE and not self._is_safe(task, reached_ms):
            return None
        again_ms = reached_ms + profile.retry_delay_ms + profile.call_timeout_ms if reached_ms else 0
        if self.is_ip_client:  # a check may have found it
            due_ms = max(due_ms, self._settled_ms(node) + profile.sync_delay_ms) + self._checks_ms
        return max(due_ms, again_ms, self.touched_ms) + 2 * profile.tick_ms + self.slack.late_ms

    def _is_safe(self, task: Task, reached_ms: int) -> bool:
        """A request to a member that could not be reached fails unseen, and its retry may take the place of a DELETE
        that was queued meanwhile (B24)."""
        return not reached_ms or reached_ms < task.since_ms - self.profile.call_timeout_ms - self.slack.late_ms

    def _settled_ms(self, node: NodeState) -> int:
        """The time from which the next check certainly has an effect: a client without instances is removed by a check
        after the one that has removed the last instance."""
        return self.believed_ms if is_publishing(node, self.client) else max(self.believed_ms, self.published_ms)

    @property
    def _checks_ms(self) -> int:
        """The delay that a check may have."""
        return self.profile.lease_check_ms + self.profile.tick_ms + self.slack.late_ms

    def _expired_by_ms(self, node: NodeState) -> int | None:
        held = node.client(self.client)
        if held is None or held.native or self.is_ip_client:
            return None
        return held.renewed_ms + self.profile.lease_ms + self._checks_ms
