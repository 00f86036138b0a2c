"""Sending a change: delay task, merge, execution, call, and the retry of a failure.

There is one pending task for each (client, target). The merge rule and the retry are where DELETEs are lost (B24), so
they are defined here one guard at a time. Tasks are executed by workers, and in a real server several clients share
one. A worker does not wait for the result of what it has sent, so sharing makes no difference, and each (client,
target) has a separate worker here.
"""

from __future__ import annotations

from distro_model.events import CallEnded, Send, TaskDue
from distro_model.messages import CallResult, Change, Delete
from distro_model.node import Action, Client, MemberState, NodeState, Step, Task
from distro_model.profile import Profile
from distro_model.rules.owners import is_ip_client, owner_of
from distro_model.rules.rule import guard, instead_of, rule


@rule("announce", source="sync-announce; DistroClientDataProcessor.syncToAllServer")
def announced(node: NodeState, client: str, action: Action, at_ms: int, profile: Profile) -> NodeState:
    """Queue the action for every other member, to run after the sync delay."""
    for target in node.others:
        node = queued(node, Task(client, target, action, at_ms, delay_ms(node.task(client, target), profile)), profile)
    return node


@rule("delay-a-change", source="sync-announce; DistroConfig")
def delay_ms(_: Task | None, profile: Profile) -> int:
    """A new change waits for the whole sync delay, however long a queued task has waited already."""
    return profile.sync_delay_ms


@rule("merge-tasks", source="sync-merge; NacosDelayTaskExecuteEngine, DistroDelayTask")
def queued(node: NodeState, task: Task, _: Profile) -> NodeState:
    """The newer task replaces the older one with its action and its own delay, but the delay counts from the older
    one."""
    pending = node.task(task.client, task.target)
    if pending is not None:
        task = Task(task.client, task.target, task.action, pending.since_ms, task.delay_ms)
    return node.with_task(task)


@rule("execute-a-task", source="sync-execute; DistroSyncChangeTask, DistroSyncDeleteTask")
def on_task_due(node: NodeState, event: TaskDue, profile: Profile) -> Step:
    """A CHANGE sends the current client, not the client at the time when the task was queued."""
    return executed(node, event, profile)


def executed(node: NodeState, event: TaskDue, profile: Profile) -> Step:
    task = node.task(event.client, event.target)
    if task is None:
        return Step(node)
    node = node.without_task(task)
    if not is_executed_for(node, event.target, profile) or not is_still_to_send(node, task, profile):
        return Step(node)
    request = _request_for(node, task, profile)
    if request is None:
        return Step(node)  # "null data to sync, skip": no call, no callback, no retry
    if not is_reachable(node, event.target, profile):
        return Step(retried(node, request, event.target, event.at_ms, profile))
    return sent(node, event.target, request, profile)


def sent(node: NodeState, target: str, request: Change | Delete, profile: Profile) -> Step:
    if not is_free_when_sent(profile):
        node = node.changed(under_way=tuple(sorted((*node.under_way, (request.client, target)))))
    return Step(node, (Send(target, request),))


def has_free_worker(node: NodeState, client: str, target: str, profile: Profile) -> bool:
    """The worker of such a task does not execute another one."""
    begun = (*((read.client, read.target) for read in node.reads), *node.under_way)
    return not begun or worker_of(client, target, profile) not in {worker_of(*each, profile) for each in begun}


@rule("choose-a-worker", source="sync-workers; NacosExecuteTaskExecuteEngine")
def worker_of(client: str, target: str, _: Profile) -> str:
    """Tasks of one client and target have one worker, and are executed one after the other."""
    return f"{client} {target}"


@guard(source="sync-workers; TaskExecuteWorker, GrpcConnection.asyncRequest")
def is_free_when_sent(_: Profile) -> bool:
    """A worker is free for the next task as soon as a request is sent, before it is answered."""
    return True


@guard(source="sync-execute")
def is_executed_for(node: NodeState, target: str, profile: Profile) -> bool:
    """A task for a node that has left the member list is dropped."""
    return has_member(node, target, profile)


@instead_of(is_executed_for)
def for_any_target(_node: NodeState, _target: str, _: Profile) -> bool:
    """A task for a node that has left the member list is executed nevertheless (B37)."""
    return True


@guard(source="sync-execute, owner-handover")
def is_still_to_send(node: NodeState, task: Task, profile: Profile) -> bool:
    """A task about an ip:port client that another node owns by now is dropped where the target has acknowledged all
    changes that the client requested from this node: the rest was concluded from beats that may have gone to that
    owner."""
    is_own = not is_ip_client(task.client) or owner_of(node, task.client, profile) == node.name
    return is_own or node.is_unacknowledged(task.client, task.target)


@instead_of(is_still_to_send)
def sent_by_a_former_owner(_node: NodeState, _task: Task, _: Profile) -> bool:
    """An announced change is sent, whichever node owns the client by then (B22)."""
    return True


@guard(source="sync-execute, defect-d13; ServerMemberManager.hasMember")
def has_member(node: NodeState, target: str, _: Profile) -> bool:
    """The node is in the member list."""
    return target in node.others


@instead_of(has_member)
def has_part_of_member(node: NodeState, target: str, _: Profile) -> bool:
    """A substring test takes 10.0.0.1:8848 for a member while 110.0.0.1:8848 is one (B37)."""
    return any(node.address_of(target) in node.address_of(member) for member in node.others)


def _request_for(node: NodeState, task: Task, profile: Profile) -> Change | Delete | None:
    if task.action is Action.DELETE:
        return Delete(task.client)
    client = node.client(task.client)
    return of_gone_client(task, profile) if client is None else copy_of(node, client, profile)


@rule("send-a-gone-client", source="sync-null-data, defect-d2; DistroClientDataProcessor.getDistroData")
def of_gone_client(task: Task, _: Profile) -> Delete | None:
    """A CHANGE task whose client is gone sends DELETE."""
    return Delete(task.client)


@instead_of(of_gone_client)
def skips_gone_client(_task: Task, _: Profile) -> Delete | None:
    """A CHANGE task whose client is gone is skipped silently: no call, no callback, no retry (B24)."""
    return None


def copy_of(node: NodeState, client: Client, profile: Profile) -> Change:
    """The content of a CHANGE: the whole client, but its revision only where the release has one on the wire."""
    revision = client.revision if profile.revisions_travel else 0
    return Change(client.name, revision, client.content, node.superseded_of(client.name) if node.superseded else ())


@guard(source="sync-only-up; DistroClientTransportAgent")
def is_reachable(node: NodeState, target: str, _: Profile) -> bool:
    """A node sends only to members that it believes UP: a sync to another fails without a request."""
    return target in node.others and node.member(target).state is MemberState.UP


@instead_of(is_reachable)
def reaches_all(_node: NodeState, _target: str, _: Profile) -> bool:
    """A node sends to every member to which it has a connection, believed UP or not."""
    return True


@rule("end-a-sync", source="sync-result, sync-retry; DistroClientTaskFailedHandler")
def on_sync_ended(node: NodeState, event: CallEnded, request: Change | Delete, profile: Profile) -> Step:
    """Every result except resultCode 200 is a failure, and every failure is retried."""
    if node.under_way:
        ended = (request.client, event.target)
        node = node.changed(under_way=tuple(each for each in node.under_way if each != ended))
    if event.answer.result is CallResult.SUCCESS:
        return Step(acknowledged(node, event.target, request))
    if not calls_back(event.answer.result, profile):
        return Step(node)
    return Step(retried(node, request, event.target, event.at_ms, profile))


@guard(source="sync-unreadable; GrpcConnection.asyncRequest")
def calls_back(_result: CallResult, _: Profile) -> bool:
    """The caller is notified of the end of every call."""
    return True


@instead_of(calls_back)
def drops_unreadable(result: CallResult, _: Profile) -> bool:
    """Where an answer cannot be read, or its type is unknown, an exception leaves the callback: the caller is not
    notified of the end (B42)."""
    return result not in (CallResult.UNREADABLE, CallResult.UNHEARD)


def acknowledged(node: NodeState, peer: str, request: Change | Delete) -> NodeState:
    """The peer has applied the request, or has sent it; its revision may be superseded meanwhile."""
    is_superseded = isinstance(request, Change) and (request.client, request.revision) in node.superseded
    if is_superseded or not node.is_unacknowledged(request.client, peer):
        return node
    return node.with_unacknowledged(each for each in node.unacknowledged if each != (request.client, peer))


def sent_until_acknowledged(node: NodeState, client: str, peer: str, at_ms: int, profile: Profile) -> NodeState:
    """Send the ip:port client to the peer, and repeat it even if another node owns it by then."""
    task = Task(client, peer, Action.CHANGE, at_ms, profile.sync_delay_ms)
    return queued(node.with_unacknowledged((*node.unacknowledged, (client, peer))), task, profile)


@rule("retry", source="sync-retry, defect-d2; DistroClientTaskFailedHandler")
def retried(node: NodeState, request: Change | Delete, target: str, at_ms: int, profile: Profile) -> NodeState:
    """Queue a failed sync again, after the retry delay."""
    if not replaces_pending(node.task(request.client, target), profile):
        return node
    return queued(
        node, Task(request.client, target, retry_action(request, profile), at_ms, profile.retry_delay_ms), profile
    )


@guard(source="sync-retry, defect-d2")
def replaces_pending(pending: Task | None, _: Profile) -> bool:
    """The retry of a failed sync does not replace a queued DELETE."""
    return pending is None or pending.action is not Action.DELETE


@instead_of(replaces_pending)
def replaces_anything(_pending: Task | None, _: Profile) -> bool:
    """The retry replaces any queued task, a DELETE too (B24)."""
    return True


@rule("choose-the-action-of-a-retry", source="sync-retry")
def retry_action(request: Change | Delete, _: Profile) -> Action:
    """A failed action is retried: a CHANGE as CHANGE, a DELETE as DELETE."""
    return Action.CHANGE if isinstance(request, Change) else Action.DELETE
