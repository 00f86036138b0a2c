"""A request of a script and its answer: the unit that is compared.

An answer is plain JSON whatever carried it, so that one comparison serves calls, pushes, Distro messages and HTTP.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from distro_protos import Json


@dataclass(frozen=True, slots=True)
class Exchange:
    """`step` names the action in the words of the script, and is unique in it."""

    step: str
    answer: Any


@dataclass(slots=True)
class ScriptLog:
    """One script on one node. `names`: the placeholders of this run's own addresses, ports and client ids."""

    script: str
    names: dict[str, str]
    exchanges: list[Exchange] = field(default_factory=list)

    def note(self, step: str, answer: Any) -> None:
        if any(exchange.step == step for exchange in self.exchanges):
            raise ValueError(f"the script {self.script} has two steps called {step!r}")
        self.exchanges.append(Exchange(step, answer))


def opened(body: Mapping[str, Any]) -> Json:
    """A Distro body with the object inside its `distroData.content` in place of the Base64."""
    data = body.get("distroData")
    if not isinstance(data, Mapping) or not isinstance(data.get("content"), str):
        return dict(body)
    try:
        content = json.loads(base64.b64decode(data["content"], validate=True))
    except ValueError:
        return dict(body)
    return {**body, "distroData": {**data, "content": in_rows(content)}}


def in_rows(content: Any) -> Any:
    """The content of a Distro message with each client's lists as rows, be it one client or a snapshot of many."""
    if not isinstance(content, dict):
        return content
    if "clientSyncDataList" in content:
        content = {**content, "clientSyncDataList": [_rows(client) for client in content["clientSyncDataList"]]}
    return _rows(content)


def _rows(client: Json) -> Json:
    """ClientSyncData keeps parallel lists; rows can be sorted. Lists that do not fit into rows stay unchanged."""
    lists = [client.get(name) for name in ("namespaces", "groupNames", "serviceNames", "instancePublishInfos")]
    if not all(isinstance(each, list) and len(each) == len(lists[0] or []) for each in lists):
        return client
    rest = {key: value for key, value in client.items() if key not in _PARALLEL}
    batches = client.get("batchInstanceData")
    if isinstance(batches, dict) and "batchInstancePublishInfos" in batches:
        rest["batchInstanceData"] = _rows({**batches, "instancePublishInfos": batches["batchInstancePublishInfos"]})
    return {**rest, "published": [list(row) for row in zip(*lists, strict=True)]}


_PARALLEL = ("namespaces", "groupNames", "serviceNames", "instancePublishInfos", "batchInstancePublishInfos")
