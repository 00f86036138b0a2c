"""A client belongs to the member that holds its connection: requests of other members about it change nothing."""

from __future__ import annotations

from collections.abc import Sequence

from distro_conformance.findings.finding import NOTHING
from distro_conformance.node.kit import Kit, services
from distro_conformance.node.observer import Observed
from distro_conformance.node.player import PlayedClient
from distro_conformance.requirements.requirement import MUST, requirement


@requirement("DISTRO-NATIVE-001", MUST, "#receive-native", bug="B01")
async def change_leaves_a_connected_client_alone(kit: Kit) -> None:
    """A member's CHANGE does not change a client that is connected to the node."""
    client, service = await _registered(kit)
    other, revision = kit.service(), await kit.revision_of(client.id)
    reply = await kit.peer.sync(client.id, 9, (other, "10.0.0.9", 90))
    kit.note(f"{kit.peer.address} sends CHANGE of {client.id}, with another service alone: {reply}")
    await _require_unharmed(kit, client, service, {"acknowledged": reply.succeeded, "sent": [other]}, [other])
    found = await kit.revision_of(client.id)
    kit.require(found == revision, f"the revision {revision} of {client.id}, as before", found)


@requirement("DISTRO-NATIVE-002", MUST, "#receive-native", bug="B41")
async def delete_leaves_a_connected_client_alone(kit: Kit) -> None:
    """A member's DELETE does not change a client that is connected to the node."""
    client, service = await _registered(kit)
    reply = await kit.peer.delete(client.id)
    kit.note(f"{kit.peer.address} sends DELETE of {client.id}: {reply}")
    await _require_unharmed(kit, client, service, {"acknowledged": reply.succeeded})


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


async def _published(kit: Kit, client: PlayedClient) -> list[str] | None:
    """The services of the client that the node holds now; lists may be older."""
    return services(await kit.peer.query(client.id))
