"""The parameter check that stands before the naming handlers from 2.3.0 on: lengths and characters.

A blank parameter passes, and so does one that is missing; whether it is needed is for the handler to say. What fails is
answered with the handler's own response class. The rules are data, since they are told apart only by their numbers.
Source: docs/protocol #wire-errors, classes RemoteParamCheckFilter, DefaultParamChecker and ParamCheckRule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from distro_impl.ports import MAX_PORT
from distro_impl.remote.payloads import (
    BatchInstanceRequest,
    Instance,
    InstanceRequest,
    NamingBody,
    ServiceQueryRequest,
    SubscribeServiceRequest,
)

MAX_METADATA_LENGTH = 1024


MAX_REMEMBERED = 64
"""Length of a text that is remembered to be good: the same names come again and again."""


@lru_cache(maxsize=1 << 11)
def _is_good(pattern: re.Pattern[str], value: str) -> bool:
    return pattern.fullmatch(value) is not None


@dataclass(frozen=True, slots=True)
class Rule:
    """`name` is how the complaint calls the parameter."""

    name: str
    max_length: int
    pattern: re.Pattern[str]

    def complaint(self, value: str | None) -> str | None:
        if not value or (len(value) <= MAX_REMEMBERED and _is_good(self.pattern, value)) or not value.strip():
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


def complaint_about(body: NamingBody) -> str | None:
    """The first thing that is wrong with the parameters of a naming request, or None."""
    return next((complaint for complaint in _complaints(body) if complaint), None)


def _complaints(body: NamingBody) -> Iterator[str | None]:
    yield NAMESPACE.complaint(body.namespace)
    yield SERVICE.complaint(body.service_name)
    yield GROUP.complaint(body.group_name)
    if isinstance(body, SubscribeServiceRequest):
        yield _clusters_complaint(body.clusters)
    elif isinstance(body, ServiceQueryRequest):
        yield _clusters_complaint(body.cluster)
        yield _port_complaint(body.udp_port)
    elif isinstance(body, InstanceRequest):
        yield None if body.instance is None else _instance_complaint(body.instance)
    elif isinstance(body, BatchInstanceRequest):
        yield from map(_instance_complaint, body.instances or ())


def _clusters_complaint(clusters: str | None) -> str | None:
    return next(filter(None, map(CLUSTER.complaint, (clusters or "").split(","))), None)


def _instance_complaint(instance: Instance) -> str | None:
    complaint = CLUSTER.complaint(instance.cluster_name) or IP.complaint(instance.ip) or _port_complaint(instance.port)
    if complaint or not instance.metadata:
        return complaint
    length = sum(len(text) for pair in instance.metadata.items() for text in pair if text.strip())
    if length > MAX_METADATA_LENGTH:
        return f"Param 'Metadata' is illegal, the param length should not exceed {MAX_METADATA_LENGTH}."
    return None


def _port_complaint(port: int | None) -> str | None:
    if port is not None and not 0 <= port <= MAX_PORT:
        return f"Param 'port' is illegal, the value should be between 0 and {MAX_PORT}."
    return None
