"""Bodies of requests, as SDKs and members write them; scripts change single fields. Source: sections 3.2, 5.2."""

from __future__ import annotations

from typing import Any

from distro_interop.differential.stage import CLUSTER, GROUP, SERVICE, Stage
from distro_protos import Json

IP = "10.0.0.1"


def service(stage: Stage, name: str = SERVICE, **changed: Any) -> Json:
    """The first fields of every request about a service; None removes a field."""
    return given({"namespace": stage.namespace, "serviceName": name, "groupName": GROUP, "module": "naming", **changed})


def given(fields: Json) -> Json:
    """Without those that are None."""
    return {key: value for key, value in fields.items() if value is not None}


def instance(port: int = 8001, **changed: Any) -> Json:
    whole = {
        "ip": IP,
        "port": port,
        "weight": 1.0,
        "healthy": True,
        "enabled": True,
        "ephemeral": True,
        "clusterName": CLUSTER,
        "metadata": {},
        **changed,
    }
    return given(whole)


def register(stage: Stage, name: str = SERVICE, port: int = 8001, **changed: Any) -> Json:
    return {**service(stage, name), "type": "registerInstance", "instance": instance(port, **changed)}


def deregister(stage: Stage, name: str = SERVICE, port: int = 8001, **changed: Any) -> Json:
    return {**service(stage, name), "type": "deregisterInstance", "instance": instance(port, **changed)}


def batch(stage: Stage, *ports: int, name: str = SERVICE) -> Json:
    return {**service(stage, name), "type": "batchRegisterInstance", "instances": [instance(port) for port in ports]}


def query(stage: Stage, name: str = SERVICE, **changed: Any) -> Json:
    return {**service(stage, name), "cluster": "", "healthyOnly": False, "udpPort": 0, **changed}


def subscribe(stage: Stage, name: str = SERVICE, *, on: bool = True, clusters: str = "") -> Json:
    return {**service(stage, name), "subscribe": on, "clusters": clusters}


def page(stage: Stage, number: int, size: int, **changed: Any) -> Json:
    return {**service(stage, ""), "pageNo": number, "pageSize": size, **changed}


def sync_data(stage: Stage, client: str, revision: int, *ports: int, **changed: Any) -> Json:
    """A ClientSyncData with one service for each port: web, web1, …"""
    data = {
        "clientId": client,
        "attributes": {"clientAttributes": {"revision": revision}},
        "namespaces": [stage.namespace for _ in ports],
        "groupNames": [GROUP for _ in ports],
        "serviceNames": [f"{SERVICE}{index or ''}" for index, _ in enumerate(ports)],
        "instancePublishInfos": [published(port) for port in ports],
        "batchInstanceData": {},
        **changed,
    }
    return given(data)


def published(port: int, **extend: Any) -> Json:
    return {"ip": "10.0.0.2", "port": port, "healthy": True, "cluster": CLUSTER, "extendDatum": extend}
