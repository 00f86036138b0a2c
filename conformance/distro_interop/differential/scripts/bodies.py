"""Bodies of requests, as SDKs and members write them; scripts change single fields. Source: sections 3.2, 5.2."""

from __future__ import annotations

from typing import Any

from distro_interop.differential.script_run import CLUSTER, GROUP, SERVICE, ScriptRun
from distro_protos import Json

IP = "10.0.0.1"


def service(run: ScriptRun, name: str = SERVICE, **changed: Any) -> Json:
    """The first fields of every request about a service; None removes a field."""
    return given({"namespace": run.namespace, "serviceName": name, "groupName": GROUP, "module": "naming", **changed})


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


def register(run: ScriptRun, name: str = SERVICE, port: int = 8001, **changed: Any) -> Json:
    return {**service(run, name), "type": "registerInstance", "instance": instance(port, **changed)}


def deregister(run: ScriptRun, name: str = SERVICE, port: int = 8001, **changed: Any) -> Json:
    return {**service(run, name), "type": "deregisterInstance", "instance": instance(port, **changed)}


def batch(run: ScriptRun, *ports: int, name: str = SERVICE) -> Json:
    return {**service(run, name), "type": "batchRegisterInstance", "instances": [instance(port) for port in ports]}


def query(run: ScriptRun, name: str = SERVICE, **changed: Any) -> Json:
    return {**service(run, name), "cluster": "", "healthyOnly": False, "udpPort": 0, **changed}


def subscribe(run: ScriptRun, name: str = SERVICE, *, on: bool = True, clusters: str = "") -> Json:
    return {**service(run, name), "subscribe": on, "clusters": clusters}


def page(run: ScriptRun, number: int, size: int, **changed: Any) -> Json:
    return {**service(run, ""), "pageNo": number, "pageSize": size, **changed}


def sync_data(run: ScriptRun, client: str, revision: int, *ports: int, **changed: Any) -> Json:
    """A ClientSyncData with one service for each port: web, web1, …"""
    data = {
        "clientId": client,
        "attributes": {"clientAttributes": {"revision": revision}},
        "namespaces": [run.namespace for _ in ports],
        "groupNames": [GROUP for _ in ports],
        "serviceNames": [f"{SERVICE}{index or ''}" for index, _ in enumerate(ports)],
        "instancePublishInfos": [published(port) for port in ports],
        "batchInstanceData": {},
        **changed,
    }
    return given(data)


def published(port: int, **extend: Any) -> Json:
    return {"ip": "10.0.0.2", "port": port, "healthy": True, "cluster": CLUSTER, "extendDatum": extend}
