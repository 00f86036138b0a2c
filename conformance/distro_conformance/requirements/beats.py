"""Beats of instances of the HTTP API: what they register, renew and heal, and how an instance without them ends
(docs/protocol #lease-beats, #http-beat)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace

from distro_conformance.node.http_player import PlayedHttpClient, apis_of
from distro_conformance.node.kit import Kit
from distro_conformance.node.kit import services as services_of
from distro_conformance.node.peer import Arrival
from distro_conformance.requirements.ip_port import registered_here, removal, sent_health
from distro_conformance.requirements.requirement import MUST, requirement
from distro_conformance.waiting import Poll, poll_local

_OWN_BEAT_MS = 3_000
"""An interval of beats in the metadata of an instance."""
_ATTEMPTS = 10
"""Attempts to make two requests overlap."""
_EXEMPT = {"enableClientBeat": "true"}
"""In spite of the name an instance that has it needs no beats."""
_SHORT_MS = 6_000
"""A time-out in the metadata of an instance, less than the default."""


@requirement("DISTRO-IPPORT-002", MUST, "#lease-beats")
async def beats_that_stay_out_end_the_instance(kit: Kit) -> None:
    """An instance without beats is unhealthy after 15 s and removed after 30 s, each at the next check; the members
    receive its removal, and subscribers a push of it."""
    began_ms = kit.target.clock.now_ms()
    client, service = await registered_here(kit)
    reader = await kit.client()
    await reader.subscribe(service)

    def shown(*states: str) -> Poll[str]:
        async def poll() -> str | None:
            hosts = await reader.query(service)
            state = "gone" if not hosts else "healthy" if hosts[0].healthy else "unhealthy"
            return state if state in states else None

        return poll

    def remaining_ms(after_ms: int) -> int:
        return max(0, began_ms + after_ms - kit.target.clock.now_ms())

    await kit.never(
        shown("unhealthy", "gone"), for_ms=remaining_ms(kit.timings.unhealthy_ms - 1), what=f"{client.id} may yet beat"
    )
    seen = await kit.eventually(
        shown("unhealthy", "gone"),
        within_ms=remaining_ms(kit.timings.unhealthy_ms + kit.timings.beat_check_ms + kit.timings.view_ms),
        what=f"{client.id} shown as unhealthy",
    )
    # A reader on a busy machine may miss the ten seconds in between; the CHANGE still reached the member.
    changes = [each.call.replica for each in kit.arrivals(client.id) if each.call and each.call.replica]
    announced = any(not published.healthy for replica in changes for published in replica.published)
    if seen != "unhealthy" and not announced:
        _assume_checks(kit, began_ms)
    kit.require(seen == "unhealthy" or announced, f"{client.id} to be unhealthy before it is gone", seen)
    await kit.never(shown("gone"), for_ms=remaining_ms(kit.timings.gone_ms - 1), what=f"{client.id} may yet beat")
    await kit.eventually(
        shown("gone"),
        within_ms=remaining_ms(kit.timings.gone_ms + kit.timings.beat_check_ms + kit.timings.view_ms),
        what=f"the end of {client.id}",
    )
    for peer in kit.peers if kit.target.limits.counts_members else ():
        what = f"a CHANGE of {client.id} without {service} at {peer.address}"
        await kit.eventually(removal(kit, client.id, at=peer), within_ms=2 * kit.timings.sync_ms, what=what)
    await kit.eventually_pushed(reader, service)


@requirement("DISTRO-IPPORT-013", MUST, "#ip-port-creation, #lease-beats", bug="B30", since="2.0.3")
async def client_is_created_once(kit: Kit) -> None:
    """Instances without beats are removed even if the first two requests of their client arrived at the same time."""
    clients = [kit.http_client(kit.target.address) for _ in range(_ATTEMPTS)]
    services = [kit.service() for _ in range(2)]
    replies = await asyncio.gather(*(client.register(service) for client in clients for service in services))
    kit.note(f"{len(clients)} clients register {services[0]} and {services[1]} at once, and never beat")
    kit.assume(all(reply.status == 200 for reply in replies), "registrations that succeed", replies)
    reader, within_ms = await kit.client(), kit.timings.gone_ms + 2 * kit.timings.beat_check_ms + kit.timings.view_ms
    for service in services:
        await kit.eventually(kit.shows(reader, service), within_ms=within_ms, what=f"{service} without instances")


@requirement("DISTRO-IPPORT-004", MUST, "#lease-beats, #http-v1")
async def beats_keep_an_instance(kit: Kit) -> None:
    """Beats keep their own instance healthy, and no other instance of its client."""
    client, service = await registered_here(kit)
    other = kit.service()
    await client.register(other)
    kit.note(f"it registers {other} too, and does not beat there")
    began_ms = beaten_ms = kit.target.clock.now_ms()

    async def beats() -> Mapping[str, bool]:
        """The healthy instances after half a minute of beats."""
        nonlocal beaten_ms
        await client.beat(service)
        last_ms, beaten_ms = beaten_ms, kit.target.clock.now_ms()
        await kit.sleep(kit.timings.beat_ms)
        healthy = await _health_of(kit, client)
        if healthy.get(service) is not True:
            kit.assume_turns(kit.target.clock.now_ms() - last_ms, kit.timings.unhealthy_ms, "one beat after the other")
        kit.require(healthy.get(service) is True, f"a healthy {service} of {client.id}", healthy)
        return healthy

    async def other_ends() -> bool:
        return not (await beats()).get(other)

    await _ends_without_beats(kit, began_ms, other_ends, f"no healthy {other}, which gets no beats")


@requirement("DISTRO-IPPORT-005", MUST, "#http-v1")
async def beat_registers(kit: Kit) -> None:
    """A whole beat of an unknown instance, also if only its body has the address, registers the instance with its
    cluster, weight and metadata, in the namespace and group that it names, and a light beat is answered with the code
    for an unknown instance, by the later version of the HTTP API too, and also if its client has an instance under
    another service."""
    client, service = kit.http_client(kit.target.address), kit.service()
    await _light_beats_are_unknown(kit, client, service)
    for beating, by_body in ((client, False), (kit.http_client(kit.target.address), True)):
        whole = await beating.beat(service, {"zone": "a", "weight": "2.5", "cluster": "blue"}, by_body=by_body)
        where = "its body alone" if by_body else "its parameters too"
        kit.note(f"a whole beat in the cluster blue, with weight 2.5 and zone a, and {beating.id} in {where}: {whole}")
        kit.require(whole.status == 200 and "10200" in whole.text, "code 10200 for a whole beat", whole)
        copy = await kit.peer.query(beating.id)
        kit.require(services_of(copy) == [service], f"{beating.id} with {service}", copy)
        beaten = [(each.cluster, json.loads(each.attributes)) for each in copy.published] if copy else []
        found = [(cluster, held.get("zone"), held.get("publishInstanceWeight")) for cluster, held in beaten]
        kit.require(found == [("blue", "a", 2.5)], "the cluster, zone and weight of the beat", found)
    await _light_beats_are_unknown(kit, client, kit.service())
    elsewhere, named = kit.http_client(kit.target.address), f"OTHER_GROUP@@{service}"
    whole = await elsewhere.beat(named, namespaceId="elsewhere")
    light = await elsewhere.light_beat(named, namespaceId="elsewhere")
    kit.note(f"{elsewhere.id} beats for {named} of the namespace elsewhere: {whole}, {light}")
    is_taken = all(each.status == 200 and "10200" in each.text for each in (whole, light))
    kit.require(is_taken, "code 10200 for a whole and a light beat", (whole, light))
    copy = await kit.peer.query(elsewhere.id)
    held = [(each.namespace, each.group, each.service) for each in copy.published] if copy else []
    kit.require(held == [("elsewhere", "OTHER_GROUP", service)], f"{named} of the namespace elsewhere", held)
    await _light_beats_are_unknown(kit, elsewhere, service)


async def _light_beats_are_unknown(kit: Kit, client: PlayedHttpClient, service: str) -> None:
    """By every version of the HTTP API."""
    for api in apis_of(kit.target.profile):
        light = await replace(client, api=api).light_beat(service)
        kit.note(f"a light beat of {client.id} for {service} by {api}: {light}")
        code = {"v1": "20404", "v2": "20404", "v3": "21003"}[api]
        is_ok = light.status == 200 or api != "v1"
        kit.require(is_ok and code in light.text, f"code {code} for a light beat for {service} by {api}", light)


@requirement("DISTRO-IPPORT-007", MUST, "#lease-beats, #revision-ip-port", bug="B06", since="2.1.2")
async def health_has_a_revision(kit: Kit) -> None:
    """An instance that becomes unhealthy because it gets no beats reaches every member as a CHANGE with another
    revision.

    If a check of beats is so late that it removes the instance, the instance never was unhealthy.
    """
    began_ms = kit.target.clock.now_ms()
    client, _ = await registered_here(kit)
    healthy = await kit.arrange(
        sent_health(kit, client.id, True), within_ms=2 * kit.timings.sync_ms, what="the first CHANGE"
    )
    within_ms = kit.timings.unhealthy_ms + kit.timings.beat_check_ms + 2 * kit.timings.sync_ms
    shown, ended = sent_health(kit, client.id, False), removal(kit, client.id, healthy)

    async def announced() -> Arrival | None:
        found = await shown()
        if found is None and await ended() is not None:
            _assume_checks(kit, began_ms)
        return found

    unhealthy = await kit.eventually(announced, within_ms=within_ms, what=f"a CHANGE of {client.id}, unhealthy")
    also, what = sent_health(kit, client.id, False, at=kit.other), f"the same CHANGE at {kit.other.address}"
    await kit.eventually(also, within_ms=2 * kit.timings.sync_ms, what=what)
    assert healthy.call is not None
    assert unhealthy.call is not None
    kit.require(
        healthy.call.revision != unhealthy.call.revision,
        "another revision for other content",
        f"{healthy}; {unhealthy}",
        observed={"revision": healthy.call.revision},
    )


@requirement("DISTRO-IPPORT-008", MUST, "#lease-beats")
async def beat_heals(kit: Kit) -> None:
    """A beat, whole or light, by the later version of the HTTP API too, makes an unhealthy instance healthy again:
    every member receives a CHANGE and subscribers a push, as they did when it became unhealthy."""
    client, service = await registered_here(kit)
    others = [(*await registered_here(kit), api) for api in apis_of(kit.target.profile)]
    subscriber = await kit.client()
    await subscriber.subscribe(service)

    def pushed(healthy: bool) -> Poll[bool]:
        return poll_local(lambda: [each.healthy for each in subscriber.last_pushed(service) or ()] == [healthy])

    within_ms = kit.timings.unhealthy_ms + kit.timings.beat_check_ms + 2 * kit.timings.sync_ms
    what = f"an unhealthy {client.id}"
    dead = [sent_health(kit, client.id, False, at=peer) for peer in kit.peers]
    unhealthy = [await kit.arrange(poll, within_ms=within_ms, what=what) for poll in dead]
    within_ms = kit.timings.push_ms
    await kit.eventually(pushed(False), within_ms=within_ms, what=f"a push of an unhealthy {client.id}")
    also = []
    for other, _, _ in others:
        poll = sent_health(kit, other.id, False)
        also.append(await kit.arrange(poll, within_ms=kit.timings.beat_check_ms, what=f"an unhealthy {other.id}"))
    await client.beat(service)
    kit.note(f"{client.id} sends a whole beat")
    for other, its, api in others:
        await replace(other, api=api).light_beat(its)
        kit.note(f"{other.id} sends a light one by {api}")
    for peer, before in zip(kit.peers, unhealthy, strict=True):
        poll = sent_health(kit, client.id, True, after=before, at=peer)
        what = f"a CHANGE of {client.id}, healthy again, at {peer.address}"
        await kit.eventually(poll, within_ms=2 * kit.timings.sync_ms, what=what)
    await kit.eventually(pushed(True), within_ms=within_ms, what=f"a push of {client.id}, healthy again")
    for (other, _, _), ill in zip(others, also, strict=True):
        poll, what = sent_health(kit, other.id, True, after=ill), f"a CHANGE of {other.id}, healthy again"
        await kit.eventually(poll, within_ms=2 * kit.timings.sync_ms, what=what)


@requirement("DISTRO-IPPORT-015", MUST, "#lease-beats")
async def time_outs_in_the_metadata_count(kit: Kit) -> None:
    """Time-outs in the metadata of an instance decide when it is unhealthy and when it is removed, and affect no other
    instance of its client; an instance that its metadata exempt from beats stays healthy without them."""
    began_ms = kit.target.clock.now_ms()
    short, long = _timeouts(_SHORT_MS, 2 * _SHORT_MS), _timeouts(2 * kit.timings.gone_ms, 3 * kit.timings.gone_ms)
    client, brief = await registered_here(kit, **short)
    patient, beating, exempt = [kit.service() for _ in range(3)]
    for service, metadata in (patient, long), (beating, long), (exempt, _EXEMPT | short):
        await client.register(service, metadata)
    kit.note(f"it registers {patient} and {beating} with {long} too, and {exempt} with {_EXEMPT | short}")

    async def unhealthy() -> bool:
        return not (await _health_of(kit, client)).get(brief)

    async def removed() -> bool:
        return brief not in await _health_of(kit, client)

    for poll, after_ms, what in ((unhealthy, _SHORT_MS, "unhealthy"), (removed, 2 * _SHORT_MS, "without")):
        left_ms = max(0, began_ms + after_ms - kit.target.clock.now_ms())
        await kit.never(poll, for_ms=max(0, left_ms - 1), what=f"{brief} of {client.id} may yet beat")
        await kit.eventually(
            poll,
            within_ms=1 + kit.timings.beat_check_ms + kit.timings.beat_check_ms // 2,
            what=f"{client.id} {what} {brief}",
        )
    end_ms = began_ms + kit.timings.gone_ms + 2 * kit.timings.beat_check_ms
    while (left_ms := end_ms - kit.target.clock.now_ms()) > 0:
        await client.beat(beating)  # renews the client, whose lease may be shorter than this check
        await kit.settle(min(left_ms, kit.timings.beat_ms))
    found = await _health_of(kit, client)
    kit.assume_turns(kit.target.clock.now_ms() - began_ms, 2 * kit.timings.gone_ms, "a poll")
    left = (patient, beating, exempt)
    kit.require(found == dict.fromkeys(left, True), f"healthy {', '.join(left)} alone", found)


@requirement("DISTRO-IPPORT-016", MUST, "#lease-beats, #http-beat")
async def whole_beat_is_for_the_service_of_its_body(kit: Kit) -> None:
    """A whole beat of a registered instance counts for the service that its body names, whatever service the request
    parameter names."""
    client, named = await registered_here(kit)
    in_body = kit.service()
    await client.register(in_body)
    began_ms = beaten_ms = kit.target.clock.now_ms()
    kit.note(f"it registers {in_body} too; its beats name {in_body} in the body and {named} as the parameter")

    async def health() -> Mapping[str, bool]:
        nonlocal beaten_ms
        last_ms, beaten_ms = beaten_ms, kit.target.clock.now_ms()
        reply = await client.beat(in_body, parameter=named)
        kit.require(reply.status == 200 and "10200" in reply.text, "code 10200 for a whole beat", reply)
        await kit.sleep(kit.timings.beat_ms)
        found = await _health_of(kit, client)
        kit.assume_turns(kit.target.clock.now_ms() - last_ms, kit.timings.unhealthy_ms, "one beat after the other")
        return found

    async def other_ends() -> bool:
        found = await health()
        kit.require(found.get(in_body) is True, f"a healthy {in_body} of {client.id}, for which it beats", found)
        return not found.get(named)

    await _ends_without_beats(kit, began_ms, other_ends, f"no healthy {named}, which no body names")


@requirement("DISTRO-IPPORT-018", MUST, "#http-beat")
async def answer_to_a_beat_names_the_interval(kit: Kit) -> None:
    """The answer to a beat names the time until the next one, which is the interval in the metadata of the instance,
    else five seconds, and allows light beats."""
    for metadata, interval in (
        ({}, kit.timings.beat_ms),
        ({"preserved.heart.beat.interval": str(_OWN_BEAT_MS)}, _OWN_BEAT_MS),
    ):
        client, service = await registered_here(kit, **metadata)
        for beat in ("whole", "light"):
            reply = await (client.beat(service, metadata) if beat == "whole" else client.light_beat(service))
            kit.note(f"a {beat} beat of {client.id}, whose metadata are {metadata}: {reply}")
            kit.require(reply.status == 200, f"a {beat} beat of {client.id} that succeeds", reply)
            named = [json.loads(reply.text).get(key) for key in ("clientBeatInterval", "lightBeatEnabled")]
            kit.require(named == [interval, True], f"clientBeatInterval {interval} and lightBeatEnabled", named)


async def _health_of(kit: Kit, client: PlayedHttpClient) -> Mapping[str, bool]:
    """Whether each service that the node holds of the client is healthy."""
    copy = await kit.peer.query(client.id)
    return {each.service: each.healthy for each in copy.published} if copy else {}


def _timeouts(unhealthy_ms: int, gone_ms: int) -> dict[str, str]:
    """Metadata of an instance. The beat interval must not exceed the time-outs."""
    return {
        "preserved.heart.beat.interval": str(_OWN_BEAT_MS),
        "preserved.heart.beat.timeout": str(unhealthy_ms),
        "preserved.ip.delete.timeout": str(gone_ms),
    }


def _assume_checks(kit: Kit, since_ms: int) -> None:
    """Beats are checked every five seconds. An instance is removed without having been unhealthy only if a check is
    late by five seconds: the ten seconds in between, less the five that a check may regularly come after the
    time-out."""
    taken_ms = kit.target.clock.slack_since(since_ms)
    kit.assume(taken_ms < kit.timings.beat_check_ms, "checks of beats in time", f"this machine took {taken_ms} ms")


async def _ends_without_beats(kit: Kit, since_ms: int, ends: Poll[bool], what: str) -> None:
    """Polls, each time with a beat of another instance, until this one has certainly had none for too long; by then, or
    at the next check, it has ended."""
    while kit.target.clock.now_ms() < since_ms + kit.timings.unhealthy_ms + kit.timings.beat_check_ms:
        await ends()
    await kit.eventually(ends, within_ms=kit.timings.beat_check_ms, what=what)
