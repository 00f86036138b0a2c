"""The pages of operators: service lists, counters, switches, the clients and their instances."""

from __future__ import annotations

from distro_conformance.release import Span
from distro_interop.differential.scripts.bodies import register, subscribe, sync_data
from distro_interop.differential.scripts.registry import script
from distro_interop.differential.stage import Stage


@script("http-services", "lists of services over HTTP")
async def services(stage: Stage) -> None:
    client = await stage.client("client")
    path, own = "/v1/ns/service/list", {"namespaceId": stage.namespace}
    await stage.http("nothing there", "GET", path, {**own, "pageNo": 1, "pageSize": 10})
    for name in ("web", "web2", "web3"):
        await stage.ask(f"register {name}", client, "InstanceRequest", register(stage, name))
    for parameters in (
        {"pageNo": 1, "pageSize": 10},
        {"pageNo": 2, "pageSize": 10},
        {"pageNo": 0, "pageSize": 10},
        {"pageNo": 1, "pageSize": 0},
        {"pageNo": 1, "pageSize": -1},
        {"pageNo": 1},
        {"pageSize": 10},
        {"pageNo": "first", "pageSize": 10},
        {"pageNo": "", "pageSize": 10},
        {"pageNo": 1, "pageSize": 10, "groupName": "OTHER"},
        {"pageNo": 1, "pageSize": 10, "groupName": ""},
    ):
        await stage.http(f"list {parameters}", "GET", path, {**own, **parameters})
    named = {**own, "serviceName": "web"}
    for other in ("/v1/ns/service", "/v1/ns/catalog/services", "/v1/ns/service/names"):
        await stage.http(f"GET {other}", "GET", other, {**named, "pageNo": 1, "pageSize": 10})


@script("operator", "status, counters, switches, owners")
async def operator(stage: Stage) -> None:
    path = "/v1/ns/operator"
    await stage.http("metrics", "GET", f"{path}/metrics")
    counters = await stage.http("counters", "GET", f"{path}/metrics", {"onlyStatus": "false"})
    stage.log.exchanges.pop()  # they count what all scripts did
    stage.log.note("names of the counters", sorted(counters) if isinstance(counters, dict) else counters)
    await stage.http("switches", "GET", f"{path}/switches")
    await stage.http("servers", "GET", f"{path}/servers")
    await stage.http("healthy servers", "GET", f"{path}/servers", {"healthy": "true"})
    for parameters in ({"ip": "10.0.0.1", "port": 80}, {"ip": "10.0.0.1"}, {"port": 80}, {"ip": "a", "port": "b"}):
        await stage.http(f"owner {parameters}", "GET", f"{path}/distro/client", parameters)
    for parameters in (
        {"entry": "pushEnabled"},
        {"value": "1"},
    ):
        await stage.http(f"turn {parameters}", "PUT", f"{path}/switches", parameters)
    for other in ("/v1/console/health/readiness", "/v1/console/health/liveness"):
        await stage.http(other, "GET", other)


@script("operator-v2", "the same in version 2", Span("2.2.0"))
async def operator_v2(stage: Stage) -> None:
    for path in ("/v2/ns/operator", "/v2/ns/ops"):
        await stage.http(f"{path} metrics", "GET", f"{path}/metrics")
        await stage.http(f"{path} switches", "GET", f"{path}/switches")
        await stage.http(f"{path} turn nothing", "PUT", f"{path}/switches")


@script("clients", "the clients of the node, and what they publish and subscribe", Span("2.2.0"))
async def clients(stage: Stage) -> None:
    client, owner = await stage.client("client"), stage.foreign_client("foreign")
    await stage.ask("register", client, "InstanceRequest", register(stage))
    await stage.ask("subscribe", client, "SubscribeServiceRequest", subscribe(stage))
    await stage.distro("change", "CHANGE", owner, sync_data(stage, owner, 1, 8002))
    path = "/v2/ns/client"
    listed = await stage.http("list", "GET", f"{path}/list")
    stage.log.exchanges.pop()  # it holds the clients of every script
    known = listed.get("data") if isinstance(listed, dict) else None
    stage.log.note("both are listed", isinstance(known, list) and {client.id, owner} <= set(known))
    for name, client_id in (("own", client.id), ("foreign", owner), ("unknown", "nobody")):
        asked = {"clientId": client_id}
        await stage.http(f"{name}: detail", "GET", path, asked)
        await stage.http(f"{name}: published", "GET", f"{path}/publish/list", asked)
        await stage.http(f"{name}: subscribed", "GET", f"{path}/subscribe/list", asked)
    await stage.http("no client", "GET", path)
    named = {"namespaceId": stage.namespace, "serviceName": "web", "groupName": "DEFAULT_GROUP", "ephemeral": "true"}
    for kind in ("publisher", "subscriber"):
        where = f"{path}/service/{kind}/list"
        await stage.http(f"{kind}s", "GET", where, named)
        await stage.http(f"{kind}s at an address", "GET", where, {**named, "ip": "10.0.0.1", "port": 8001})
        await stage.http(f"{kind}s at an ip", "GET", where, {**named, "ip": "10.0.0.1"})
        await stage.http(f"{kind}s of an unknown service", "GET", where, {**named, "serviceName": "none"})
        await stage.http(f"{kind}s without service", "GET", where, {"namespaceId": stage.namespace})
