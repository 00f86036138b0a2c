"""Pushes to subscribers: their content, time and repetition (docs/protocol #index-push, #connection-stream)."""

from __future__ import annotations

import itertools
from dataclasses import replace
from http import HTTPStatus

from distro_conformance.node.errors import BeyondError
from distro_conformance.node.kit import Kit
from distro_conformance.node.observer import assumed
from distro_conformance.node.player import (
    CLUSTER,
    GROUP,
    PlayedClient,
    instance_request,
    query_request,
    read_hosts,
    service_request,
)
from distro_conformance.node.udp_listener import listening
from distro_conformance.requirements.requirement import MUST, SHOULD, requirement
from distro_conformance.waiting import Poll, first_of, poll_local
from distro_conformance.wire.connection import LOOPBACK
from distro_conformance.wire.messages import distro_request, sync_data
from distro_protos import Json, Message

_ELSEWHERE = {"namespace": "elsewhere", "groupName": "OTHER_GROUP"}
_PUSH_DELAY_MS, _PUSH_TIMEOUT_MS, _PUSH_RETRY_MS = 500, 5_000, 1_000
_PACKET_TIMEOUT_MS = 10_000
_CHANGES_EVERY_MS = 200
_GIVEN_UP = 4
"""The number of push delays without a push, while the service keeps changing, after which the check stops waiting."""


@requirement("DISTRO-PUSH-001", MUST, "#index-push")
async def changes_are_pushed(kit: Kit) -> None:
    """A subscriber is pushed the whole list when a client registers, changes anything, the weight, the health or the
    cluster of an instance or whether it is enabled too, and leaves, in whatever namespace and group the service is."""
    subscriber, publisher, service, other = await kit.client(), await kit.client(), kit.service(), kit.service()
    await subscriber.subscribe(service)
    body = {**service_request(other), **_ELSEWHERE, "subscribe": True, "clusters": ""}
    await subscriber.ask("SubscribeServiceRequest", body)
    for ports in ((80,), (81,)):
        await publisher.register(service, "10.0.0.1", ports[0])
        await _pushed(kit, subscriber, service, *ports)
    await publisher.ask(
        "InstanceRequest", {**instance_request("registerInstance", other, "10.0.0.1", 82, {}), **_ELSEWHERE}
    )
    await publisher.register(service, "10.0.0.1", 81, zone="b")
    kit.note(f"it registers {other} as {_ELSEWHERE}, and {service} again with the metadata zone b")
    await _pushed(kit, subscriber, other, 82)
    await _zone_is_pushed(kit, subscriber, service)
    group = subscriber.pushed(other)[-1].body["serviceInfo"].get("groupName")
    kit.require(group == _ELSEWHERE["groupName"], f"the group {_ELSEWHERE['groupName']} in the push", group)
    await publisher.register(service, "10.0.0.1", 81, zone="b", weight="2.5")
    weights = poll_local(lambda: [host.weight for host in subscriber.last_pushed(service) or ()] == [2.5])
    what = f"a push of {service} with the weight 2.5 to {subscriber.id}"
    await kit.eventually(weights, within_ms=kit.timings.push_ms, what=what)
    for changed in ({"healthy": False}, {"clusterName": "blue"}):
        body = instance_request("registerInstance", service, "10.0.0.1", 81, {"zone": "b", "weight": "2.5"})
        body["instance"] |= {"healthy": False, **changed}
        await publisher.ask("InstanceRequest", body)
        kit.note(f"it registers {service} again with {changed}")
        cluster = changed.get("clusterName", CLUSTER)

        def is_shown(cluster: object = cluster) -> bool:
            hosts = subscriber.last_pushed(service) or ()
            return [(host.healthy, host.cluster) for host in hosts] == [(False, cluster)]

        what = f"a push of {service}, unhealthy in the cluster {cluster}, to {subscriber.id}"
        await kit.eventually(poll_local(is_shown), within_ms=kit.timings.push_ms, what=what)
    for enabled, shown in ("false", ()), ("true", (81,)):
        await publisher.register(service, "10.0.0.1", 81, zone="b", weight="2.5", enabled=enabled)
        await _pushed(kit, subscriber, service, *shown)
    await kit.leave(publisher)
    await _pushed(kit, subscriber, service)


@requirement("DISTRO-PUSH-002", MUST, "#index-push, #receive-change")
async def synced_changes_are_pushed(kit: Kit) -> None:
    """A CHANGE, of the metadata or the health of an instance too, or a DELETE that a member sends changes lists, and
    their subscribers receive a push."""
    subscriber, synced, service = await kit.client(), kit.foreign_client(), kit.service()
    await subscriber.subscribe(service)
    await kit.peer.sync(synced, 1, (service, "10.0.0.1", 80))
    await _pushed(kit, subscriber, service, 80)
    await kit.peer.sync(synced, 2, (service, "10.0.0.1", 80), zone="b")
    await _zone_is_pushed(kit, subscriber, service)
    content = sync_data(synced, 3, [(service, "10.0.0.1", 80)], zone="b")
    content["instancePublishInfos"][0]["healthy"] = False
    await kit.peer.send(distro_request("CHANGE", synced, target=kit.target.address, content=content))
    kit.note(f"{kit.peer.address} sends CHANGE of {synced}, now unhealthy")
    unhealthy = poll_local(lambda: [each.healthy for each in subscriber.last_pushed(service) or ()] == [False])
    what = f"a push of an unhealthy {service} to {subscriber.id}"
    await kit.eventually(unhealthy, within_ms=kit.timings.push_ms, what=what)
    await kit.peer.delete(synced)
    await _pushed(kit, subscriber, service)


@requirement("DISTRO-PUSH-003", SHOULD, "#index-push")
async def unacknowledged_push_is_repeated(kit: Kit) -> None:
    """A push that is not acknowledged, or answered with failure, is repeated more than once, with the same list, and
    only to that subscriber."""
    (subscriber, refusing, acknowledging), service = [await kit.client() for _ in range(3)], kit.service()
    for each in (subscriber, refusing, acknowledging):
        await each.subscribe(service)
    await kit.settle(kit.timings.push_ms)
    await subscriber.fall_silent()
    refusing.refuses = True
    before, refused = len(subscriber.pushed(service)), len(refusing.pushed(service))
    body = instance_request("registerInstance", service, "10.0.0.1", 80, {"zone": "a", "cluster": "blue"})
    body["instance"]["healthy"] = False
    await (await kit.client()).ask("InstanceRequest", body)
    kit.note(f"an unhealthy instance of {service} in the cluster blue is registered at 10.0.0.1:80")
    within_ms = kit.timings.push_ms + _PUSH_TIMEOUT_MS + _PUSH_RETRY_MS + 500
    for more, which in ((2, "again"), (3, "once more")):
        what = f"the same push {which} to the subscriber that answers it with failure"
        await kit.eventually(_pushes(refusing, service, refused + more), within_ms=within_ms, what=what)
        what = f"the same push {which}"
        await kit.eventually(_pushes(subscriber, service, before + more), within_ms=within_ms, what=what)
    shown = [_read_ports(push) for push in acknowledging.pushed(service)]
    kit.require(
        shown.count([80]) == 1, f"one push of {service} at port 80 to the subscriber that acknowledges it", shown
    )
    *_, acknowledged = _lists(acknowledging, service)
    for each, so_far in ((subscriber, before), (refusing, refused)):
        repeated = _lists(each, service)[so_far:]
        is_alike = all(found == acknowledged for found in repeated)
        kit.require(is_alike, f"{acknowledged} in each push to {each.id}", repeated)


@requirement("DISTRO-PUSH-004", SHOULD, "#index-push, #connection-stream")
async def acknowledged_push_is_not_repeated(kit: Kit) -> None:
    """A push that is acknowledged is not repeated, also while another client subscribes to the service: that one alone
    is pushed the list."""
    subscriber, service = await kit.client(), kit.service()
    await subscriber.subscribe(service)
    await (await kit.client()).register(service, "10.0.0.1", 80)
    await _arrange_pushed(kit, subscriber, service, 80)
    await kit.settle(kit.timings.push_ms + 1_000)
    before = len(subscriber.pushed(service))
    window_ms = _PUSH_TIMEOUT_MS + _PUSH_RETRY_MS + 1_000
    again = _pushes(subscriber, service, before + 1)
    newcomer = await kit.client()
    await newcomer.subscribe(service)
    kit.note(f"{newcomer.id} subscribes to {service} too")
    await _arrange_pushed(kit, newcomer, service, 80)
    await kit.never(again, for_ms=window_ms, what=f"{service} was acknowledged and has not changed since")


@requirement("DISTRO-PUSH-005", MUST, "#naming-requests")
async def unsubscribed_client_is_left_alone(kit: Kit) -> None:
    """A client that has unsubscribed from a service is pushed nothing more of it and still gets pushes of its other
    services, and those of the service again once it has subscribed again; subscribers that stay when others unsubscribe
    or leave still get pushes, each change once."""
    former, subscriber, leaving = [await kit.client() for _ in range(3)]
    publisher, service, other = await kit.client(), kit.service(), kit.service()
    for each in (former, subscriber, leaving):
        await each.subscribe(service)
    await former.subscribe(other)
    await kit.settle(kit.timings.push_ms)
    await former.subscribe(service, wanted=False)
    kit.note(f"{former.id} unsubscribes from {service}, and not from {other}")
    await kit.leave(leaving)
    before, held = (len(each.pushed(service)) for each in (former, subscriber))
    await publisher.register(service, "10.0.0.1", 80)
    await _pushed(kit, subscriber, service, 80)
    more = first_of((_pushes(former, service, before + 1), _pushes(subscriber, service, held + 2)))
    what = f"{former.id} has unsubscribed, and {subscriber.id} has acknowledged its push"
    await kit.never(more, for_ms=_PUSH_RETRY_MS + 500, what=what)
    await publisher.register(other, "10.0.0.1", 81)
    await _pushed(kit, former, other, 81)
    await former.subscribe(service)
    kit.note(f"{former.id} subscribes to {service} again")
    await publisher.register(service, "10.0.0.1", 82)
    for each in (former, subscriber):
        await _pushed(kit, each, service, 82)


@requirement("DISTRO-PUSH-006", MUST, "#index-push", bug="B44")
async def pushes_are_in_order(kit: Kit) -> None:
    """Later pushes carry later times, each push has a request id of its own, and the last push shows what a query
    shows, in every field of the service and of its instances."""
    subscriber, publisher, service = await kit.client(), await kit.client(), kit.service()
    await subscriber.subscribe(service)
    for port in (80, 81, 82):
        await publisher.register(service, "10.0.0.1", port, zone="a", weight="2.5", cluster="blue")
        await _arrange_pushed(kit, subscriber, service, port)
    pushes = subscriber.pushed(service)
    times = [push.body["serviceInfo"].get("lastRefTime") for push in pushes]
    kit.require(all(a < b for a, b in itertools.pairwise(times)), "strictly later times", times)
    ids = [push.body.get("requestId") for push in pushes]
    kit.require(all(ids) and len(set(ids)) == len(ids), "a request id for each", ids)
    reply = await subscriber.ask("ServiceQueryRequest", query_request(service))
    pushed, shown = ({**each.body["serviceInfo"], "lastRefTime": 0} for each in (pushes[-1], reply))
    kit.require(pushed == shown, f"the last push, {pushed}, in a query", shown)


@requirement("DISTRO-PUSH-007", MUST, "#naming-requests", bug="subscription-shows-disabled")
async def subscription_is_answered_with_the_list(kit: Kit) -> None:
    """The answer to a subscription shows the current list, without disabled instances and of the clusters that the
    subscription names, null for all, as a query does in every field."""
    _, service = await kit.publisher(zone="a", weight="2.5")
    await (await kit.client()).register(service, "10.0.0.1", 82, cluster="blue", enabled="false")
    await (await kit.client()).register(service, "10.0.0.1", 81, cluster="blue")
    subscriber = await kit.client()
    await kit.arrange_listed(subscriber, service, "10.0.0.1:80", "10.0.0.1:81")
    for clusters, ports in ("", [80, 81]), ("blue", [81]):
        answer = await _subscribes(subscriber, service, clusters)
        kit.note(f"the answer to a subscription to the clusters {clusters!r}: {answer.body}")
        seen = {"enabled": _ports_of(answer, enabled=True), "disabled": _ports_of(answer, enabled=False)}
        kit.require(_read_ports(answer) == ports, f"{service} at ports {ports}", answer.body, observed=seen)
        reply = await subscriber.ask("ServiceQueryRequest", {**query_request(service), "cluster": clusters})
        answered, shown = ({**(each.body.get("serviceInfo") or {}), "lastRefTime": 0} for each in (answer, reply))
        kit.require(answered == shown, f"what a query shows, {shown}", answered)
        kit.require(answered.get("clusters") == clusters, f"the clusters {clusters!r}", answered)
    answer = await _subscribes(subscriber, service, None)
    kit.note(f"the answer to a subscription to the clusters null: {answer.body}")
    kit.require(_read_ports(answer) == [80, 81], f"{service} at ports 80 and 81", answer.body)


@requirement("DISTRO-PUSH-008", MUST, "#index-push, #naming-requests", bug="push-of-every-cluster")
async def pushes_are_of_the_cluster(kit: Kit) -> None:
    """A client that subscribes to one cluster is pushed only the instances of that cluster, in a list that names the
    cluster; a later subscription to other clusters, one or several, replaces the first; another subscriber is pushed
    the clusters of its own subscription."""
    subscriber, other, service = await kit.client(), await kit.client(), kit.service()
    await _subscribes(subscriber, service, "blue")
    await _subscribes(other, service, "")
    await (await kit.client()).register(service, "10.0.0.1", 80)
    await (await kit.client()).register(service, "10.0.0.1", 81, cluster="blue")

    async def otherwise() -> dict[str, object]:
        return {"ports": sorted(host.port for host in subscriber.last_pushed(service) or ())}

    what = f"a push of {service} at 81, and not at 80, to {subscriber.id}"
    shown = kit.pushed(subscriber, service, "10.0.0.1:81")
    await kit.eventually(shown, within_ms=kit.timings.push_ms, what=what, otherwise=otherwise)
    await _subscribes(subscriber, service, "DEFAULT,green")
    kit.note(f"{subscriber.id} subscribes to the clusters DEFAULT and green")
    await (await kit.client()).register(service, "10.0.0.1", 82, cluster="green")
    await _pushed(kit, subscriber, service, 80, 82)
    named = subscriber.pushed(service)[-1].body["serviceInfo"].get("clusters")
    kit.require(named == "DEFAULT,green", "the clusters DEFAULT,green in the push", named)
    kit.note(f"{other.id} has subscribed to all clusters")
    await _pushed(kit, other, service, 80, 81, 82)


async def _subscribes(client: PlayedClient, service: str, clusters: str | None) -> Message:
    body = {**service_request(service), "subscribe": True, "clusters": clusters}
    return await client.ask("SubscribeServiceRequest", body)


@requirement("DISTRO-PUSH-009", MUST, "#index-push")
async def new_subscriber_takes_no_push_away(kit: Kit) -> None:
    """A change is pushed to every earlier subscriber even if another client subscribes within the push delay, before or
    after the change, and each of several clients that subscribe within the delay is pushed the list."""
    subscriber, publisher, service = await kit.client(), await kit.client(), kit.service()
    await subscriber.subscribe(service)
    for port, is_change_first in ((80, True), (81, False)):
        newcomer = await kit.client()
        await kit.settle(kit.timings.push_ms)
        began_ms = kit.target.clock.now_ms()
        if not is_change_first:
            await newcomer.subscribe(service)
        await publisher.register(service, "10.0.0.1", port)
        if is_change_first:
            await newcomer.subscribe(service)
        kit.assume_turns(kit.target.clock.now_ms() - began_ms, _PUSH_DELAY_MS, "a change and a subscription")
        order = "before" if is_change_first else "after"
        kit.note(f"{publisher.id} registers {service} at port {port} just {order} {newcomer.id} subscribes to it")
        for each in (subscriber, newcomer):
            await _pushed(kit, each, service, port)
    newcomers = [await kit.client() for _ in range(2)]
    began_ms = kit.target.clock.now_ms()
    for each in newcomers:
        await each.subscribe(service)
    kit.assume_turns(kit.target.clock.now_ms() - began_ms, _PUSH_DELAY_MS, "two subscriptions")
    kit.note(f"{newcomers[0].id} and {newcomers[1].id} subscribe to {service}")
    for each in newcomers:
        await _pushed(kit, each, service, port)


@requirement("DISTRO-PUSH-010", MUST, "#index-push")
async def later_changes_do_not_postpone_a_push(kit: Kit) -> None:
    """A service that keeps changing is pushed one push delay after the first change, and the last change is pushed too.

    The check assumes that each change comes within one push delay of the previous one, as DISTRO-SYNC-004 does.
    """
    subscriber, publisher, service = await kit.client(), await kit.client(), kit.service()
    await subscriber.subscribe(service)
    await kit.settle(kit.timings.push_ms)
    before, port, changed_ms = len(subscriber.pushed(service)), 80, [kit.target.clock.now_ms()]
    while len(subscriber.pushed(service)) == before and changed_ms[-1] < changed_ms[0] + _GIVEN_UP * _PUSH_DELAY_MS:
        await publisher.register(service, "10.0.0.1", port := port + 1)
        await kit.sleep(_CHANGES_EVERY_MS)
        changed_ms.append(kit.target.clock.now_ms())
    kit.note(f"{publisher.id} registers {service} {len(changed_ms) - 1} times, one every {_CHANGES_EVERY_MS} ms")
    if len(subscriber.pushed(service)) == before:
        longest_ms = max(later - earlier for earlier, later in itertools.pairwise(changed_ms))
        kit.assume_turns(longest_ms, _PUSH_DELAY_MS, "one change after the other")
    pushed = len(subscriber.pushed(service)) - before
    kit.require(pushed > 0, f"a push of {service} although it goes on changing", f"{pushed} pushes")
    await _pushed(kit, subscriber, service, port)


@requirement("DISTRO-PUSH-011", SHOULD, "#http-udp, #http-v1, #index-push")
async def listener_is_pushed_over_udp(kit: Kit) -> None:
    """A client of the HTTP API that names a UDP port when it asks for a list is pushed each change there, the instances
    of the clusters that it has named, under the grouped name; a packet without an answer is sent once more, and no
    other."""
    if not kit.target.address.startswith(LOOPBACK):
        raise BeyondError(f"cannot go on without a node at {LOOPBACK}; seen: packets would leave this machine")
    client, publisher, service = kit.http_client(kit.peer.address), await kit.client(), kit.service()
    old_client = replace(client, headers={**client.headers, "User-Agent": "Nacos-Java-Client:v1.4.8"})
    await (await kit.client()).register(service, "10.0.0.1", 80)
    async with listening(LOOPBACK) as listener:

        def sent(port: int) -> int:
            return [_ports(each) for each in listener.pushes].count([port])

        def pushed(port: int, count: int) -> Poll[bool]:
            return poll_local(lambda: sent(port) == count)

        asked = await old_client.list(service, clusters="blue", clientIP=LOOPBACK, udpPort=str(listener.port))
        kit.note(f"an old client at UDP port {listener.port} asks for the cluster blue of {service}: {asked}")
        kit.require(asked.status == HTTPStatus.OK, "status 200", asked)
        await publisher.register(service, "10.0.0.1", 81, cluster="blue")
        what = f"a packet with {service} at 81, and not at 80"
        await kit.eventually(pushed(81, 1), within_ms=kit.timings.push_ms, what=what)
        named = {key: listener.pushes[-1].get(key) for key in ("name", "clusters")}
        kit.require(named == {"name": f"{GROUP}@@{service}", "clusters": "blue"}, "the grouped name and blue", named)
        listener.acknowledges = False
        await publisher.register(service, "10.0.0.1", 82, cluster="blue")
        within_ms = kit.timings.push_ms + _PACKET_TIMEOUT_MS + 500
        await kit.eventually(pushed(82, 2), within_ms=within_ms, what=f"two packets with {service} at 82")
        kit.require(sent(81) == 1, "one packet with port 81, which was answered", f"{sent(81)} packets")


def _ports(info: Json) -> list[int]:
    return sorted(host["port"] for host in info["hosts"])


async def _zone_is_pushed(kit: Kit, subscriber: PlayedClient, service: str) -> None:
    """Expects a push with the metadata zone b."""

    def zones() -> bool:
        return [host.metadata.get("zone") for host in subscriber.last_pushed(service) or ()] == ["b"]

    what = f"a push of {service} with the zone b to {subscriber.id}"
    await kit.eventually(poll_local(zones), within_ms=kit.timings.push_ms, what=what)


async def _pushed(kit: Kit, subscriber: PlayedClient, service: str, *ports: int) -> None:
    await kit.eventually_pushed(subscriber, service, *(f"10.0.0.1:{port}" for port in ports))


_arrange_pushed = assumed(_pushed)


def _lists(client: PlayedClient, service: str) -> list[Json]:
    """The lists that it was pushed, without their times."""
    return [{**push.body["serviceInfo"], "lastRefTime": 0} for push in client.pushed(service)]


def _read_ports(push: Message) -> list[int]:
    return sorted(host.port for host in read_hosts(push))


def _ports_of(answer: Message, *, enabled: bool) -> list[int]:
    hosts = (answer.body.get("serviceInfo") or {}).get("hosts") or []
    return sorted(host["port"] for host in hosts if bool(host.get("enabled")) is enabled)


def _pushes(client: PlayedClient, service: str, count: int) -> Poll[Message]:
    return poll_local(lambda: next(iter(client.pushed(service)[count - 1 :]), None))
