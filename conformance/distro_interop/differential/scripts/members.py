"""Members: reports in both directions, and the answers to requests for the member list."""

from __future__ import annotations

import json

from distro_conformance.release import Span
from distro_interop.differential.script_run import ScriptRun
from distro_interop.differential.scripts.registry import script

REPORT = "MemberReportRequest"


@script("member-report", "a member reports itself over gRPC")
async def over_grpc(run: ScriptRun) -> None:
    member = await run.client("member", labels={"source": "cluster"}, cluster=True)
    node = run.peer.as_member()
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
        await run.ask(step, member, REPORT, body)


@script("member-report-http", "a member reports itself over HTTP")
async def over_http(run: ScriptRun) -> None:
    node, path = run.peer.as_member(), "/v1/core/cluster/report"
    headers = {"Content-Type": "application/json", "User-Agent": "Nacos-Server:v" + run.peer.version}
    for step, body in (
        ("report", json.dumps(node).encode()),
        ("no address", json.dumps({**node, "address": None}).encode()),
        ("empty", b"{}"),
        ("malformed", b"{"),
        ("no body", b""),
        ("not on the list", json.dumps({**node, "ip": "127.0.0.9", "address": "127.0.0.9:8848"}).encode()),
        ("report again", json.dumps(node).encode()),
    ):
        await run.http(step, "POST", path, body=body, headers=headers)


@script("own-report", "what the node reports about itself")
async def own(run: ScriptRun) -> None:
    def count() -> int:
        return len(run.member.reports) + sum(arrival.type == REPORT for arrival in run.peer.arrivals)

    await run.until(count, 1, 10_000)
    over_grpc = [arrival.body for arrival in run.peer.arrivals if arrival.type == REPORT]
    run.log.note("over gRPC", over_grpc[-1] if over_grpc else None)
    run.log.note("over HTTP", run.member.reports[-1] if run.member.reports else None)


@script("member-list", "the member list that the node returns")
async def listed(run: ScriptRun) -> None:
    paths = ("nodes", "simple/nodes", "self", "health", "server/nodes")
    for path in paths:
        await run.http(path, "GET", f"/v1/core/cluster/{path}")
    await run.http("by keyword", "GET", "/v1/core/cluster/nodes", {"keyword": "10."})
    await run.http("a page", "GET", "/v1/core/cluster/nodes", {"pageNo": 1, "pageSize": 1})


@script("member-list-v2", "the same in version 2", Span("2.2.0"))
async def listed_v2(run: ScriptRun) -> None:
    for path in ("node/list", "node/self", "node/self/health", "nodes"):
        await run.http(path, "GET", f"/v2/core/cluster/{path}")
    for parameters in ({"state": "UP"}, {"state": "down"}, {"state": "asleep"}, {"address": "10."}):
        await run.http(f"list {parameters}", "GET", "/v2/core/cluster/node/list", parameters)
