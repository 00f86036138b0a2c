"""The switches that an operator turns while a node runs (docs/protocol #settings-switches). They hold for all clients
of a node: each check has a node of its own."""

from __future__ import annotations

import json
from http import HTTPStatus

from distro_conformance.node.errors import BeyondError
from distro_conformance.node.http_player import PlayedHttpClient
from distro_conformance.node.kit import Kit, services
from distro_conformance.requirements.requirement import MUST, requirement
from distro_conformance.verdict import TargetError
from distro_conformance.waiting import poll_local

_LATE_MS = 2_000
"""A push that is made in spite of the switch comes that much later on a busy machine."""


@requirement("DISTRO-SWITCH-001", MUST, "#settings-switches, #lease-beats", own_node=True)
async def health_checks_can_be_switched_off(kit: Kit) -> None:
    """While health checks are switched off, no instance becomes unhealthy for missing beats; it does so at the next
    check after they are switched on again."""
    await kit.start_node()
    client, service = kit.http_client(kit.target.address), kit.service()
    await _turn(kit, client, "check", "false")
    reply = await client.register(service)
    kit.assume(reply.status == HTTPStatus.OK, f"a registration of {client.id} that succeeds", reply)
    kit.note(f"{client.id} registers {service} and does not beat")

    async def ill() -> object:
        copy = await kit.peer.query(client.id)
        is_well = copy is not None and [each.healthy for each in copy.published] == [True]
        return None if is_well else copy or f"no {client.id}"

    await kit.never(
        ill, for_ms=kit.timings.unhealthy_ms + 2 * kit.timings.beat_check_ms, what="health checks are switched off"
    )
    await _turn(kit, client, "check", "true")
    await kit.eventually(ill, within_ms=kit.timings.beat_check_ms + kit.timings.view_ms, what=f"{client.id} unhealthy")


@requirement("DISTRO-SWITCH-002", MUST, "#settings-switches, #index-push", own_node=True)
async def pushes_can_be_switched_off(kit: Kit) -> None:
    """While pushes are switched off, a subscriber is pushed nothing; what has changed meanwhile is pushed once they are
    switched on again."""
    await kit.start_node()
    operator, subscriber, service = kit.http_client(kit.target.address), await kit.client(), kit.service()
    await subscriber.subscribe(service)
    await kit.settle(kit.timings.push_ms)
    before = len(subscriber.pushed(service))
    await _turn(kit, operator, "pushEnabled", "false")
    await (await kit.client()).register(service, "10.0.0.1", 80)
    kit.note(f"{service} is registered at 10.0.0.1:80")
    more = poll_local(lambda: subscriber.pushed(service)[before:] or None)
    await kit.never(more, for_ms=kit.timings.push_ms + _LATE_MS, what="pushes are switched off")
    await _turn(kit, operator, "pushEnabled", "true")
    await kit.eventually_pushed(subscriber, service, "10.0.0.1:80")


@requirement("DISTRO-SWITCH-003", MUST, "#settings-switches, #owner-filter", own_node=True)
async def distribution_can_be_switched_off(kit: Kit) -> None:
    """While Distro is switched off, a node carries out requests about clients of the HTTP API that another member owns;
    once it is switched on again, it passes them on."""
    await kit.start_node()
    for owner in kit.peers:
        client, service, later = kit.http_client(owner.address), kit.service(), kit.service()
        await _turn(kit, client, "distro", "false")
        reply = await client.register(service)
        kit.note(f"{client.id}, which {owner.address} owns, registers {service}: {reply}")
        asked = [each["query"].get("serviceName") for each in owner.http.requests]
        kit.require(not asked, f"nothing passed on to {owner.address}", asked)
        copy = await kit.peer.query(client.id)
        kit.require(services(copy) == [service], f"{client.id} with {service}", copy)
        await _turn(kit, client, "distro", "true")
        await client.register(later)
        passed_on = len(owner.http.requests)
        kit.require(passed_on == 1, f"the registration of {later} at {owner.address}", passed_on)


@requirement("DISTRO-SWITCH-004", MUST, "#settings-switches, #http-beat", own_node=True)
async def beats_can_be_set(kit: Kit) -> None:
    """The answer to a beat names the time until the next one that an operator has set, and allows light beats unless
    they are switched off."""
    await kit.start_node()
    client, service = kit.http_client(kit.target.address), kit.service()
    reply = await client.register(service)
    kit.assume(reply.status == HTTPStatus.OK, f"a registration of {client.id} that succeeds", reply)
    await _turn(kit, client, "clientBeatInterval", "7000")
    for value in ("false", "true"):
        await _turn(kit, client, "lightBeatEnabled", value)
        reply = await client.beat(service)
        kit.note(f"a beat of {client.id}: {reply}")
        named = [json.loads(reply.text).get(key) for key in ("clientBeatInterval", "lightBeatEnabled")]
        expected = [7_000, value == "true"]
        kit.require(named == expected, f"clientBeatInterval and lightBeatEnabled {expected}", named)


async def _turn(kit: Kit, operator: PlayedHttpClient, entry: str, value: str) -> None:
    """Raises BeyondError where the switch cannot be turned: a 2.2.4 reads its switches from the raft log first, which
    played members do not have."""
    try:
        reply = await operator.turn_switch(entry, value)
    except TargetError as unreadable:  # a server answers with the code of the raft log as the status, 40302
        raise BeyondError(f"cannot go on without a switch {entry} that can be turned; seen: {unreadable}") from None
    kit.note(f"an operator turns the switch {entry} to {value}: {reply}")
    if reply.status != HTTPStatus.OK:
        raise BeyondError(f"cannot go on without a switch {entry} that can be turned; seen: {reply}")
