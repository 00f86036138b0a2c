"""Distro as a member speaks it: syncs, verifies, snapshots and queries, well formed and not."""

from __future__ import annotations

from typing import Any

from distro_conformance.node.replies import FAILURE
from distro_conformance.release import Span
from distro_conformance.wire.messages import distro_request, pack
from distro_interop.differential.script_run import ScriptRun
from distro_interop.differential.scripts.bodies import published, query, register, subscribe, sync_data
from distro_interop.differential.scripts.registry import script


@script("distro-sync", "a member sends its client, changes it, verifies and deletes it")
async def syncing(run: ScriptRun) -> None:
    owner, watcher = run.foreign_client("foreign"), await run.client("watcher")
    await run.ask("subscribe", watcher, "SubscribeServiceRequest", subscribe(run))
    await run.distro("verify of an unknown client", "VERIFY", owner, {"clientId": owner, "revision": 1})
    await run.distro("query of an unknown client", "QUERY", owner)
    await run.distro("delete of an unknown client", "DELETE", owner)
    await run.distro("change", "CHANGE", owner, sync_data(run, owner, 3, 8001, 8002))
    await run.pushed("push", watcher, 1)
    for revision in (3, 2, 4, 0, -1):
        await run.distro(f"verify {revision}", "VERIFY", owner, {"clientId": owner, "revision": revision})
    await run.distro("verify without revision", "VERIFY", owner, {"clientId": owner})
    await run.distro("query", "QUERY", owner)
    await run.state("state with two")
    await run.distro("add", "ADD", owner, sync_data(run, owner, 5, 8003))
    await run.distro("verify 5", "VERIFY", owner, {"clientId": owner, "revision": 5})
    await run.distro("verify 3 again", "VERIFY", owner, {"clientId": owner, "revision": 3})
    await run.pushed("push of a changed port", watcher, 1)
    await run.ask("query web", watcher, "ServiceQueryRequest", query(run))
    await run.ask("query web1", watcher, "ServiceQueryRequest", query(run, "web1"))
    await run.distro("the same again", "CHANGE", owner, sync_data(run, owner, 5, 8003))
    await run.state("state with one")
    await run.distro("nothing published", "CHANGE", owner, sync_data(run, owner, 6))
    await run.distro("query of an empty client", "QUERY", owner)
    await run.distro("delete", "DELETE", owner)
    await run.distro("query after delete", "QUERY", owner)
    await run.pushed("push of an empty list", watcher, 1)
    await run.synced("no word of a foreign client", owner, 0)
    await run.state()


@script("distro-content", "replicas with all that instances can carry")
async def contents(run: ScriptRun) -> None:
    asker = await run.client("asker")
    kinds: tuple[dict[str, Any], ...] = (
        {"k": "v"},
        {"publishInstanceWeight": 2.5},
        {"publishInstanceEnable": False},
        {"customInstanceId": "mine"},
        {"preserved.heart.beat.interval": "1000"},
        {"number": 1, "flag": True, "nothing": None},
        {"publishInstanceWeight": 1.0, "publishInstanceEnable": True},
    )
    for number, extend in enumerate(kinds):
        owner = run.foreign_client(f"foreign {number}")
        names = {"serviceNames": [f"web{number}"], "instancePublishInfos": [published(8001, **extend)]}
        await run.distro(f"change {extend}", "CHANGE", owner, sync_data(run, owner, 1, 8001, **names))
        await run.distro(f"query {extend}", "QUERY", owner)
    await run.shown()
    for number, extend in enumerate(kinds):
        await run.ask(f"list {extend}", asker, "ServiceQueryRequest", query(run, f"web{number}"))
    await run.state()


@script("distro-batch", "a member sends a client with a batch", Span("2.1.1"))
async def batch(run: ScriptRun) -> None:
    owner, asker = run.foreign_client("foreign"), await run.client("asker")
    inside = {"port": 0, "healthy": False, "instancePublishInfos": [published(8001), published(8002)]}
    data = {
        "namespaces": [run.namespace],
        "groupNames": ["DEFAULT_GROUP"],
        "serviceNames": ["web"],
        "batchInstancePublishInfos": [inside],
    }
    whole = sync_data(run, owner, 1, batchInstanceData=data)
    await run.distro("change", "CHANGE", owner, whole)
    await run.distro("query", "QUERY", owner)
    await run.shown()
    await run.ask("list", asker, "ServiceQueryRequest", query(run))
    await run.distro("the batch is gone", "CHANGE", owner, sync_data(run, owner, 2))
    await run.shown()
    await run.ask("list after it is gone", asker, "ServiceQueryRequest", query(run))
    await run.state()


@script("distro-malformed", "Distro requests that no member would send")
async def malformed(run: ScriptRun) -> None:
    owner = run.foreign_client("foreign")
    whole = sync_data(run, owner, 1, 8001)
    change = distro_request("CHANGE", owner, target=run.target.address, content=whole)
    data = change["distroData"]
    key = data["distroKey"]
    for step, body in (
        ("no operation", {"module": "cluster"}),
        ("unknown operation", {**change, "dataOperation": "MOVE"}),
        ("null operation", {**change, "dataOperation": None}),
        ("no data", {"dataOperation": "CHANGE"}),
        ("no key", {**change, "distroData": {"type": "CHANGE", "content": data["content"]}}),
        ("no inner type", {**change, "distroData": {**data, "type": None}}),
        ("unknown inner type", {**change, "distroData": {**data, "type": "MOVE"}}),
        ("inner type VERIFY", {**change, "distroData": {**data, "type": "VERIFY"}}),
        ("inner type DELETE", {**change, "distroData": {**data, "type": "DELETE"}}),
        ("outer DELETE, inner CHANGE", {**change, "dataOperation": "DELETE"}),
        ("unknown resource type", _of_type(change, "Nacos:Naming:v9:ClientData")),
        ("resource type of 1.x", _of_type(change, "com.alibaba.nacos.naming.iplist.")),
        ("no resource type", _of_type(change, None)),
        ("verify of an unknown resource type", _of_type({**change, "dataOperation": "VERIFY"}, "other")),
        ("query of an unknown resource type", _of_type({**change, "dataOperation": "QUERY"}, "other")),
        ("another resource key", {**change, "distroData": {**data, "distroKey": {**key, "resourceKey": "another"}}}),
        ("no content", {**change, "distroData": {**data, "content": None}}),
        ("content is no Base64", {**change, "distroData": {**data, "content": "!"}}),
        ("content is no JSON", {**change, "distroData": {**data, "content": "e3g="}}),
        ("content is a list", {**change, "distroData": {**data, "content": pack([])}}),
        ("verify without content", distro_request("VERIFY", owner)),
        ("query without key", {"dataOperation": "QUERY", "distroData": {"type": "QUERY"}}),
        ("delete without key", {"dataOperation": "DELETE", "distroData": {"type": "DELETE"}}),
    ):
        await run.send(step, body)
        await run.distro(f"left by: {step}", "QUERY", owner)
        await run.peer.delete(owner)
    for step, changed in (
        ("no client id", {"clientId": None}),
        ("no attributes", {"attributes": None}),
        ("no revision", {"attributes": {"clientAttributes": {}}}),
        ("revision as text", {"attributes": {"clientAttributes": {"revision": "1"}}}),
        ("revision beyond 32 bits", {"attributes": {"clientAttributes": {"revision": 2**40}}}),
        ("negative revision", {"attributes": {"clientAttributes": {"revision": -7}}}),
        ("no namespaces", {"namespaces": None}),
        ("fewer groups", {"groupNames": []}),
        ("no instances", {"instancePublishInfos": None}),
        ("fewer instances", {"instancePublishInfos": []}),
        ("no extendDatum", {"instancePublishInfos": [{"ip": "10.0.0.2", "port": 8001, "healthy": True}]}),
        ("no batch data", {"batchInstanceData": None}),
        ("blank service", {"serviceNames": [""]}),
        ("unknown field", {"more": 1}),
    ):
        client = run.foreign_client(f"client with {step}")
        content = sync_data(run, client, 1, 8001, **changed)
        await run.distro(step, "CHANGE", client, content)
        await run.distro(f"left by: {step}", "QUERY", client)
        await run.peer.delete(client)
    await run.state("snapshot with data", {**change, "dataOperation": "SNAPSHOT"})
    await run.distro("verify with a revision that is a word", "VERIFY", owner, {"clientId": owner, "revision": "x"})
    await run.state()


@script("distro-native", "a member speaks of a client that is connected to this node")
async def native(run: ScriptRun) -> None:
    client = await run.client("client")
    await run.ask("register", client, "InstanceRequest", register(run))
    await run.synced("the member receives it", client.id, 1)
    await run.distro("verify", "VERIFY", client.id, {"clientId": client.id, "revision": 1})
    await run.distro("query", "QUERY", client.id)
    await run.distro("change", "CHANGE", client.id, sync_data(run, client.id, 7, 8009))
    await run.synced("what the member receives then", client.id, 0)
    await run.state("state after the change")
    await run.ask("register another", client, "InstanceRequest", register(run, "web2", 8002))
    await run.synced("what the member receives of another", client.id, 1)
    await run.distro("delete", "DELETE", client.id)
    await run.synced("what the member receives after the delete", client.id, 1)
    await run.state("state after the delete")
    await run.ask("register after the delete", client, "InstanceRequest", register(run, "web3", 8003))
    await run.ask("subscribe after the delete", client, "SubscribeServiceRequest", subscribe(run))
    await run.synced("what the member receives of that", client.id, 0)
    await run.state()


@script("distro-refused-by-member", "what a node does when the member refuses")
async def refused(run: ScriptRun) -> None:
    client = await run.client("client")
    run.peer.answer("VERIFY", FAILURE, client=client.id)
    await run.ask("register", client, "InstanceRequest", register(run))
    await run.synced("change", client.id, 1)
    await run.verified("verify, refused", client.id)
    await run.synced("the whole client again", client.id, 1)
    run.peer.answer_normally()


@script("distro-on-sdk-port", "Distro and reports on the port of the SDKs")
async def on_sdk_port(run: ScriptRun) -> None:
    client, owner = await run.client("client"), run.foreign_client("foreign")
    change = distro_request("CHANGE", owner, target=run.target.address, content=sync_data(run, owner, 1, 8001))
    await run.ask("change", client, "DistroDataRequest", change)
    await run.ask("query", client, "DistroDataRequest", distro_request("QUERY", owner))
    await run.ask("delete", client, "DistroDataRequest", distro_request("DELETE", owner))
    await run.ask("report", client, "MemberReportRequest", {"node": run.peer.as_member()})
    member = await run.client("member", labels={"source": "cluster"}, cluster=True)
    await run.ask("naming on the cluster port", member, "InstanceRequest", register(run))
    await run.ask("query on the cluster port", member, "ServiceQueryRequest", query(run))
    await run.state()


def _of_type(body: dict[str, Any], resource_type: str | None) -> dict[str, Any]:
    data = body["distroData"]
    return {**body, "distroData": {**data, "distroKey": {**data["distroKey"], "resourceType": resource_type}}}
