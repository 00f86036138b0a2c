"""A client belongs to the member that holds its connection: requests of other members about it change nothing."""

from __future__ import annotations

from collections.abc import Sequence

from distro_conformance.findings.finding import NOTHING
from distro_conformance.node.errors import Observed
from distro_conformance.node.kit import Kit, services
from distro_conformance.node.player import PlayedClient, instance_request
from distro_conformance.requirements.requirement import MUST, requirement
from distro_conformance.wire.messages import distro_request, sync_data


@requirement("DISTRO-NATIVE-001", MUST, "#receive-native", bug="B01")
async def change_leaves_a_connected_client_alone(kit: Kit) -> None:
    """A member's CHANGE or ADD does not change a client that is connected to the node, which goes on announcing and
    verifying it."""
    client, service = await _registered(kit)
    other, revision = kit.service(), await kit.revision_of(client.id)
    reply = await kit.peer.sync(client.id, 9, (other, "10.0.0.9", 90))
    kit.note(f"{kit.peer.address} sends CHANGE of {client.id}, with another service alone: {reply}")
    await _require_unharmed(kit, client, service, {"acknowledged": reply.succeeded, "sent": [other]}, [other])
    content = sync_data(client.id, 9, [(other, "10.0.0.9", 90)])
    reply = await kit.peer.send(distro_request("ADD", client.id, target=kit.target.address, content=content))
    kit.note(f"{kit.peer.address} sends ADD of {client.id}, with another service alone: {reply}")
    await _require_unharmed(kit, client, service, {"acknowledged": reply.succeeded, "sent": [other]}, [other])
    found = await kit.revision_of(client.id)
    kit.require(found == revision, f"the revision {revision} of {client.id}, as before", found)
    await _require_owned(kit, client, service)


@requirement("DISTRO-NATIVE-002", MUST, "#receive-native", bug="B41")
async def delete_leaves_a_connected_client_alone(kit: Kit) -> None:
    """A member's DELETE does not change a client that is connected to the node, which goes on announcing and verifying
    it."""
    client, service = await _registered(kit)
    reply = await kit.peer.delete(client.id)
    kit.note(f"{kit.peer.address} sends DELETE of {client.id}: {reply}")
    await _require_unharmed(kit, client, service, {"acknowledged": reply.succeeded})
    await _require_owned(kit, client, service)


async def _registered(kit: Kit) -> tuple[PlayedClient, str]:
    """A client with one service."""
    client, service = await kit.publisher()
    kit.assume(await _published(kit, client) == [service], f"{client.id} to publish {service}", "something else")
    return client, service


async def _require_unharmed(
    kit: Kit, client: PlayedClient, service: str, observed: Observed, sent: Sequence[str] = ()
) -> None:
    published = await _published(kit, client)
    is_unharmed = published == [service]
    answers = NOTHING if is_unharmed or not sent else await kit.announced(client.id, sent)
    kit.require(
        is_unharmed,
        f"{client.id} to publish {service} and nothing else",
        published,
        observed={**observed, **answers, "published": published},
    )


async def _require_owned(kit: Kit, client: PlayedClient, service: str) -> None:
    if not kit.target.limits.counts_members:
        return
    more = kit.service()
    reply = await client.ask("InstanceRequest", instance_request("registerInstance", more, "10.0.0.1", 80, {}))
    kit.note(f"it registers {more}: {reply}")
    kit.require(reply.succeeded, "a registration that succeeds", reply)
    announced = kit.arrival("CHANGE", client.id, carrying=lambda copy: services(copy) == sorted((service, more)))
    what = f"a CHANGE of {client.id} with {service} and {more}"
    change = await kit.eventually(announced, within_ms=kit.timings.sync_ms, what=what)
    await kit.eventually_sent("VERIFY", client.id, after=change)


async def _published(kit: Kit, client: PlayedClient) -> list[str] | None:
    """The services of the client that the node holds now; lists may be older."""
    return services(await kit.peer.query(client.id))
