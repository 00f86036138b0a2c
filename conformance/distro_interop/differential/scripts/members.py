"""Members: reports in both directions, and how the list is shown."""

from __future__ import annotations

import json

from distro_conformance.release import Span
from distro_interop.differential.scripts.registry import script
from distro_interop.differential.stage import Stage

REPORT = "MemberReportRequest"


@script("member-report", "a member reports itself over gRPC")
async def over_grpc(stage: Stage) -> None:
    member = await stage.client("member", labels={"source": "cluster"}, cluster=True)
    node = stage.peer.as_member()
    for step, body in (
        ("report", {"node": node}),
        ("no node", {}),
        ("null node", {"node": None}),
        ("empty node", {"node": {}}),
        ("no address", {"node": {**node, "address": None}}),
        ("no ip", {"node": {**node, "ip": None}}),
        ("port -1", {"node": {**node, "port": -1}}),
        ("null extendInfo", {"node": {**node, "extendInfo": None}}),
        ("not on the list", {"node": {**node, "ip": "127.0.0.9", "address": "127.0.0.9:8848"}}),
        ("unknown state", {"node": {**node, "state": "ASLEEP"}}),
        ("a list for a node", {"node": []}),
        ("report again", {"node": node}),
    ):
        await stage.ask(step, member, REPORT, body)


@script("member-report-http", "a member reports itself over HTTP")
async def over_http(stage: Stage) -> None:
    node, path = stage.peer.as_member(), "/v1/core/cluster/report"
    headers = {"Content-Type": "application/json", "User-Agent": "Nacos-Server:v" + stage.peer.version}
    for step, body in (
        ("report", json.dumps(node).encode()),
        ("no address", json.dumps({**node, "address": None}).encode()),
        ("empty", b"{}"),
        ("malformed", b"{"),
        ("no body", b""),
        ("not on the list", json.dumps({**node, "ip": "127.0.0.9", "address": "127.0.0.9:8848"}).encode()),
        ("report again", json.dumps(node).encode()),
    ):
        await stage.http(step, "POST", path, body=body, headers=headers)


@script("own-report", "what the node reports of itself")
async def own(stage: Stage) -> None:
    def count() -> int:
        return len(stage.member.reports) + sum(arrival.type == REPORT for arrival in stage.peer.arrivals)

    await stage.until(count, 1, 10_000)
    over_grpc = [arrival.body for arrival in stage.peer.arrivals if arrival.type == REPORT]
    stage.log.note("over gRPC", over_grpc[-1] if over_grpc else None)
    stage.log.note("over HTTP", stage.member.reports[-1] if stage.member.reports else None)


@script("member-list", "the members as the node shows them")
async def listed(stage: Stage) -> None:
    paths = ("nodes", "simple/nodes", "self", "health", "server/nodes")
    for path in paths:
        await stage.http(path, "GET", f"/v1/core/cluster/{path}")
    await stage.http("by keyword", "GET", "/v1/core/cluster/nodes", {"keyword": "10."})
    await stage.http("a page", "GET", "/v1/core/cluster/nodes", {"pageNo": 1, "pageSize": 1})


@script("member-list-v2", "the same in version 2", Span("2.2.0"))
async def listed_v2(stage: Stage) -> None:
    for path in ("node/list", "node/self", "node/self/health", "nodes"):
        await stage.http(path, "GET", f"/v2/core/cluster/{path}")
    for parameters in ({"state": "UP"}, {"state": "down"}, {"state": "asleep"}, {"address": "10."}):
        await stage.http(f"list {parameters}", "GET", "/v2/core/cluster/node/list", parameters)
