"""The list of a service as a member shows it: over gRPC the list that a subscriber is sent, else over HTTP.

It includes health, weight, metadata and `enabled` of each instance, since these differ too: a list that was not rebuilt
is wrong although the member holds the right clients. Reading subscribes to nothing and creates nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

PUBLIC, DEFAULT_GROUP, DEFAULT_CLUSTER = "public", "DEFAULT_GROUP", "DEFAULT"
LIST_PATHS = ("/nacos/v1/ns/instance/list", "/nacos/v2/ns/instance/list", "/nacos/v3/client/ns/instance/list")
NOT_NAMED = "is not in the list of services"
"""For a service with instances; members keep a service without instances for different times."""
PAGE = 500


class ServiceName(NamedTuple):
    namespace: str
    group: str
    name: str

    def __str__(self) -> str:
        grouped = self.name if self.group == DEFAULT_GROUP else f"{self.group}@@{self.name}"
        return grouped if self.namespace == PUBLIC else f"{self.namespace}/{grouped}"

    @property
    def grouped(self) -> str:
        return f"{self.group}@@{self.name}"

    def query(self) -> dict[str, Any]:
        """The body of a ServiceQueryRequest: instances of all clusters, healthy or not."""
        return {**_of_group(self.namespace, self.group), "serviceName": self.name, **_ALL}

    def parameters(self) -> dict[str, str]:
        """The same over HTTP; version 3 takes the group apart."""
        return {"serviceName": self.grouped, "groupName": self.group, "namespaceId": self.namespace}


_ALL = {"cluster": "", "healthyOnly": False, "udpPort": 0}


def names_query(namespace: str, group: str, page: int) -> dict[str, Any]:
    """The body of a ServiceListRequest."""
    return {**_of_group(namespace, group), "serviceName": "", "pageNo": page, "pageSize": PAGE, "selector": ""}


def _of_group(namespace: str, group: str) -> dict[str, Any]:
    return {"headers": {}, "namespace": namespace, "groupName": group, "module": "naming"}


def shown_instances(hosts: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """One text for each instance, sorted, with all that a consumer can distinguish, except the server's own id."""
    return tuple(sorted(map(_instance, hosts)))


def _instance(host: Mapping[str, Any]) -> str:
    words = [f"{host.get('ip')}:{host.get('port')}"]
    cluster = host.get("clusterName") or DEFAULT_CLUSTER
    words += [f"cluster={cluster}"] if cluster != DEFAULT_CLUSTER else []
    words += [] if host.get("healthy", True) else ["unhealthy"]
    words += [] if host.get("enabled", True) else ["disabled"]
    weight = float(host.get("weight", 1.0))
    words += [f"weight={weight:g}"] if weight != 1.0 else []
    metadata = host.get("metadata") or {}
    return " ".join([*words, *([json.dumps(metadata, sort_keys=True, ensure_ascii=False)] if metadata else [])])
