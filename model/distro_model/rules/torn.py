"""CHANGEs that are not made and not applied at once: the steps between which other requests come in (B05).

Only for profiles that say so. A receiver creates the client, puts one service after the other, removes those that were
not mentioned, and sets the revision; a sender reads the content, and then the revision. Each step looks at the client
as it is by then.
"""

from __future__ import annotations

from dataclasses import replace

from distro_model.events import ApplyDue, ReadDue, Reply, RequestReceived, Send, TaskDue
from distro_model.messages import FAIL, SUCCESS, Change, Content
from distro_model.node import Client, NodeState, Step, Task
from distro_model.profiles import Profile, TakesRevision
from distro_model.rules.ip_clients import is_superseded
from distro_model.rules.notify import upgraded
from distro_model.rules.receive import is_poisoned, is_refused, raised
from distro_model.rules.rule import rule
from distro_model.rules.sync import is_reachable, retried
from distro_model.work import Apply, Read


@rule("CHANGE begun", source="wire-protocol.md 6.4; B05; DistroClientDataProcessor.handlerClientSyncData")
def on_change(node: NodeState, event: RequestReceived, change: Change, profile: Profile) -> Step:
    """The client is created if it is unknown; everything else is left to the steps. There is no reply yet."""
    if is_refused(node, change.client, profile) or is_superseded(node, event.source, change):
        return Step(node, (Reply(FAIL),))
    if is_poisoned(node, change, profile):
        return raised(node, profile)
    if node.client(change.client) is None:
        node = node.with_client(
            Client(change.client, profile.replicas_are_native, change.revision, (), renewed_ms=event.at_ms)
        )
    return Step(_with_apply(node, Apply(event.source, change.client, change.revision, change.content)))


@rule("CHANGE applied in part", source="wire-protocol.md 6.4; B05; DistroClientDataProcessor.upgradeClient")
def on_apply_due(node: NodeState, event: ApplyDue, profile: Profile) -> Step:
    apply = event.apply
    node = _without_apply(node, apply)
    if is_refused(node, apply.client, profile):
        return Step(node, (Reply(FAIL),))
    held = node.client(apply.client)
    is_last = apply.done > len(apply.content)
    if held is not None:  # else its steps go into an object that nobody finds any more
        after = (
            _revised(held, apply, event.at_ms, profile)
            if is_last
            else replace(held, content=_content_after(held.content, apply))
        )
        node = upgraded(node.with_client(after), after, held.content, event.at_ms, profile)
    return Step(node, (Reply(SUCCESS),)) if is_last else Step(_with_apply(node, replace(apply, done=apply.done + 1)))


def _content_after(content: Content, apply: Apply) -> Content:
    """Put the next service of the CHANGE; after the last of them, remove those that it does not mention."""
    if apply.done < len(apply.content):
        service, instance = apply.content[apply.done]
        return tuple(sorted({**dict(content), service: instance}.items()))
    mentioned = dict(apply.content)
    return tuple(pair for pair in content if pair[0] in mentioned)


def _revised(held: Client, apply: Apply, at_ms: int, profile: Profile) -> Client:
    revision = apply.revision if profile.takes_revision is TakesRevision.ALWAYS else held.revision
    return replace(held, revision=revision, renewed_ms=at_ms if profile.sync_renews_lease else held.renewed_ms)


@rule(
    "content read",
    source="wire-protocol.md 6.2; B05; DistroClientDataProcessor.getDistroData",
)
def on_change_due(node: NodeState, event: TaskDue, task: Task, client: Client) -> Step:
    read = Read(client.name, event.target, client.revision, client.content)
    return Step(replace(node.without_task(task), reads=tuple(sorted((*node.reads, read)))))


@rule("revision read", source="wire-protocol.md 6.2; B05; AbstractClient.generateSyncData")
def on_read_due(node: NodeState, event: ReadDue, profile: Profile) -> Step:
    """The content as it was, with the revision as it is."""
    read = event.read
    position = node.reads.index(read)
    node = replace(node, reads=(*node.reads[:position], *node.reads[position + 1 :]))
    client = node.client(read.client)
    change = Change(read.client, read.revision if client is None else client.revision, read.content)
    if not is_reachable(node, read.target, profile):
        return Step(retried(node, change, read.target, event.at_ms, profile))
    return Step(node, (Send(read.target, change),))


def _with_apply(node: NodeState, apply: Apply) -> NodeState:
    return replace(node, applies=tuple(sorted((*node.applies, apply))))


def _without_apply(node: NodeState, apply: Apply) -> NodeState:
    position = node.applies.index(apply)
    return replace(node, applies=(*node.applies[:position], *node.applies[position + 1 :]))
