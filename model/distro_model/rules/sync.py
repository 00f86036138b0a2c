"""Sending a change: delay task, merge, execution, call, and the retry of what failed.

There is one pending task for each (client, target). The merge rule and the retry are where DELETEs get lost (B24), so
they are spelled out here one guard at a time. Worker queues cross clients in a real server (several clients share
one worker); the model executes every due task at once and therefore has no head-of-line blocking.
"""

from __future__ import annotations

from dataclasses import replace

from distro_model.events import CallEnded, Send, TaskDue
from distro_model.messages import CallResult, Change, Delete
from distro_model.node import Action, Client, MemberState, NodeState, Step, Task
from distro_model.profiles import Profile, RetryAction
from distro_model.rules.rule import rule


def announced(node: NodeState, client: str, action: Action, at_ms: int, profile: Profile) -> NodeState:
    """Queue the action for every other member, to run after the sync delay. Source: wire-protocol.md 6.1."""
    for target in node.others:
        node = queued(node, Task(client, target, action, at_ms, _delay_ms(node.task(client, target), profile)))
    return node


def _delay_ms(pending: Task | None, profile: Profile) -> int:
    if pending is None or not profile.fresh_change_waits_for_retry:
        return profile.sync_delay_ms
    return max(pending.delay_ms, profile.sync_delay_ms)


@rule("task merged", source="wire-protocol.md 6.2; NacosDelayTaskExecuteEngine, DistroDelayTask")
def queued(node: NodeState, task: Task) -> NodeState:
    """The newer task wins with its action and its own delay, but the clock keeps running from the older one."""
    pending = node.task(task.client, task.target)
    if pending is not None:
        task = Task(task.client, task.target, task.action, pending.since_ms, task.delay_ms)
    return node.with_task(task)


@rule("task executed", source="wire-protocol.md 6.2, 6.3; DistroSyncChangeTask, DistroSyncDeleteTask")
def on_task_due(node: NodeState, event: TaskDue, profile: Profile) -> Step:
    """A CHANGE sends the client as it is now, not as it was when the task was queued."""
    task = node.task(event.client, event.target)
    if task is None:
        return Step(node)
    node = node.without_task(task)
    if not (has_member(node, event.target, profile) or profile.sends_to_members_that_left):
        return Step(node)
    request = _request_for(node, task, profile)
    if request is None:
        return Step(node)  # "null data to sync, skip": no call, no callback, no retry
    if not is_reachable(node, event.target, profile):
        return Step(retried(node, request, event.target, event.at_ms, profile))
    return Step(node, (Send(event.target, request),))


@rule("sync ended", source="wire-protocol.md 5.4, 6.3; DistroClientTaskFailedHandler")
def on_sync_ended(node: NodeState, event: CallEnded, request: Change | Delete, profile: Profile) -> Step:
    """Everything but resultCode 200 is a failure, and every failure is retried."""
    result = event.answer.result
    if result is CallResult.SUCCESS:
        return Step(_heard(node, event.target, request) if node.superseded else node)
    if result is CallResult.ERROR and not profile.retries_unreadable:
        return Step(node)
    return Step(retried(node, request, event.target, event.at_ms, profile))


def _heard(node: NodeState, peer: str, request: Change | Delete) -> NodeState:
    """The peer has taken what was sent: it can still hold that revision of the client, and no earlier one."""
    revision = request.revision if isinstance(request, Change) else None
    kept = tuple(
        each
        for each in node.superseded
        if (each.client, each.peer) != (request.client, peer) or each.revision == revision
    )
    return replace(node, superseded=kept)


def copy_of(client: Client, profile: Profile) -> Change:
    """What travels of a client: everything, but its revision only where the release has one on the wire."""
    return Change(client.name, client.revision if profile.revisions_travel else 0, client.content)


def is_reachable(node: NodeState, target: str, profile: Profile) -> bool:
    """From 2.1.1 a node talks only to members that it believes UP (wire-protocol.md 6.3)."""
    if not profile.sends_only_to_up_members:
        return True
    return target in node.others and node.member(target).state is MemberState.UP


@rule("membership test", source="wire-protocol.md 6.3, 6.10 D13; ServerMemberManager.hasMember")
def has_member(node: NodeState, target: str, profile: Profile) -> bool:
    """B37: a test for a part of an address takes 10.0.0.1:8848 for a member while 110.0.0.1:8848 is one."""
    if not profile.matches_parts_of_addresses:
        return target in node.others
    return any(address_of(target) in address_of(member) for member in node.others)


def address_of(node: str) -> str:
    """Where the nodes of the model listen: that of b is a part of that of c, of d of that of e, and so on."""
    number = ord(node[-1]) - ord("a")
    return f"{'1' if number % 2 == 0 else ''}10.0.0.{(number + 1) // 2}:8848"


def _request_for(node: NodeState, task: Task, profile: Profile) -> Change | Delete | None:
    if task.action is Action.DELETE:
        return Delete(task.client)
    client = node.client(task.client)
    if client is not None:
        return copy_of(client, profile)
    return Delete(task.client) if profile.change_of_gone_client_deletes else None


def retried(node: NodeState, request: Change | Delete, target: str, at_ms: int, profile: Profile) -> NodeState:
    pending = node.task(request.client, target)
    if profile.retry_keeps_pending_delete and pending is not None and pending.action is Action.DELETE:
        return node
    always_change = profile.retry_action is RetryAction.ALWAYS_CHANGE
    action = Action.CHANGE if always_change or isinstance(request, Change) else Action.DELETE
    return queued(node, Task(request.client, target, action, at_ms, profile.retry_delay_ms))
