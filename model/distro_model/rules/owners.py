"""The owner of a client: the node of its connection, or, for a client of the HTTP API, the one that the hash names.

The id of an ip:port client is `10.0.0.1:80#true`; what stands before the `#` is its tag. Every node computes the owner
from the tag and from its beliefs about the members, so nodes with different beliefs name different owners (B15).
Sources: docs/protocol/owners.md; DistroMapper, DistroUtils.
"""

from __future__ import annotations

from functools import cache

from distro_model.messages import WITHOUT_ID, Content, shown, text_of
from distro_model.node import Client, MemberState, NodeState
from distro_model.profile import Profile
from distro_model.rules.rule import guard, instead_of, rule

MODULUS = 2147483647

UNHEALTHY = " (unhealthy)"
"""At the end of an instance without beats."""


@cache
def java_hash(text: str) -> int:
    """`String.hashCode` of Java: a signed 32-bit integer, over UTF-16 code units."""
    data = text.encode("utf-16-le")
    value = 0
    for low, high in zip(data[::2], data[1::2], strict=True):
        value = (31 * value + (high << 8) + low) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def place(tag: str, size: int) -> int:
    """The index of a tag's owner among `size` members in ascending order."""
    return abs(java_hash(tag)) % MODULUS % size


def is_ip_client(client: str) -> bool:
    return "#" in client


def tag_of(client: str) -> str:
    return client.partition("#")[0]


@rule("number-a-content", source="revision-ip-port; DistroUtils.hash")
def content_revision(client: str, content: Content, _: Profile) -> int:
    """The revision of an ip:port client is a hash of its id and content, never the wildcard 0."""
    return java_hash(f"{client} {text_of(content)}") or 1


@instead_of(content_revision)
def summed_revision(client: str, content: Content, _: Profile) -> int:
    """The hash is a sum over the services, to which each part of an instance adds the same under every service: two
    that swap their metadata or their health leave it as it was. An id names its service.

    No other node recomputes it, so any value will do that is equal whenever the value of a release is equal.
    """
    services = " ".join(service + WITHOUT_ID * (WITHOUT_ID in instance) for service, instance in content)
    unhealthy = sum(instance.endswith(UNHEALTHY) for _, instance in content)
    parts = " ".join(sorted(instance.removesuffix(UNHEALTHY) for _, instance in shown(content)))
    return java_hash(f"{client} {services} {parts} {unhealthy}") or 1


@rule("name-the-owner", source="owner-place; DistroMapper.mapSrvName")
def owner_of(node: NodeState, client: str, _: Profile) -> str:
    """The owner of an ip:port client in this node's view: from the client's place in the configured list on, the first
    member that is not DOWN."""
    return next(name for name in preference(node, client) if is_alive(node, name))


@instead_of(owner_of)
def owner_among_alive(node: NodeState, client: str, _: Profile) -> str:
    """The place is computed among the members that are not DOWN: different views name different owners (B15)."""
    ascending = sorted(name for name in preference(node, client) if is_alive(node, name))
    return ascending[place(tag_of(client), len(ascending))]


def preference(node: NodeState, client: str) -> tuple[str, ...]:
    """The configured list, ascending, as a ring that begins at the place of the client."""
    members = sorted((node.name, *node.others))
    first = place(tag_of(client), len(members))
    return (*members[first:], *members[:first])


def is_alive(node: NodeState, name: str) -> bool:
    """UP or SUSPICIOUS; the node itself is always included."""
    return name == node.name or node.member(name).state is not MemberState.DOWN


@guard(source="owner-responsible; ClientManagerDelegate.isResponsibleClient")
def is_responsible(node: NodeState, client: Client, profile: Profile) -> bool:
    """The node verifies and announces this client."""
    return client.native or (is_ip_client(client.name) and owner_of(node, client.name, profile) == node.name)
