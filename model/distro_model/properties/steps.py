"""Checks of one step of one node, independent of other nodes.

`alarms` gets a node before and after an event, with its answer and the messages that it sent. Each function below
checks one property, whatever the others find.
"""

from __future__ import annotations

from collections.abc import Sequence

from distro_model.events import (
    Arrived,
    CallEnded,
    ClientConnected,
    Event,
    HandlingRaised,
    LeaseCheckDue,
    LoadDue,
    LocalEventDue,
    RequestReceived,
    SetupFinished,
    TaskDue,
    UnknownReceived,
)
from distro_model.local_events import ClientChanged, ClientRemoved, ClientVerifyFailed
from distro_model.messages import Answer, CallResult, Change, Delete, Request, Snapshot, Verify
from distro_model.node import Action, Client, MemberState, NodeState, Task
from distro_model.profiles import STRICT, Profile
from distro_model.rules.owners import is_ip_client, owner_of
from distro_model.search.system import Finding

Sent = Sequence[tuple[str, Request]]
"""Pairs (target, request)."""


def alarms(
    before: NodeState,
    event: Event,
    after: NodeState,
    answer: Answer | None,
    sent: Sent = (),
    profile: Profile = STRICT,
) -> tuple[Finding, ...]:
    """All findings of this step: one finding does not hide another."""
    found: list[Finding | None] = [
        _of_load(before, event, after),
        _verifies_unready(before, sent),
        sent_by_non_owner(before, event, after, sent),
    ]
    match event:
        case RequestReceived() | HandlingRaised() | UnknownReceived():
            found += _of_arrival(before, event, after, answer)
        case CallEnded():
            found += (_touched_native(before, after), _given_up(event, after), _misaimed(before, event, after))
        case TaskDue():
            found.append(task_alarm(before, event, after, sent, profile))
        case _:
            found.append(late(before, event, after))
    return tuple(filter(None, found))


def _of_arrival(
    before: NodeState, event: Arrived, after: NodeState, answer: Answer | None
) -> tuple[Finding | None, ...]:
    touched = _touched_native(before, after)
    if answer is None:
        return (touched,)
    if answer.result is not CallResult.SUCCESS:
        return (touched, _renewed(before, event, after), _unknown_delete(before, event))
    return (touched, _unapplied(event, after), _gives_unready(before, event))


def late(before: NodeState, event: Event, after: NodeState) -> Finding | None:
    """INV-DELAY: a fresh change is due when the sync delay is over. In a search that delay is 0, and the delay of a
    retry is not."""
    for client in _announced(before, event, after):
        for target in after.others:
            task = after.task(client, target)
            if task is not None and task.delay_ms > 0:
                what = f"{after.name} lets the change of {client} wait for {target} as long as the retry before it"
                return Finding("INV-DELAY", what)
    return None


def _announced(before: NodeState, event: Event, after: NodeState) -> Sequence[str]:
    """The clients whose change this step announces, whatever caused it. A change whose event waits in a queue is
    announced when that event is handled."""
    match event:
        case LocalEventDue(event=ClientChanged(client) | ClientRemoved(client, native=True)):
            return (client,)
        case LeaseCheckDue() | ClientConnected() | SetupFinished():
            return ()  # an expired copy is not announced, nor is a client that publishes nothing yet
    if before.clients is after.clients:
        return ()
    held = {each.name for each in (*after.clients, *before.clients) if each.native or is_ip_client(each.name)}
    unannounced = {each.client for each in after.local.events if isinstance(each, ClientChanged | ClientRemoved)}
    unannounced.update(after.unannounced)
    return [
        name for name in sorted(held) if name not in unannounced and _differ(before.client(name), after.client(name))
    ]


def _differ(one: Client | None, other: Client | None) -> bool:
    if one is None or other is None:
        return one is not other
    return (one.content, one.revision) != (other.content, other.revision)


def _renewed(before: NodeState, event: Arrived, after: NodeState) -> Finding | None:
    for client in before.clients:
        held = after.client(client.name)
        if held is not None and held.renewed_ms > client.renewed_ms:
            return Finding("INV-RENEW", f"{after.name} refused {event.request}, and renewed {client.name} nevertheless")
    return None


def _unknown_delete(before: NodeState, event: Arrived) -> Finding | None:
    if not isinstance(event, RequestReceived) or not isinstance(event.request, Delete):
        return None
    if before.client(event.request.client) is not None:
        return None
    return Finding("INV-GONE", f"{before.name} refuses {event.request}, and does not hold it")


def _touched_native(before: NodeState, after: NodeState) -> Finding | None:
    """For a request that arrived, or for the end of one."""
    if before is after:
        return None
    for client in before.clients:
        held = after.client(client.name)
        if client.native and (held is None or (held.content, held.revision) != (client.content, client.revision)):
            now = "removed it" if held is None else f"has it at revision {held.revision}"
            return Finding("INV-NATIVE", f"{before.name} owns {client.name}, and after a peer's request {now}")
    return None


def _unapplied(event: Arrived, after: NodeState) -> Finding | None:
    match event.request:
        case Change(client, _, content):
            held = after.client(client)
            applied = held is not None and held.content == content
        case Delete(client):
            applied = after.client(client) is None
        case _:
            applied = True
    return None if applied else Finding("INV-ACK", f"{after.name} acknowledged {event.request} without applying it")


def _given_up(event: CallEnded, after: NodeState) -> Finding | None:
    if not _was_given_up(event, after):
        return None
    return Finding("INV-RETRY", f"{after.name} gave up {event.request} for {event.target} after {event.answer.result}")


def _misaimed(before: NodeState, event: CallEnded, after: NodeState) -> Finding | None:
    """The end of a call queues a task, or the event of a failed verify, for a member that it was not sent to.

    Not checked where events were waiting: a step that publishes to a full queue handles an earlier event. Nor after a
    snapshot: one that changes a native client violates INV-NATIVE, and its change is sent to every member.
    """
    if before is after or before.local.events or isinstance(event.request, Snapshot):
        return None
    if _work_for_others(before, event.target) == _work_for_others(after, event.target):
        return None
    return Finding("INV-AIM", f"{event.request} ended at {event.target}, and {before.name} queues a sync for another")


def _was_given_up(event: CallEnded, after: NodeState) -> bool:
    if event.answer.result is CallResult.SUCCESS or not isinstance(event.request, Change | Delete):
        return False
    return event.target in after.others and after.task(event.request.client, event.target) is None


def _work_for_others(node: NodeState, target: str) -> tuple[Task | ClientVerifyFailed, ...]:
    work: list[Task | ClientVerifyFailed] = [*node.tasks]
    work += (each for each in node.local.events if isinstance(each, ClientVerifyFailed))
    return tuple(each for each in work if each.target != target)


def _of_load(before: NodeState, event: Event, after: NodeState) -> Finding | None:
    if after.loaded and not before.loaded and isinstance(event, CallEnded):
        unanswered = event.answer.result not in (CallResult.SUCCESS, CallResult.FAIL)
        what = f"{before.name} counts as loaded after {event.answer.result} of {event.target}"
        return Finding("INV-LOAD", what) if unanswered else None
    if after.loaded and not before.loaded and isinstance(event, LoadDue) and after.others:
        return Finding("INV-LOAD", f"{before.name} counts as loaded before any member has answered")
    if after.loaded or after.asking is not None:
        return None
    if isinstance(event, LoadDue) and not after.others:
        return Finding("INV-LOAD", f"{after.name} is alone, and waits for a member to load from")
    if after.load_at_ms is None:
        return Finding("INV-LOAD", f"{after.name} is not loaded, and has stopped loading")
    starts = isinstance(event, LoadDue) and before.asking is None
    up = [member.name for member in before.members if member.state is MemberState.UP]
    if starts and up:
        return Finding("INV-LOAD", f"{after.name} starts its load and does not ask {up[0]}, which is UP")
    return None


def task_alarm(before: NodeState, event: Event, after: NodeState, sent: Sent, profile: Profile) -> Finding | None:
    """A task for a member is sent or retried; one for a node that has left is dropped (B37), and so may be one about an
    ip:port client of another owner, unless it carries a change that the client requested from this node."""
    if not isinstance(event, TaskDue):
        return None
    task = before.task(event.client, event.target)
    attempted = any(target == event.target for target, _ in sent)
    requeued = after.task(event.client, event.target) is not None
    if event.target not in after.others:
        if not attempted and not requeued:
            return None
        does = "sends" if attempted else "keeps"
        return Finding("INV-RETRY", f"{after.name} {does} a task for {event.target}, which is no member of its list")
    if task is None or attempted or requeued or len(after.reads) > len(before.reads):
        return None
    if task.action is Action.CHANGE and after.client(task.client) is None:
        return None  # a CHANGE whose client is gone is covered by INV-DELETE
    is_others = is_ip_client(task.client) and owner_of(before, task.client, profile) != before.name
    if is_others and not before.is_unacknowledged(task.client, task.target):
        return None
    return Finding("INV-RETRY", f"{after.name} dropped its {task.action} task of {task.client} for {task.target}")


def _verifies_unready(before: NodeState, sent: Sent) -> Finding | None:
    verify = None if before.loaded else next((request for _, request in sent if isinstance(request, Verify)), None)
    if verify is None:
        return None
    return Finding("INV-INIT", f"{before.name} is not loaded, and sends {verify}")


def _gives_unready(before: NodeState, event: Arrived) -> Finding | None:
    if before.loaded or not isinstance(event, RequestReceived) or not isinstance(event.request, Snapshot):
        return None
    return Finding("INV-INIT", f"{before.name} is not loaded, and gives a snapshot")


def sent_by_non_owner(before: NodeState, event: Event, after: NodeState, sent: Sent) -> Finding | None:
    """INV-SOURCE: a node sends the content of a client that it does not own. Ownership of `ip:port` clients is not
    covered."""
    if isinstance(event, LeaseCheckDue):
        begun = set(after.tasks) - set(before.tasks)
        if not all(is_ip_client(task.client) for task in begun):
            return Finding("INV-SOURCE", f"{after.name} announces what its lease check removed")
    for target, request in sent:
        held = after.client(request.client) if isinstance(request, Change | Verify) else None
        if held is not None and not held.native and not is_ip_client(held.name):
            return Finding("INV-SOURCE", f"{after.name} sends {request} to {target}, and does not own it")
    return None
