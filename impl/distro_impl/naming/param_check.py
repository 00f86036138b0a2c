"""The parameter check that stands before the naming handlers from 2.3.0 on: lengths and characters.

A blank parameter passes, and so does one that is missing; whether it is needed is for the handler to say. What fails is
answered with the handler's own response class. The rules are data, since they differ only in their numbers. It
stands before every request, so that what it found of the names, which come again and again, is remembered.
Source: docs/protocol #wire-errors, classes RemoteParamCheckFilter, DefaultParamChecker and ParamCheckRule.
"""

from __future__ import annotations

import re
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
MAX_REMEMBERED = 200
"""Length of names that are remembered, all of a request together."""


@dataclass(frozen=True, slots=True)
class Rule:
    """`name` is the name of the parameter in error messages."""

    name: str
    max_length: int
    pattern: re.Pattern[str]

    def problem(self, value: str | None) -> str | None:
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


def error_in(body: NamingBody) -> str | None:
    """The first thing that is wrong with the parameters of a naming request, or None."""
    names = body.namespace or "", body.service_name or "", body.group_name or ""
    check = _remembered if sum(map(len, names)) <= MAX_REMEMBERED else _error_in_names
    return check(*names) or _error_in_others(body)


def _error_in_names(namespace: str, service: str, group: str) -> str | None:
    return NAMESPACE.problem(namespace) or SERVICE.problem(service) or GROUP.problem(group)


_remembered = lru_cache(maxsize=1 << 11)(_error_in_names)


def _error_in_others(body: NamingBody) -> str | None:
    """In what the request has beside its names."""
    match body:
        case InstanceRequest():
            return None if body.instance is None else _error_in_instance(body.instance)
        case BatchInstanceRequest():
            return next(filter(None, map(_error_in_instance, body.instances or ())), None)
        case ServiceQueryRequest():
            return _error_in_clusters(body.cluster) or _error_in_port(body.udp_port)
        case SubscribeServiceRequest():
            return _error_in_clusters(body.clusters)
    return None


def _error_in_clusters(clusters: str | None) -> str | None:
    return next(filter(None, map(CLUSTER.problem, clusters.split(","))), None) if clusters else None


def _error_in_instance(instance: Instance) -> str | None:
    problem = CLUSTER.problem(instance.cluster_name) or IP.problem(instance.ip) or _error_in_port(instance.port)
    if problem or not instance.metadata:
        return problem
    texts = [*instance.metadata, *instance.metadata.values()]
    if sum(map(len, texts)) > MAX_METADATA_LENGTH < sum(len(text) for text in texts if text.strip()):
        return f"Param 'Metadata' is illegal, the param length should not exceed {MAX_METADATA_LENGTH}."
    return None


def _error_in_port(port: int | None) -> str | None:
    if port is not None and not 0 <= port <= MAX_PORT:
        return f"Param 'port' is illegal, the value should be between 0 and {MAX_PORT}."
    return None
