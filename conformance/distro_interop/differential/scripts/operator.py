"""The pages of operators: service lists, counters, switches, the clients and their instances."""

from __future__ import annotations

from distro_conformance.release import Span
from distro_interop.differential.script_run import ScriptRun
from distro_interop.differential.scripts.bodies import register, subscribe, sync_data
from distro_interop.differential.scripts.registry import script


@script("http-services", "lists of services over HTTP")
async def services(run: ScriptRun) -> None:
    client = await run.client("client")
    path, own = "/v1/ns/service/list", {"namespaceId": run.namespace}
    await run.http("nothing there", "GET", path, {**own, "pageNo": 1, "pageSize": 10})
    for name in ("web", "web2", "web3"):
        await run.ask(f"register {name}", client, "InstanceRequest", register(run, name))
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
        await run.http(f"list {parameters}", "GET", path, {**own, **parameters})
    named = {**own, "serviceName": "web"}
    for other in ("/v1/ns/service", "/v1/ns/catalog/services", "/v1/ns/service/names"):
        await run.http(f"GET {other}", "GET", other, {**named, "pageNo": 1, "pageSize": 10})


@script("operator", "status, counters, switches, owners")
async def operator(run: ScriptRun) -> None:
    path = "/v1/ns/operator"
    await run.http("metrics", "GET", f"{path}/metrics")
    counters = await run.http("counters", "GET", f"{path}/metrics", {"onlyStatus": "false"})
    run.log.exchanges.pop()  # they count what all scripts did
    run.log.note("names of the counters", sorted(counters) if isinstance(counters, dict) else counters)
    await run.http("switches", "GET", f"{path}/switches")
    await run.http("servers", "GET", f"{path}/servers")
    await run.http("healthy servers", "GET", f"{path}/servers", {"healthy": "true"})
    for parameters in ({"ip": "10.0.0.1", "port": 80}, {"ip": "10.0.0.1"}, {"port": 80}, {"ip": "a", "port": "b"}):
        await run.http(f"owner {parameters}", "GET", f"{path}/distro/client", parameters)
    for parameters in (
        {"entry": "pushEnabled"},
        {"value": "1"},
    ):
        await run.http(f"turn {parameters}", "PUT", f"{path}/switches", parameters)
    for other in ("/v1/console/health/readiness", "/v1/console/health/liveness"):
        await run.http(other, "GET", other)


@script("operator-v2", "the same in version 2", Span("2.2.0"))
async def operator_v2(run: ScriptRun) -> None:
    for path in ("/v2/ns/operator", "/v2/ns/ops"):
        await run.http(f"{path} metrics", "GET", f"{path}/metrics")
        await run.http(f"{path} switches", "GET", f"{path}/switches")
        await run.http(f"{path} turn nothing", "PUT", f"{path}/switches")


@script("clients", "the clients of the node, and what they publish and subscribe", Span("2.2.0"))
async def clients(run: ScriptRun) -> None:
    client, owner = await run.client("client"), run.foreign_client("foreign")
    await run.ask("register", client, "InstanceRequest", register(run))
    await run.ask("subscribe", client, "SubscribeServiceRequest", subscribe(run))
    await run.distro("change", "CHANGE", owner, sync_data(run, owner, 1, 8002))
    path = "/v2/ns/client"
    listed = await run.http("list", "GET", f"{path}/list")
    run.log.exchanges.pop()  # it holds the clients of every script
    known = listed.get("data") if isinstance(listed, dict) else None
    run.log.note("both are listed", isinstance(known, list) and {client.id, owner} <= set(known))
    for name, client_id in (("own", client.id), ("foreign", owner), ("unknown", "nobody")):
        asked = {"clientId": client_id}
        await run.http(f"{name}: detail", "GET", path, asked)
        await run.http(f"{name}: published", "GET", f"{path}/publish/list", asked)
        await run.http(f"{name}: subscribed", "GET", f"{path}/subscribe/list", asked)
    await run.http("no client", "GET", path)
    named = {"namespaceId": run.namespace, "serviceName": "web", "groupName": "DEFAULT_GROUP", "ephemeral": "true"}
    for kind in ("publisher", "subscriber"):
        where = f"{path}/service/{kind}/list"
        await run.http(f"{kind}s", "GET", where, named)
        await run.http(f"{kind}s at an address", "GET", where, {**named, "ip": "10.0.0.1", "port": 8001})
        await run.http(f"{kind}s at an ip", "GET", where, {**named, "ip": "10.0.0.1"})
        await run.http(f"{kind}s of an unknown service", "GET", where, {**named, "serviceName": "none"})
        await run.http(f"{kind}s without service", "GET", where, {"namespaceId": run.namespace})
