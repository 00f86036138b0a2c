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
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

NOTHING_PUBLISHED = "4f53cda18c2baa0c"
"""The digest of a client that publishes nothing: in no view of any service. The same in all versions of traces."""

_DIGEST = re.compile(r"\b([0-9a-f]{16})[0-9a-f]{48}\b")


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
    """What a trace has of a content: the SHA-256 of its canonical text, in hexadecimal digits.

    All of them, as verdicts compare digests. Traces that were recorded before have the first sixteen; they are read as
    they are, since a run has one form of digest.
    """
    text = canonical(published)
    return hashlib.sha256(text.encode()).hexdigest() if text != "[]" else NOTHING_PUBLISHED


def shortened(text: str) -> str:
    """The text for people, who recognise a digest by its first sixteen digits."""
    return _DIGEST.sub(r"\1", text)


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
