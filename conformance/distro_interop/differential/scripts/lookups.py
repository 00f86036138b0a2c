"""Reading over gRPC: queries, and lists of services page by page."""

from __future__ import annotations

from distro_interop.differential.script_run import ScriptRun
from distro_interop.differential.scripts.bodies import page, query, register, service
from distro_interop.differential.scripts.registry import script
from distro_protos import Json


@script("query", "queries with and without selectors")
async def querying(run: ScriptRun) -> None:
    clients = [await run.client(f"client {number}") for number in range(4)]
    kinds: tuple[Json, ...] = (
        {},
        {"clusterName": "other"},
        {"healthy": False},
        {"enabled": False, "clusterName": "other"},
    )
    for number, changed in enumerate(kinds):
        body = register(run, port=8001 + number, **changed)
        await run.ask(f"register {number}", clients[number], "InstanceRequest", body)
    await run.shown()
    asker = clients[0]
    for step, body in (
        ("all", query(run)),
        ("healthy only", query(run, healthyOnly=True)),
        ("of a cluster", query(run, cluster="other")),
        ("of two clusters", query(run, cluster="DEFAULT,other")),
        ("of two clusters, a blank between", query(run, cluster="DEFAULT, other")),
        ("of no cluster", query(run, cluster="none")),
        ("UDP port", query(run, udpPort=5000)),
        ("unknown service", query(run, "none")),
        ("grouped name", query(run, "DEFAULT_GROUP@@web")),
        ("another group", query(run, groupName="OTHER")),
        ("another namespace", query(run, namespace="elsewhere")),
        ("only names", service(run)),
        ("a misspelt selector", {**service(run), "healthOnly": True}),
    ):
        await run.ask(step, asker, "ServiceQueryRequest", body)


@script("service-list", "lists of services, page by page")
async def listing(run: ScriptRun) -> None:
    client = await run.client("client")
    await run.ask("nothing there", client, "ServiceListRequest", page(run, 1, 10))
    for number in range(5):
        await run.ask(f"register {number}", client, "InstanceRequest", register(run, f"web{number}"))
    other = {**register(run, "other"), "groupName": "OTHER"}
    await run.ask("register in another group", client, "InstanceRequest", other)
    sizes = ((1, 10), (1, 5), (2, 5), (9, 5), (0, 10), (-1, 10), (1, 0), (1, -1), (0, 0), (2, 0))
    for number, size in sizes:
        await run.ask(f"page {number} of size {size}", client, "ServiceListRequest", page(run, number, size))
    for step, body in (
        ("another group", page(run, 1, 10, groupName="OTHER")),
        ("no such group", page(run, 1, 10, groupName="NONE")),
        ("empty group", page(run, 1, 10, groupName="")),
        ("no group", service(run, "", pageNo=1, pageSize=10, groupName=None)),
        ("no namespace", service(run, "", pageNo=1, pageSize=10, namespace=None)),
        ("no such namespace", page(run, 1, 10, namespace="elsewhere")),
        ("no page", service(run, "")),
        ("a selector", page(run, 1, 10, selector="{}")),
        ("a service name", page(run, 1, 10, serviceName="web1")),
    ):
        await run.ask(step, client, "ServiceListRequest", body)
    whole = await run.ask("the whole list", client, "ServiceListRequest", page(run, 1, 100))
    rows = [] if whole is None else whole.body.get("serviceNames") or []
    seen: list[str] = []
    for number in (1, 2, 3):
        found = await run.ask(f"length of page {number}", client, "ServiceListRequest", page(run, number, 2))
        seen += [] if found is None else found.body.get("serviceNames") or []
    del run.log.exchanges[-3:]  # the names of a page are not guaranteed; those of all pages are
    run.log.note("three pages of two are the whole list", sorted(seen) == sorted(rows))
