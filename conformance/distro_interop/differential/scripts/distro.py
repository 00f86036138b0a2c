"""Distro as a member speaks it: syncs, verifies, snapshots and queries, well formed and not."""

from __future__ import annotations

from typing import Any

from distro_conformance.node.replies import FAILURE
from distro_conformance.release import Span
from distro_conformance.wire.messages import distro_request, pack
from distro_interop.differential.scripts.bodies import published, query, register, subscribe, sync_data
from distro_interop.differential.scripts.registry import script
from distro_interop.differential.stage import Stage


@script("distro-sync", "a member sends its client, changes it, verifies and deletes it")
async def syncing(stage: Stage) -> None:
    owner, watcher = stage.foreign_client("foreign"), await stage.client("watcher")
    await stage.ask("subscribe", watcher, "SubscribeServiceRequest", subscribe(stage))
    await stage.distro("verify of an unknown client", "VERIFY", owner, {"clientId": owner, "revision": 1})
    await stage.distro("query of an unknown client", "QUERY", owner)
    await stage.distro("delete of an unknown client", "DELETE", owner)
    await stage.distro("change", "CHANGE", owner, sync_data(stage, owner, 3, 8001, 8002))
    await stage.pushed("push", watcher, 1)
    for revision in (3, 2, 4, 0, -1):
        await stage.distro(f"verify {revision}", "VERIFY", owner, {"clientId": owner, "revision": revision})
    await stage.distro("verify without revision", "VERIFY", owner, {"clientId": owner})
    await stage.distro("query", "QUERY", owner)
    await stage.state("state with two")
    await stage.distro("add", "ADD", owner, sync_data(stage, owner, 5, 8003))
    await stage.distro("verify 5", "VERIFY", owner, {"clientId": owner, "revision": 5})
    await stage.distro("verify 3 again", "VERIFY", owner, {"clientId": owner, "revision": 3})
    await stage.pushed("push of a changed port", watcher, 1)
    await stage.ask("query web", watcher, "ServiceQueryRequest", query(stage))
    await stage.ask("query web1", watcher, "ServiceQueryRequest", query(stage, "web1"))
    await stage.distro("the same again", "CHANGE", owner, sync_data(stage, owner, 5, 8003))
    await stage.state("state with one")
    await stage.distro("nothing published", "CHANGE", owner, sync_data(stage, owner, 6))
    await stage.distro("query of an empty client", "QUERY", owner)
    await stage.distro("delete", "DELETE", owner)
    await stage.distro("query after delete", "QUERY", owner)
    await stage.pushed("push of an empty list", watcher, 1)
    await stage.synced("no word of a foreign client", owner, 0)
    await stage.state()


@script("distro-content", "replicas with all that instances can carry")
async def contents(stage: Stage) -> None:
    asker = await stage.client("asker")
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
        owner = stage.foreign_client(f"foreign {number}")
        names = {"serviceNames": [f"web{number}"], "instancePublishInfos": [published(8001, **extend)]}
        await stage.distro(f"change {extend}", "CHANGE", owner, sync_data(stage, owner, 1, 8001, **names))
        await stage.distro(f"query {extend}", "QUERY", owner)
    await stage.shown()
    for number, extend in enumerate(kinds):
        await stage.ask(f"list {extend}", asker, "ServiceQueryRequest", query(stage, f"web{number}"))
    await stage.state()


@script("distro-batch", "a member sends a client with a batch", Span("2.1.1"))
async def batch(stage: Stage) -> None:
    owner, asker = stage.foreign_client("foreign"), await stage.client("asker")
    inside = {"port": 0, "healthy": False, "instancePublishInfos": [published(8001), published(8002)]}
    data = {
        "namespaces": [stage.namespace],
        "groupNames": ["DEFAULT_GROUP"],
        "serviceNames": ["web"],
        "batchInstancePublishInfos": [inside],
    }
    whole = sync_data(stage, owner, 1, batchInstanceData=data)
    await stage.distro("change", "CHANGE", owner, whole)
    await stage.distro("query", "QUERY", owner)
    await stage.shown()
    await stage.ask("list", asker, "ServiceQueryRequest", query(stage))
    await stage.distro("the batch is gone", "CHANGE", owner, sync_data(stage, owner, 2))
    await stage.shown()
    await stage.ask("list after it is gone", asker, "ServiceQueryRequest", query(stage))
    await stage.state()


@script("distro-malformed", "Distro requests that no member would send")
async def malformed(stage: Stage) -> None:
    owner = stage.foreign_client("foreign")
    whole = sync_data(stage, owner, 1, 8001)
    change = distro_request("CHANGE", owner, target=stage.target.address, content=whole)
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
        await stage.send(step, body)
        await stage.distro(f"left by: {step}", "QUERY", owner)
        await stage.peer.delete(owner)
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
        client = stage.foreign_client(f"client with {step}")
        content = sync_data(stage, client, 1, 8001, **changed)
        await stage.distro(step, "CHANGE", client, content)
        await stage.distro(f"left by: {step}", "QUERY", client)
        await stage.peer.delete(client)
    await stage.state("snapshot with data", {**change, "dataOperation": "SNAPSHOT"})
    await stage.distro("verify with a revision that is a word", "VERIFY", owner, {"clientId": owner, "revision": "x"})
    await stage.state()


@script("distro-native", "a member speaks of a client that is connected to this node")
async def native(stage: Stage) -> None:
    client = await stage.client("client")
    await stage.ask("register", client, "InstanceRequest", register(stage))
    await stage.synced("the member receives it", client.id, 1)
    await stage.distro("verify", "VERIFY", client.id, {"clientId": client.id, "revision": 1})
    await stage.distro("query", "QUERY", client.id)
    await stage.distro("change", "CHANGE", client.id, sync_data(stage, client.id, 7, 8009))
    await stage.synced("what the member receives then", client.id, 0)
    await stage.state("state after the change")
    await stage.ask("register another", client, "InstanceRequest", register(stage, "web2", 8002))
    await stage.synced("what the member receives of another", client.id, 1)
    await stage.distro("delete", "DELETE", client.id)
    await stage.synced("what the member receives after the delete", client.id, 1)
    await stage.state("state after the delete")
    await stage.ask("register after the delete", client, "InstanceRequest", register(stage, "web3", 8003))
    await stage.ask("subscribe after the delete", client, "SubscribeServiceRequest", subscribe(stage))
    await stage.synced("what the member receives of that", client.id, 0)
    await stage.state()


@script("distro-refused-by-member", "what a node does when the member refuses")
async def refused(stage: Stage) -> None:
    client = await stage.client("client")
    stage.peer.answer("VERIFY", FAILURE, client=client.id)
    await stage.ask("register", client, "InstanceRequest", register(stage))
    await stage.synced("change", client.id, 1)
    await stage.verified("verify, refused", client.id)
    await stage.synced("the whole client again", client.id, 1)
    stage.peer.answer_normally()


@script("distro-on-sdk-port", "Distro and reports on the port of the SDKs")
async def on_sdk_port(stage: Stage) -> None:
    client, owner = await stage.client("client"), stage.foreign_client("foreign")
    change = distro_request("CHANGE", owner, target=stage.target.address, content=sync_data(stage, owner, 1, 8001))
    await stage.ask("change", client, "DistroDataRequest", change)
    await stage.ask("query", client, "DistroDataRequest", distro_request("QUERY", owner))
    await stage.ask("delete", client, "DistroDataRequest", distro_request("DELETE", owner))
    await stage.ask("report", client, "MemberReportRequest", {"node": stage.peer.as_member()})
    member = await stage.client("member", labels={"source": "cluster"}, cluster=True)
    await stage.ask("naming on the cluster port", member, "InstanceRequest", register(stage))
    await stage.ask("query on the cluster port", member, "ServiceQueryRequest", query(stage))
    await stage.state()


def _of_type(body: dict[str, Any], resource_type: str | None) -> dict[str, Any]:
    data = body["distroData"]
    return {**body, "distroData": {**data, "distroKey": {**data["distroKey"], "resourceType": resource_type}}}
