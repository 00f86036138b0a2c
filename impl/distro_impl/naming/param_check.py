"""The parameter check that stands before the naming handlers from 2.3.0 on: lengths and characters.

A blank parameter passes, and so does one that is missing; whether it is needed is for the handler to say. What fails is
answered with the handler's own response class. The rules are data, since they are told apart only by their numbers.
Source: docs/protocol #wire-errors, classes RemoteParamCheckFilter, DefaultParamChecker and ParamCheckRule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from distro_impl.ports import MAX_PORT

MAX_METADATA_LENGTH = 1024


@dataclass(frozen=True, slots=True)
class Rule:
    """`name` is how the complaint calls the parameter."""

    name: str
    max_length: int
    pattern: re.Pattern[str]

    def complaint(self, value: object) -> str | None:
        if not isinstance(value, str) or not value.strip():
            return None
        if len(value) > self.max_length:
            return f"Param '{self.name}' is illegal, the param length should not exceed {self.max_length}."
        if not self.pattern.fullmatch(value):
            return f"Param '{self.name}' is illegal, illegal characters should not appear in the param."
        return None


NAMESPACE = Rule("namespaceId/tenant", 64, re.compile(r"[a-zA-Z0-9_-]+"))
SERVICE = Rule("serviceName", 512, re.compile(r"(?!@).((?!@@)[^\u4E00-\u9FA5\s])*"))
GROUP = Rule("group", 128, re.compile(r"[a-zA-Z0-9_:.-]*"))
CLUSTER = Rule("cluster", 64, re.compile(r"[0-9a-zA-Z_-]+"))
IP = Rule("ip", 128, re.compile(r"[^\u4E00-\u9FA5\s]*"))


def complaint_about(body: Mapping[str, Any]) -> str | None:
    """The first thing that is wrong with the parameters of a naming request, or None."""
    return next((complaint for complaint in _complaints(body) if complaint), None)


def _complaints(body: Mapping[str, Any]) -> Iterator[str | None]:
    yield NAMESPACE.complaint(body.get("namespace"))
    yield SERVICE.complaint(body.get("serviceName"))
    yield GROUP.complaint(body.get("groupName"))
    for clusters in (body.get("cluster"), body.get("clusters")):
        if isinstance(clusters, str):
            yield from map(CLUSTER.complaint, clusters.split(","))
    yield _port_complaint(body.get("udpPort"))
    yield from _instance_complaints(body.get("instance"))
    instances = body.get("instances")
    for instance in instances if isinstance(instances, list) else ():
        yield from _instance_complaints(instance)


def _instance_complaints(instance: object) -> Iterator[str | None]:
    if not isinstance(instance, Mapping):
        return
    yield CLUSTER.complaint(instance.get("clusterName"))
    yield IP.complaint(instance.get("ip"))
    yield _port_complaint(instance.get("port"))
    metadata = instance.get("metadata")
    if isinstance(metadata, Mapping):
        length = sum(len(text) for pair in metadata.items() for text in pair if isinstance(text, str) and text.strip())
        if length > MAX_METADATA_LENGTH:
            yield f"Param 'Metadata' is illegal, the param length should not exceed {MAX_METADATA_LENGTH}."


def _port_complaint(port: object) -> str | None:
    if isinstance(port, int) and not 0 <= port <= MAX_PORT:
        return f"Param 'port' is illegal, the value should be between 0 and {MAX_PORT}."
    return None
