"""Reading over gRPC: queries, and lists of services page by page."""

from __future__ import annotations

from distro_interop.differential.scripts.bodies import page, query, register, service
from distro_interop.differential.scripts.registry import script
from distro_interop.differential.stage import Stage
from distro_protos import Json


@script("query", "queries with and without selectors")
async def querying(stage: Stage) -> None:
    clients = [await stage.client(f"client {number}") for number in range(4)]
    kinds: tuple[Json, ...] = (
        {},
        {"clusterName": "other"},
        {"healthy": False},
        {"enabled": False, "clusterName": "other"},
    )
    for number, changed in enumerate(kinds):
        body = register(stage, port=8001 + number, **changed)
        await stage.ask(f"register {number}", clients[number], "InstanceRequest", body)
    await stage.shown()
    asker = clients[0]
    for step, body in (
        ("all", query(stage)),
        ("healthy only", query(stage, healthyOnly=True)),
        ("of a cluster", query(stage, cluster="other")),
        ("of two clusters", query(stage, cluster="DEFAULT,other")),
        ("of two clusters, a blank between", query(stage, cluster="DEFAULT, other")),
        ("of no cluster", query(stage, cluster="none")),
        ("UDP port", query(stage, udpPort=5000)),
        ("unknown service", query(stage, "none")),
        ("grouped name", query(stage, "DEFAULT_GROUP@@web")),
        ("another group", query(stage, groupName="OTHER")),
        ("another namespace", query(stage, namespace="elsewhere")),
        ("only names", service(stage)),
        ("a misspelt selector", {**service(stage), "healthOnly": True}),
    ):
        await stage.ask(step, asker, "ServiceQueryRequest", body)


@script("service-list", "lists of services, page by page")
async def listing(stage: Stage) -> None:
    client = await stage.client("client")
    await stage.ask("nothing there", client, "ServiceListRequest", page(stage, 1, 10))
    for number in range(5):
        await stage.ask(f"register {number}", client, "InstanceRequest", register(stage, f"web{number}"))
    other = {**register(stage, "other"), "groupName": "OTHER"}
    await stage.ask("register in another group", client, "InstanceRequest", other)
    sizes = ((1, 10), (1, 5), (2, 5), (9, 5), (0, 10), (-1, 10), (1, 0), (1, -1), (0, 0), (2, 0))
    for number, size in sizes:
        await stage.ask(f"page {number} of size {size}", client, "ServiceListRequest", page(stage, number, size))
    for step, body in (
        ("another group", page(stage, 1, 10, groupName="OTHER")),
        ("no such group", page(stage, 1, 10, groupName="NONE")),
        ("empty group", page(stage, 1, 10, groupName="")),
        ("no group", service(stage, "", pageNo=1, pageSize=10, groupName=None)),
        ("no namespace", service(stage, "", pageNo=1, pageSize=10, namespace=None)),
        ("no such namespace", page(stage, 1, 10, namespace="elsewhere")),
        ("no page", service(stage, "")),
        ("a selector", page(stage, 1, 10, selector="{}")),
        ("a service name", page(stage, 1, 10, serviceName="web1")),
    ):
        await stage.ask(step, client, "ServiceListRequest", body)
    whole = await stage.ask("the whole list", client, "ServiceListRequest", page(stage, 1, 100))
    rows = [] if whole is None else whole.body.get("serviceNames") or []
    seen: list[str] = []
    for number in (1, 2, 3):
        found = await stage.ask(f"length of page {number}", client, "ServiceListRequest", page(stage, number, 2))
        seen += [] if found is None else found.body.get("serviceNames") or []
    del stage.log.exchanges[-3:]  # the names of a page are not guaranteed; those of all pages are
    stage.log.note("three pages of two are the whole list", sorted(seen) == sorted(rows))
