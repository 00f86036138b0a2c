"""The parameter check that stands before the naming handlers from 2.3.0 on: lengths and characters.

A blank parameter passes, and so does one that is missing; whether it is needed is for the handler to say. What fails is
answered with the handler's own response class. The rules are data, since they differ only in their numbers. It
stands before every request, so that what it found of the names, which come again and again, is remembered.
Source: docs/protocol #wire-errors, classes RemoteParamCheckFilter, DefaultParamChecker and ParamCheckRule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

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
MAX_REMEMBERED = 200
"""Length of names that are remembered, all of a request together."""


@dataclass(frozen=True, slots=True)
class Rule:
    """`name` is how the complaint calls the parameter."""

    name: str
    max_length: int
    pattern: re.Pattern[str]

    def complaint(self, value: str | None) -> str | None:
        if not value or (len(value) <= self.max_length and self.pattern.fullmatch(value)) or not value.strip():
            return None
        if len(value) > self.max_length:
            return f"Param '{self.name}' is illegal, the param length should not exceed {self.max_length}."
        return f"Param '{self.name}' is illegal, illegal characters should not appear in the param."


NAMESPACE = Rule("namespaceId/tenant", 64, re.compile(r"[a-zA-Z0-9_-]+"))
SERVICE = Rule("serviceName", 512, re.compile(r"(?!@).((?!@@)[^\u4E00-\u9FA5\s])*"))
GROUP = Rule("group", 128, re.compile(r"[a-zA-Z0-9_:.-]*"))
CLUSTER = Rule("cluster", 64, re.compile(r"[0-9a-zA-Z_-]+"))
IP = Rule("ip", 128, re.compile(r"[^\u4E00-\u9FA5\s]*"))


def complaint_about(body: NamingBody) -> str | None:
    """The first thing that is wrong with the parameters of a naming request, or None."""
    names = body.namespace or "", body.service_name or "", body.group_name or ""
    check = _remembered if sum(map(len, names)) <= MAX_REMEMBERED else _names_complaint
    return check(*names) or OTHERS.get(type(body), _nothing)(body)


def _names_complaint(namespace: str, service: str, group: str) -> str | None:
    return NAMESPACE.complaint(namespace) or SERVICE.complaint(service) or GROUP.complaint(group)


_remembered = lru_cache(maxsize=1 << 11)(_names_complaint)


def _nothing(_: NamingBody) -> None: ...


def _of_query(body: ServiceQueryRequest) -> str | None:
    return _clusters_complaint(body.cluster) or _port_complaint(body.udp_port)


def _of_subscription(body: SubscribeServiceRequest) -> str | None:
    return _clusters_complaint(body.clusters)


def _of_instance(body: InstanceRequest) -> str | None:
    return None if body.instance is None else _instance_complaint(body.instance)


def _of_batch(body: BatchInstanceRequest) -> str | None:
    return next(filter(None, map(_instance_complaint, body.instances or ())), None)


OTHERS: Mapping[type[NamingBody], Callable[[Any], str | None]] = {
    InstanceRequest: _of_instance,
    BatchInstanceRequest: _of_batch,
    ServiceQueryRequest: _of_query,
    SubscribeServiceRequest: _of_subscription,
}
"""What a request has beside its names."""


def _clusters_complaint(clusters: str | None) -> str | None:
    return next(filter(None, map(CLUSTER.complaint, clusters.split(","))), None) if clusters else None


def _instance_complaint(instance: Instance) -> str | None:
    complaint = CLUSTER.complaint(instance.cluster_name) or IP.complaint(instance.ip) or _port_complaint(instance.port)
    if complaint or not instance.metadata:
        return complaint
    texts = [*instance.metadata, *instance.metadata.values()]
    if sum(map(len, texts)) > MAX_METADATA_LENGTH < sum(len(text) for text in texts if text.strip()):
        return f"Param 'Metadata' is illegal, the param length should not exceed {MAX_METADATA_LENGTH}."
    return None


def _port_complaint(port: int | None) -> str | None:
    if port is not None and not 0 <= port <= MAX_PORT:
        return f"Param 'port' is illegal, the value should be between 0 and {MAX_PORT}."
    return None
