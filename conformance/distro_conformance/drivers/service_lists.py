"""Compares the lists that a node shows with what it holds: INV-INDEX.

The model ends at the client table; queries and pushes are a projection of that table, so the nodes can be asked for
both. Lists are compared as sorted instance texts; equal instances of two clients are one instance in an answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from distro_conformance.drivers.cluster import Lists
from distro_conformance.node.player import CLUSTER, Host
from distro_model.clock.cluster import View
from distro_model.messages import Content, batch_of, instances_of
from distro_model.rules.owners import UNHEALTHY
from distro_traces.content import Replica

PUSHED_WITHIN_MS = 700
"""The push delay of 500 ms, one tick, and some."""

Held = Mapping[str, View] | None
Published = Mapping[str, set[tuple[str, int, str]]]
"""By service: the client, revision and content of each publisher."""

_RESERVED_METADATA = frozenset({"customInstanceId", "publishInstanceWeight", "publishInstanceEnable"})
_DISABLED = "enabled=false"


def projection(held: Held) -> Lists:
    """The lists that follow from a client table. They contain unhealthy instances too, and no disabled ones."""
    lists: dict[str, set[str]] = {}
    for view in (held or {}).values():
        for service, published in view.content:
            shown = (each.removesuffix(UNHEALTHY) for each in instances_of(published))
            lists.setdefault(service, set()).update(each for each in shown if _DISABLED not in each.split())
    return {service: tuple(sorted(instances)) for service, instances in lists.items()}


def published_by_service(held: Held) -> Published:
    found: dict[str, set[tuple[str, int, str]]] = {}
    for client, view in (held or {}).items():
        for service, published in view.content:
            found.setdefault(service, set()).add((client, view.revision, published))
    return found


def same_lists(held: Held, other: Held) -> bool:
    return held is other or projection(held) == projection(other)


def read_list(hosts: Iterable[Host]) -> tuple[str, ...]:
    """The list in a query's reply or in a push, as texts."""
    return tuple(
        sorted(
            instance_text(host.ip, host.port, json.dumps(host.metadata), host.cluster, host.weight) for host in hosts
        )
    )


def wrong_lists(shown: Mapping[str, Lists], expected: Mapping[str, Lists]) -> str | None:
    """The first list that differs from what its node holds, as a clause; None if there is none."""
    for node, lists in shown.items():
        for service, instances in sorted(lists.items()):
            due = expected[node].get(service, ())
            if instances != due:
                return f"{node} shows {service} as {as_text(instances)} and holds {as_text(due)}"
    return None


def instance_text(ip: str, port: int, attributes: str, cluster: str, weight: float = 1.0) -> str:
    """`ip:port key=value …`, as a scenario writes it. Weight and `enabled` are kept under keys of the server; its other
    keys are left out."""
    metadata = {} if attributes == "{}" else json.loads(attributes)
    weight = metadata.get("publishInstanceWeight", weight)
    if weight != 1.0:
        metadata["weight"] = f"{weight:g}"
    if metadata.get("publishInstanceEnable") is False:
        metadata["enabled"] = "false"
    if cluster != CLUSTER:
        metadata["cluster"] = cluster
    words = [f"{key}={metadata[key]}" for key in sorted(metadata) if key not in _RESERVED_METADATA]
    return " ".join([f"{ip}:{port}", *words])


def published_of(replica: Replica) -> Content:
    """The content in the model's terms, where several instances of one service are a batch."""
    services: dict[str, list[str]] = {}
    for each in replica.published:
        text = instance_text(each.ip, each.port, each.attributes, each.cluster)
        services.setdefault(each.service, []).append(text if each.healthy else text + UNHEALTHY)
    return tuple(
        (service, texts[0] if len(texts) == 1 else batch_of(texts)) for service, texts in sorted(services.items())
    )


def as_text(instances: tuple[str, ...]) -> str:
    return " and ".join(instances) or "empty"
