"""What a client publishes, and its digest.

Two nodes agree about a client when these digests are equal. The digest is taken over a canonical form, so that the
order of services, the order of metadata and fields that the wire ignores on input (`metadataId`,
`lastHeartBeatTime`) do not matter, while every field that a subscriber can see does: the cluster name too, which
the servers' own equality forgets (docs/protocol #defect-d4).
Source of the shape: docs/protocol #distro-content.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_DIGEST_CHARACTERS = 16


@dataclass(frozen=True, slots=True, order=True)
class Published:
    """One instance of one service, as a client publishes it. `attributes` is the canonical text of `extendDatum`."""

    namespace: str
    group: str
    service: str
    ip: str
    port: int
    cluster: str = "DEFAULT"
    healthy: bool = True
    attributes: str = "{}"


@dataclass(frozen=True, slots=True)
class Replica:
    """What one node holds of one client."""

    client: str
    revision: int
    published: tuple[Published, ...]  # sorted

    @property
    def digest(self) -> str:
        return digest(self.published)

    def __str__(self) -> str:
        published = ", ".join(f"{each.service} at {each.ip}:{each.port}" for each in self.published)
        return f"revision {self.revision}, {published or 'nothing published'}"


def canonical(published: Iterable[Published]) -> str:
    """Two sets of instances have the same text when a subscriber sees no difference."""
    rows = [
        [p.namespace, p.group, p.service, p.ip, p.port, p.cluster, p.healthy, p.attributes] for p in sorted(published)
    ]
    return json.dumps(rows, separators=(",", ":"), ensure_ascii=False)


def digest(published: Iterable[Published]) -> str:
    """Sixteen hexadecimal characters of the canonical text: what a trace has of a content."""
    return hashlib.sha256(canonical(published).encode()).hexdigest()[:_DIGEST_CHARACTERS]


def replica_from_sync(data: Mapping[str, Any]) -> Replica:
    """Read a `ClientSyncData` JSON object. Raises ValueError that names the field when it has another shape."""
    try:
        attributes = data["attributes"].get("clientAttributes") or {}
        published = [
            *_parallel(data, "instancePublishInfos", lambda info: [info]),
            *_parallel(
                data.get("batchInstanceData") or {},
                "batchInstancePublishInfos",
                lambda shell: shell["instancePublishInfos"],
            ),
        ]
        return Replica(data["clientId"], int(attributes.get("revision", 0)), tuple(sorted(published)))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a ClientSyncData object: {type(error).__name__} at {error}") from error


def has_batch(data: Mapping[str, Any]) -> bool:
    """Whether a `ClientSyncData` object has a batch for one of its services."""
    return bool((data.get("batchInstanceData") or {}).get("serviceNames"))


def _parallel(data: Mapping[str, Any], infos: str, unpack: Any) -> list[Published]:
    """Index i of the four lists is the i-th service of the client."""
    names = zip(
        data.get("namespaces") or (),
        data.get("groupNames") or (),
        data.get("serviceNames") or (),
        data.get(infos) or (),
        strict=True,
    )
    return [
        Published(
            namespace,
            group,
            service,
            info["ip"],
            int(info["port"]),
            info.get("cluster") or "DEFAULT",
            bool(info.get("healthy", False)),
            json.dumps(info.get("extendDatum") or {}, sort_keys=True, separators=(",", ":")),
        )
        for namespace, group, service, shell in names
        for info in unpack(shell)
    ]
