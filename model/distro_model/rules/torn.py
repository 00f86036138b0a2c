"""CHANGEs that are made or applied in several steps, between which other requests are handled (B05).

Only for profiles that do so. A receiver creates the client, puts one service after the other, removes those that were
not mentioned, and sets the revision; a sender reads the content, and then the revision. Each step uses the current
client.
"""

from __future__ import annotations

from dataclasses import replace

from distro_model.events import ApplyDue, ReadDue, Reply, RequestReceived, TaskDue
from distro_model.messages import FAIL, SUCCESS, Change, Content
from distro_model.node import Action, Client, NodeState, Step
from distro_model.profile import Profile
from distro_model.rules import receive, sync
from distro_model.rules.notify import upgraded
from distro_model.rules.receive import (
    created,
    is_applicable,
    is_not_deleted,
    is_not_native_here,
    may_take,
    raised,
    renews_lease,
    taken_content,
    taken_revision,
    with_beats,
)
from distro_model.rules.rule import instead_of, rule
from distro_model.rules.sync import executed, has_member, is_reachable, is_still_to_send, retried, sent
from distro_model.work import Apply, Read


@instead_of(receive.on_change)
def on_change(node: NodeState, event: RequestReceived, change: Change, profile: Profile) -> Step:
    """CHANGEs are applied service by service while other requests are handled, then the revision (B05).

    The client is created if it is unknown; everything else is left to the steps. There is no reply yet.
    """
    if not may_take(node, event.source, change, profile):
        return Step(node, (Reply(FAIL),))
    if not is_applicable(node, change, profile):
        return raised(node, profile)
    if node.client(change.client) is None:
        node = node.with_client(created(node, replace(change, content=()), event.at_ms, profile))
    return Step(_with_apply(node, Apply(event.source, change.client, change.revision, change.content)))


@rule("apply-a-part-of-a-change", source="receive-torn; DistroClientDataProcessor.upgradeClient")
def on_apply_due(node: NodeState, event: ApplyDue, profile: Profile) -> Step:
    """The next of its steps: put a service, remove those that were not mentioned, or set the revision."""
    apply = event.apply
    node = _without_apply(node, apply)
    if not (is_not_native_here(node, apply.client, profile) and is_not_deleted(node, apply.client, profile)):
        return Step(node, (Reply(FAIL),))
    held = node.client(apply.client)
    is_last = apply.done > len(apply.content)
    if held is not None:  # else its steps change an object that is no longer in the table
        if is_last:
            after = _revised(held, apply, event.at_ms, profile)
        else:
            after = replace(held, content=_content_after(held, apply, profile))
            after = with_beats(node, held, after, event.at_ms, profile)
        node = upgraded(node.with_client(after), after, held.content, event.at_ms, profile)
    return Step(node, (Reply(SUCCESS),)) if is_last else Step(_with_apply(node, replace(apply, done=apply.done + 1)))


def _content_after(held: Client, apply: Apply, profile: Profile) -> Content:
    """Put the next service of the CHANGE; after the last of them, remove those that it does not mention."""
    if apply.done < len(apply.content):
        put = taken_content(held, apply.content[apply.done : apply.done + 1], profile)
        return tuple(sorted({**dict(held.content), **dict(put)}.items()))
    mentioned = dict(apply.content)
    return tuple(pair for pair in held.content if pair[0] in mentioned)


def _revised(held: Client, apply: Apply, at_ms: int, profile: Profile) -> Client:
    revision = taken_revision(held, Change(apply.client, apply.revision, apply.content), profile)
    return replace(held, revision=revision, renewed_ms=at_ms if renews_lease(held, profile) else held.renewed_ms)


@instead_of(sync.on_task_due)
def on_task_due(node: NodeState, event: TaskDue, profile: Profile) -> Step:
    """The content of a CHANGE is read first, then the revision, in two steps (B05)."""
    task, client = node.task(event.client, event.target), node.client(event.client)
    if task is None or task.action is not Action.CHANGE or client is None:
        return executed(node, event, profile)
    if not (has_member(node, event.target, profile) and is_still_to_send(node, task, profile)):
        return executed(node, event, profile)
    read = Read(client.name, event.target, client.revision, client.content)
    return Step(replace(node.without_task(task), reads=tuple(sorted((*node.reads, read)))))


@rule("read-the-revision", source="sync-torn; AbstractClient.generateSyncData")
def on_read_due(node: NodeState, event: ReadDue, profile: Profile) -> Step:
    """The content that was read earlier, with the current revision."""
    read = event.read
    position = node.reads.index(read)
    node = node.changed(reads=(*node.reads[:position], *node.reads[position + 1 :]))
    client = node.client(read.client)
    revision = read.revision if client is None else client.revision
    revision = revision if profile.revisions_travel else 0
    change = Change(read.client, revision, read.content, node.superseded_of(read.client))
    if not is_reachable(node, read.target, profile):
        return Step(retried(node, change, read.target, event.at_ms, profile))
    return sent(node, read.target, change, profile)


def _with_apply(node: NodeState, apply: Apply) -> NodeState:
    return node.changed(applies=tuple(sorted((*node.applies, apply))))


def _without_apply(node: NodeState, apply: Apply) -> NodeState:
    position = node.applies.index(apply)
    return node.changed(applies=(*node.applies[:position], *node.applies[position + 1 :]))
