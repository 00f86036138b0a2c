"""Clients of the HTTP API: requests and beats, the node that handles them, and the effects of missing beats.

A request may reach any node. The owner handles it; another node forwards it to the node that it believes to be the
owner, and a forwarded request is never forwarded again. The revision is a hash of the content. Nodes remove such a
client after its silence: the owner finds an instance unhealthy, then removes it, then removes the empty client. In a
release a change is announced by the node that is the owner when its event is handled, which may be another than the one
that accepted it (B22).
"""

from __future__ import annotations

from dataclasses import replace

from distro_model.events import (
    BEATS,
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
from distro_model.messages import (
    NO_SUCH_API,
    NOT_THE_OWNER,
    SUCCESS,
    UNKNOWN_INSTANCE,
    WITHOUT_ID,
    Change,
    Content,
)
from distro_model.node import Action, Client, NodeState, Step
from distro_model.profile import Profile
from distro_model.rules.notify import published, reindexed
from distro_model.rules.owners import UNHEALTHY, content_revision, is_ip_client, is_responsible, owner_of, preference
from distro_model.rules.rule import guard, instead_of, rule
from distro_model.rules.sync import announced

UNNAMED = ""
"""The source of a request that names no sender, as in releases."""


@rule("route-a-request", source="owner-filter; DistroFilter")
def on_http(node: NodeState, event: HttpReceived, profile: Profile) -> Step:
    """The owner carries the request out; another node forwards it to the owner, once."""
    if event.by_v2 and not has_v2(profile):
        return Step(node, (Reply(NO_SUCH_API),))
    owner = owner_of(node, event.client, profile)
    if owner != node.name and is_passed_on(event, profile):
        return Step(node, (Reply(NOT_THE_OWNER) if event.forwarded else Forward(owner),))
    if event.action is HttpAction.LIGHT_BEAT and not _publishes(node, event.client, event.service):
        return Step(node, (Reply(UNKNOWN_INSTANCE),))
    return Step(_carried_out(node, event, event.at_ms, profile), (Reply(SUCCESS),))


def _publishes(node: NodeState, client: str, service: str) -> bool:
    held = node.client(client)
    return held is not None and any(name == service for name, _ in held.content)


@guard(source="http-v2; InstanceControllerV2")
def has_v2(_: Profile) -> bool:
    """There is a version 2 of the HTTP API."""
    return True


@instead_of(has_v2)
def has_no_v2(_: Profile) -> bool:
    """A request of version 2 is answered with "no such page"."""
    return False


@guard(source="owner-filter, http-v2; DistroFilter")
def is_passed_on(_request: HttpReceived, _: Profile) -> bool:
    """A node that does not own the client forwards the request, by whichever version of the API it came."""
    return True


@instead_of(is_passed_on)
def only_v1_is_passed_on(request: HttpReceived, _: Profile) -> bool:
    """The filter applies to version 1 alone: by version 2 any node carries out the request that it receives (D7)."""
    return not request.by_v2


@rule("begin-a-first-request", source="ip-port-creation; EphemeralIpPortClientManager.clientConnected")
def on_http_entered(node: NodeState, event: HttpEntered, profile: Profile) -> Step:
    """The first request of a client has found no client, and has not created it yet."""
    request = event.request
    if owner_of(node, request.client, profile) != node.name or node.client(request.client) is not None:
        return Step(node)
    return Step(node.changed(entered=(*node.entered, request)))


@rule("finish-a-first-request", source="ip-port-creation; HealthCheckReactor.scheduleCheck")
def on_http_finished(node: NodeState, event: HttpFinished, profile: Profile) -> Step:
    """The request creates its client, or finds that another request has created it meanwhile."""
    request = event.request
    node = node.changed(entered=tuple(each for each in node.entered if each != request))
    node = before_creation(node, request, event.at_ms, profile)
    return Step(_carried_out(node, request, event.at_ms, profile), (Reply(SUCCESS),))


@rule("look-again-before-creation", source="ip-port-creation")
def before_creation(node: NodeState, _request: HttpReceived, _at_ms: int, _: Profile) -> NodeState:
    """Two first requests create a client once: the second finds the one that the first has made."""
    return node


@instead_of(before_creation)
def creates_twice(node: NodeState, request: HttpReceived, at_ms: int, profile: Profile) -> NodeState:
    """A client that was created meanwhile is replaced, but not its beat check (B30)."""
    lost = node.client(request.client)
    if lost is None:
        return node
    created = replace(_created(node, request.client, at_ms, profile), watched=False)
    return reindexed(node.with_client(created), created, lost.content, at_ms, profile)


def _carried_out(node: NodeState, request: HttpReceived, at_ms: int, profile: Profile) -> NodeState:
    """A registration always counts as a change, a deregistration only where there was an instance, a beat only where it
    changes the content; each renews the lease."""
    held = node.client(request.client)
    if held is None and request.action is HttpAction.DEREGISTER:
        return node
    client = held or _created(node, request.client, at_ms, profile)
    content, beats = dict(client.content), dict(client.beats)
    if request.action is HttpAction.DEREGISTER:
        content.pop(request.service, None)
        beats.pop(request.service, None)
    else:
        beats[request.service] = at_ms
        known = content.get(request.service, "").removesuffix(UNHEALTHY)
        is_kept = known and request.action in BEATS
        content[request.service] = known if is_kept else registered_instance(request, profile)
    after = replace(client, content=_sorted(content), beats=tuple(sorted(beats.items())), renewed_ms=at_ms)
    if request.action in BEATS and after.content == client.content:
        return node.with_client(after)
    if request.action not in BEATS or request.service not in dict(client.content):
        after = replace(after, revision=content_revision(after.name, after.content, profile))
    else:
        after = replace(after, revision=revision_of_health(after, profile))
    if request.action is HttpAction.DEREGISTER and after.content == client.content:
        return node.with_client(after)
    return accepted(changed(node, held, after, at_ms, profile), after, profile)


@rule("give-an-id", source="http-v2; InstanceControllerV2")
def registered_instance(request: HttpReceived, _: Profile) -> str:
    """A beat and a registration by version 1 give the instance an id, a registration by version 2 gives it none."""
    has_id = request.action is HttpAction.BEAT or not request.by_v2
    return request.instance if has_id else request.instance + WITHOUT_ID


@instead_of(registered_instance)
def registered_with_id(request: HttpReceived, _: Profile) -> str:
    """Version 3, which takes the place of version 2, gives it an id too."""
    return request.instance


@rule("accept-a-request", source="owner-handover")
def accepted(node: NodeState, after: Client, _: Profile) -> NodeState:
    """The node remembers that the client has requested this content from it, until it concludes another from missing
    beats or a peer sends another; and that no peer has acknowledged it."""
    pending = (*node.unacknowledged, *((after.name, peer) for peer in node.others))
    return node.with_client(replace(after, accepted=True)).with_unacknowledged(pending)


@instead_of(accepted)
def held_as_a_copy(node: NodeState, _after: Client, _: Profile) -> NodeState:
    """A change that a client requested from the node itself is held like one that a peer has sent (B22)."""
    return node


def _created(node: NodeState, name: str, at_ms: int, profile: Profile) -> Client:
    turn_ms = turn_of(node, at_ms, profile)
    return Client(name, False, content_revision(name, (), profile), (), renewed_ms=at_ms, turn_ms=turn_ms)


def turn_of(node: NodeState, at_ms: int, profile: Profile) -> int:
    """For a client that is created now: from the next tick on it is checked once in a period."""
    since_start_ms = at_ms - node.started_ms
    return (since_start_ms + -since_start_ms % profile.tick_ms) % profile.lease_check_ms


def _sorted(content: dict[str, str]) -> Content:
    return tuple(sorted(content.items()))


@rule("number-a-change-of-health", source="revision-ip-port; IpPortBasedClient.recalculateRevision")
def revision_of_health(client: Client, profile: Profile) -> int:
    """The revision of an ip:port client depends on its health and its expiry too."""
    return content_revision(client.name, client.content, profile)


@instead_of(revision_of_health)
def revision_of_registration(client: Client, _: Profile) -> int:
    """Only a registration computes a new revision: other changes of the content keep it (B06)."""
    return client.revision


@rule("change-an-ip-port-client", source="owner-handover, sync-announce")
def changed(node: NodeState, before: Client | None, after: Client, at_ms: int, profile: Profile) -> NodeState:
    """The node that changes a client announces it, owner or not by then, and remembers what the change has replaced."""
    node = reindexed(node.with_client(after), after, () if before is None else before.content, at_ms, profile)
    node = node.superseding(after.name, () if before is None else (before.revision,), after.revision)
    return published(node, ClientChanged(after.name), at_ms, profile)


@instead_of(changed)
def changed_and_announced_late(
    node: NodeState, before: Client | None, after: Client, at_ms: int, profile: Profile
) -> NodeState:
    """The change is announced by the node that owns the client when its event is handled (B22)."""
    node = reindexed(node.with_client(after), after, () if before is None else before.content, at_ms, profile)
    return node if after.name in node.unannounced else node.changed(unannounced=(*node.unannounced, after.name))


@rule("announce-an-ip-port-client", source="sync-announce; DistroClientDataProcessor.syncToAllServer")
def on_announce_due(node: NodeState, event: AnnounceDue, profile: Profile) -> Step:
    """Only where changes are announced late: a node that is no longer responsible drops the change (B22)."""
    node = node.changed(unannounced=tuple(each for each in node.unannounced if each != event.client))
    held = node.client(event.client)
    if held is None or not is_responsible(node, held, profile):
        return Step(node)
    return Step(announced(node, event.client, Action.CHANGE, event.at_ms, profile))


@guard(source="owner-handover")
def is_not_superseded(node: NodeState, source: str, change: Change, _: Profile) -> bool:
    """The CHANGE or snapshot does not restore content that was replaced by what the client requested from this node,
    unless the sender knows a later change. A request without a sender is always accepted, and so is what restores a
    removed client once the sender has acknowledged the removal."""
    if source == UNNAMED or (change.client, change.revision) not in node.superseded:
        return True
    held = node.client(change.client)
    if held is None:
        return not node.is_unacknowledged(change.client, source)
    return not held.accepted or held.revision in change.superseded


@rule("check-beats", source="lease-beats; ClientBeatCheckTaskV2")
def on_beat_check_due(node: NodeState, event: BeatCheckDue, profile: Profile) -> Step:
    """The owner checks the beats of its clients."""
    for client in node.clients:
        is_its_turn = event.of is None or client.name in event.of
        if is_its_turn and client.watched and client.content and is_ip_client(client.name):
            node = _checked(node, client, event.at_ms, profile)
    return Step(node)


def _checked(node: NodeState, client: Client, at_ms: int, profile: Profile) -> NodeState:
    if not is_responsible(node, client, profile):
        return node
    silent_ms = {service: at_ms - beat_ms for service, beat_ms in client.beats}
    content = {
        service: instance.removesuffix(UNHEALTHY) + UNHEALTHY
        if silent_ms[service] >= profile.beat_timeout_ms
        else instance
        for service, instance in client.content
        if silent_ms[service] < profile.beat_delete_ms
    }
    if _sorted(content) == client.content:
        return node
    beats = tuple((service, beat_ms) for service, beat_ms in client.beats if service in content)
    after = replace(client, content=_sorted(content), beats=beats, accepted=False)
    after = replace(after, revision=revision_of_health(after, profile))
    return changed(node, client, after, at_ms, profile)


def ends_silent(client: Client, at_ms: int, profile: Profile) -> bool:
    """An ip:port client that was silent for so long that every node removes it."""
    if not is_ip_client(client.name):
        return False
    is_empty_for_long = not client.content and at_ms - client.renewed_ms > profile.empty_lease_ms
    return is_empty_for_long or ends_unowned(client, at_ms, profile)


@rule("find-the-lease-of-an-ip-port-copy-over", source="lease-ip-port-copies")
def ends_unowned(client: Client, at_ms: int, profile: Profile) -> bool:
    """An ip:port client is removed when its lease is over; at an owner missing beats have removed it by then."""
    return at_ms - client.renewed_ms > profile.lease_ms


@instead_of(ends_unowned)
def never_ends_unowned(_client: Client, _at_ms: int, _: Profile) -> bool:
    """No check covers the copies of ip:port clients."""
    return False


@rule("renew-by-a-verify", source="verify-accept, verify-two-owners")
def verified(node: NodeState, held: Client, source: str, at_ms: int, profile: Profile) -> Client:
    """An accepted verify of an ip:port client renews its lease and counts as a beat, or changes nothing."""
    if not counts_as_beat(node, held, source, profile):
        return held
    return replace(held, renewed_ms=at_ms, beats=tuple((service, at_ms) for service, _ in held.beats))


@guard(source="verify-accept, verify-two-owners")
def counts_as_beat(node: NodeState, held: Client, source: str, profile: Profile) -> bool:
    """An accepted verify of an ip:port client counts as a beat, but at a node that owns the client too not from one
    that stands behind it in the ring: otherwise the two would keep a dead client alive for each other. A sender that
    the request does not name may be the first of the ring, unless this node is."""
    order = preference(node, held.name)
    own = order.index(node.name)
    is_behind = order.index(source) > own if source in order else source == UNNAMED and own == 0
    return not (is_behind and is_responsible(node, held, profile))


@instead_of(counts_as_beat)
def always_counts_as_beat(_node: NodeState, _held: Client, _source: str, _: Profile) -> bool:
    """An accepted verify counts as a beat at an owner too, from any sender."""
    return True
