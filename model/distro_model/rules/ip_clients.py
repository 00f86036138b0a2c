"""Clients of the HTTP API: requests and beats, who handles them, and what happens when the beats stop.

A request may reach any node. The owner handles it; another node forwards it to whom it believes to be the owner, and
a forwarded request is never forwarded again. The revision is a hash of the content. Nodes forget such a client by
its silence: the owner finds an instance unhealthy, then removes it, then removes the empty client. In a release a
change is announced by whoever is the owner when its event is handled, which need not be who accepted it (B22).
"""

from __future__ import annotations

from dataclasses import replace

from distro_model.events import (
    AnnounceDue,
    BeatCheckDue,
    Forward,
    HttpAction,
    HttpEntered,
    HttpFinished,
    HttpReceived,
    Reply,
)
from distro_model.local_events import ClientChanged
from distro_model.messages import FAIL, SUCCESS, Change, Content
from distro_model.node import Action, Client, NodeState, Step, Superseded
from distro_model.profiles import Profile
from distro_model.rules.notify import published, reindexed, removed
from distro_model.rules.owners import content_revision, is_ip_client, is_responsible, owner_of, preference
from distro_model.rules.rule import rule
from distro_model.rules.sync import announced

UNHEALTHY = " (unhealthy)"


@rule("HTTP request", source="wire-protocol.md 6.6, 7.1; DistroFilter")
def on_http(node: NodeState, event: HttpReceived, profile: Profile) -> Step:
    owner = owner_of(node, event.client, profile)
    if owner == node.name:
        return Step(_carried_out(node, event, event.at_ms, profile), (Reply(SUCCESS),))
    return Step(node, (Reply(FAIL) if event.forwarded else Forward(owner),))


@rule("HTTP request begun", source="wire-protocol.md 6.7, known-bugs.md B30; clientConnected")
def on_http_entered(node: NodeState, event: HttpEntered, profile: Profile) -> Step:
    """The first request of a client has looked for it, found nothing, and has not created it yet."""
    request = event.request
    if owner_of(node, request.client, profile) != node.name or node.client(request.client) is not None:
        return Step(node)
    return Step(replace(node, entered=(*node.entered, request)))


@rule("HTTP request ended", source="wire-protocol.md 6.7, known-bugs.md B30; HealthCheckReactor.scheduleCheck")
def on_http_finished(node: NodeState, event: HttpFinished, profile: Profile) -> Step:
    """Where creation is "look, then put", a client that was created meanwhile is replaced, but not its beat check."""
    request = event.request
    node = replace(node, entered=tuple(each for each in node.entered if each != request))
    if not profile.creates_atomically and node.client(request.client) is not None:
        lost, anew = node.client(request.client), replace(_created(request.client, event.at_ms), watched=False)
        before = () if lost is None else lost.content
        node = reindexed(node.with_client(anew), anew, before, event.at_ms, profile)
    return Step(_carried_out(node, request, event.at_ms, profile), (Reply(SUCCESS),))


def _carried_out(node: NodeState, request: HttpReceived, at_ms: int, profile: Profile) -> NodeState:
    """A registration and a deregistration always count as a change; a beat only where it shows."""
    held = node.client(request.client)
    if held is None and request.action is HttpAction.DEREGISTER:
        return node
    client = held or _created(request.client, at_ms)
    content, beats = dict(client.content), dict(client.beats)
    if request.action is HttpAction.DEREGISTER:
        content.pop(request.service, None)
        beats.pop(request.service, None)
    else:
        beats[request.service] = at_ms
        known = content.get(request.service, "").removesuffix(UNHEALTHY)
        content[request.service] = known if known and request.action is HttpAction.BEAT else request.instance
    after = replace(client, content=_sorted(content), beats=tuple(sorted(beats.items())))
    if request.action is HttpAction.BEAT and after.content == client.content:
        return node.with_client(after)
    if request.action is not HttpAction.BEAT or request.service not in dict(client.content):
        after = replace(after, revision=content_revision(after.name, after.content))
    else:
        after = _health_changed(after, profile)
    return _changed(node, held, after, at_ms, profile)


def _created(name: str, at_ms: int) -> Client:
    return Client(name, native=False, revision=content_revision(name, ()), content=(), renewed_ms=at_ms)


def _sorted(content: dict[str, str]) -> Content:
    return tuple(sorted(content.items()))


def _health_changed(client: Client, profile: Profile) -> Client:
    """B06: where only a registration computes the revision anew, other content goes by the same one."""
    if not profile.health_changes_revision:
        return client
    return replace(client, revision=content_revision(client.name, client.content))


def _changed(node: NodeState, before: Client | None, after: Client, at_ms: int, profile: Profile) -> NodeState:
    node = reindexed(node.with_client(after), after, () if before is None else before.content, at_ms, profile)
    if not profile.hands_over:
        return node if after.name in node.unannounced else replace(node, unannounced=(*node.unannounced, after.name))
    replaced = () if before is None else tuple(Superseded(after.name, peer, before.revision) for peer in node.others)
    known = {*node.superseded, *replaced}
    kept = (each for each in known if (each.client, each.revision) != (after.name, after.revision))
    node = replace(node, superseded=tuple(sorted(kept, key=lambda each: (each.client, each.peer, each.revision))))
    return published(node, ClientChanged(after.name), at_ms, profile)


@rule("change event handled", source="wire-protocol.md 6.1; DistroClientDataProcessor.syncToAllServer")
def on_announce_due(node: NodeState, event: AnnounceDue, profile: Profile) -> Step:
    """Only where changes are announced late: who is not responsible by now drops it (B22)."""
    node = replace(node, unannounced=tuple(each for each in node.unannounced if each != event.client))
    held = node.client(event.client)
    if held is None or not is_responsible(node, held, profile):
        return Step(node)
    return Step(announced(node, event.client, Action.CHANGE, event.at_ms, profile))


def is_superseded(node: NodeState, source: str, change: Change) -> bool:
    """The peer sends what was replaced by a change accepted here, of which it has not heard yet."""
    return Superseded(change.client, source, change.revision) in node.superseded


@rule("beat check", source="wire-protocol.md 6.7; ClientBeatCheckTaskV2, EphemeralIpPortClientManager")
def on_beat_check_due(node: NodeState, event: BeatCheckDue, profile: Profile) -> Step:
    """The owner looks at the beats; copies go when their lease is over. How long a client is empty is not counted."""
    for client in node.clients:
        if is_ip_client(client.name):
            node = _checked(node, client, event.at_ms, profile)
    return Step(node)


def _checked(node: NodeState, client: Client, at_ms: int, profile: Profile) -> NodeState:
    if not is_responsible(node, client, profile):
        return removed(node, client, at_ms, profile) if at_ms - client.renewed_ms > profile.lease_ms else node
    if not client.content:
        node = replace(node, superseded=tuple(each for each in node.superseded if each.client != client.name))
        return removed(node, client, at_ms, profile)
    if not client.watched:
        return node
    silent_ms = {service: at_ms - beat_ms for service, beat_ms in client.beats}
    content = {
        service: instance.removesuffix(UNHEALTHY) + UNHEALTHY
        if silent_ms[service] > profile.beat_timeout_ms
        else instance
        for service, instance in client.content
        if silent_ms[service] <= profile.beat_delete_ms
    }
    if _sorted(content) == client.content:
        return node
    beats = tuple((service, beat_ms) for service, beat_ms in client.beats if service in content)
    after = _health_changed(replace(client, content=_sorted(content), beats=beats), profile)
    return _changed(node, client, after, at_ms, profile)


def verified(node: NodeState, held: Client, source: str, at_ms: int, profile: Profile) -> Client:
    """An ip:port client whose verify was accepted. Of two that both believe to own it, only the ring's first vouches.

    Otherwise they would keep a dead client alive for each other.
    """
    order = preference(node, held.name)
    defends = (
        not profile.verify_renews_owners_beats
        and is_responsible(node, held, profile)
        and source in order
        and order.index(source) > order.index(node.name)
    )
    renews = profile.verify_renews_beats and not defends
    beats = tuple((service, at_ms) for service, _ in held.beats) if renews else held.beats
    return replace(held, renewed_ms=at_ms, beats=beats)
