"""Registering over gRPC: what is published, in which form, and what members receive."""

from __future__ import annotations

from typing import Any

from distro_conformance.release import Span
from distro_interop.differential.scripts.bodies import (
    batch,
    deregister,
    given,
    instance,
    query,
    register,
    service,
    subscribe,
)
from distro_interop.differential.scripts.registry import script
from distro_interop.differential.stage import Stage

BATCH = Span("2.1.1")


@script("register", "a client registers, changes what it registered, deregisters it and leaves; members receive it")
async def registering(stage: Stage) -> None:
    client, other = await stage.client("client"), await stage.client("other")
    await stage.ask("register", client, "InstanceRequest", register(stage))
    await stage.synced("the member receives it", client.id, 1)
    await stage.ask("register again", client, "InstanceRequest", register(stage, port=8002, metadata={"a": "b"}))
    await stage.ask("another service", client, "InstanceRequest", register(stage, "web2", 8003))
    await stage.ask("another client", other, "InstanceRequest", register(stage, port=8004))
    await stage.ask("the same address", other, "InstanceRequest", register(stage, "web2", 8003))
    await stage.synced("both in one", client.id, 1)
    await stage.synced("both of the other in one", other.id, 1)
    await stage.ask("query", client, "ServiceQueryRequest", query(stage))
    await stage.ask("query web2", client, "ServiceQueryRequest", query(stage, "web2"))
    await stage.state("state of both")
    await stage.ask("another address", client, "InstanceRequest", deregister(stage, port=9))
    await stage.ask("nothing left to take back", client, "InstanceRequest", deregister(stage))
    await stage.ask("an unknown service", client, "InstanceRequest", deregister(stage, "none"))
    await stage.ask("no instance", client, "InstanceRequest", {**deregister(stage, "web2"), "instance": {}})
    await stage.synced("one after the other is gone", client.id, 1)
    await stage.verified("verify", other.id)
    await stage.leave(other)
    await stage.synced("delete", other.id, 1)
    await stage.ask("query, empty", client, "ServiceQueryRequest", query(stage))
    await stage.state()


@script("instances", "instances in which one field is not as usual")
async def fields(stage: Stage) -> None:
    client = await stage.client("client")
    beats = {"heart.beat.interval": "1000", "heart.beat.timeout": "2000", "ip.delete.timeout": "3000"}
    kinds: tuple[dict[str, Any], ...] = (
        {"weight": 2.5},
        {"weight": 2},
        {"weight": 0},
        {"weight": 1e-3},
        {"enabled": False},
        {"healthy": False},
        {"clusterName": "other"},
        {"clusterName": None},
        {"clusterName": ""},
        {"instanceId": "mine"},
        {"instanceId": ""},
        {"metadata": None},
        {"metadata": {"k": "v", "empty": ""}},
        {"metadata": {"number": 1, "flag": True}},
        {"metadata": {f"preserved.{key}": value for key, value in beats.items()}},
        {"metadata": {"preserved.instance.id.generator": "snowflake"}, "instanceId": "kept"},
        {"metadata": {"publishInstanceWeight": "3"}},
        {"serviceName": "another"},
        {"ip": "web.example.org"},
        {"ip": "2001:db8::1"},
        {"port": 65535},
    )
    for number, changed in enumerate(kinds):
        body = {**register(stage, f"web{number}", 8001), "instance": instance(**{"port": 8001, **changed})}
        await stage.ask(f"register {changed}", client, "InstanceRequest", body)
    await stage.shown()
    for number, changed in enumerate(kinds):
        await stage.ask(f"query {changed}", client, "ServiceQueryRequest", query(stage, f"web{number}"))
        parameters = {"serviceName": f"web{number}", "namespaceId": stage.namespace, "ip": "10.0.0.1", "port": 8001}
        await stage.http(f"detail {changed}", "GET", "/v1/ns/instance", parameters)
    await stage.synced("the member receives it", client.id, 1, only_last=True)
    await stage.state()


@script("instances-refused", "instances that should not be taken, each in a service of its own")
async def refused(stage: Stage) -> None:
    client = await stage.client("client")
    kinds: tuple[dict[str, Any], ...] = (
        {"ip": None},
        {"ip": ""},
        {"ip": "no address"},
        {"port": None},
        {"port": 0},
        {"port": -1},
        {"port": 70000},
        {"port": "8001"},
        {"weight": -1.0},
        {"weight": 20000.0},
        {"weight": "2.0"},
        {"weight": "heavy"},
        {"clusterName": "a b"},
        {"clusterName": "a,b"},
        {"clusterName": "x" * 70},
        {"ephemeral": False},
        {"ephemeral": None},
        {"metadata": {"k" * 600: "v" * 600}},
        {"metadata": []},
        {"metadata": {"preserved.heart.beat.timeout": "1", "preserved.heart.beat.interval": "2"}},
        {"metadata": {"preserved.ip.delete.timeout": "1", "preserved.heart.beat.interval": "2"}},
        {"metadata": {"preserved.heart.beat.interval": "often"}},
    )
    for number, changed in enumerate(kinds):
        body = {**register(stage, f"web{number}"), "instance": instance(**{"port": 8001, **changed})}
        await stage.ask(f"register {_short(changed)}", client, "InstanceRequest", body)
    await stage.shown()
    for number, changed in enumerate(kinds):
        await stage.ask(f"query {_short(changed)}", client, "ServiceQueryRequest", query(stage, f"web{number}"))
    for step, body in (
        ("no instance", {**service(stage, "x1"), "type": "registerInstance"}),
        ("no type", {**service(stage, "x2"), "instance": instance()}),
        ("another type", {**service(stage, "x3"), "type": "updateInstance", "instance": instance()}),
        ("deregister persistent", deregister(stage, "web0", ephemeral=False)),
        ("deregister without instance", {**service(stage, "web1"), "type": "deregisterInstance"}),
    ):
        await stage.ask(step, client, "InstanceRequest", body)


@script("names", "names that are empty, blank, long or odd")
async def names(stage: Stage) -> None:
    client = await stage.client("client")
    odd = (
        ("blank service", {"serviceName": " "}),
        ("empty service", {"serviceName": ""}),
        ("no service", {"serviceName": None}),
        ("blank group", {"groupName": " "}),
        ("empty group", {"groupName": ""}),
        ("no group", {"groupName": None}),
        ("no namespace", {"namespace": None}),
        ("blank namespace", {"namespace": " "}),
        ("group in the service", {"serviceName": "A@@web"}),
        ("umlauts", {"serviceName": "wäb"}),
        ("slash", {"serviceName": "a/b c"}),
        ("long", {"serviceName": "n" * 600}),
        ("colon", {"serviceName": "a:b.c_d-e"}),
    )
    for step, changed in odd:
        named = given({**service(stage), "serviceName": "odd", "groupName": "ODD", **changed})
        body = {**named, "instance": instance()}
        await stage.ask(f"register, {step}", client, "InstanceRequest", {**body, "type": "registerInstance"})
        await stage.ask(f"query, {step}", client, "ServiceQueryRequest", {**query(stage), **_gone(named, changed)})
        await stage.ask(f"deregister, {step}", client, "InstanceRequest", {**body, "type": "deregisterInstance"})
        watching = {**named, "subscribe": False, "clusters": ""}
        await stage.ask(f"unsubscribe, {step}", client, "SubscribeServiceRequest", watching)


@script("batch", "a client registers several instances of a service at once", BATCH)
async def batches(stage: Stage) -> None:
    client = await stage.client("client")
    await stage.ask("two", client, "BatchInstanceRequest", batch(stage, 8001, 8002))
    await stage.synced("the member receives two", client.id, 1)
    await stage.ask("query two", client, "ServiceQueryRequest", query(stage))
    await stage.ask("one", client, "BatchInstanceRequest", batch(stage, 8002))
    await stage.ask("single, other service", client, "InstanceRequest", register(stage, "web2", 8003))
    await stage.synced("the member receives one", client.id, 1)
    await stage.ask("query one", client, "ServiceQueryRequest", query(stage))
    await stage.state("state with a batch and a single one")
    await stage.ask("single over batch", client, "InstanceRequest", register(stage, port=8004))
    await stage.ask("batch over single", client, "BatchInstanceRequest", batch(stage, 8005, 8006, name="web2"))
    await stage.synced("the member receives both", client.id, 1)
    await stage.state("state after each took the other's place")
    await stage.ask("none", client, "BatchInstanceRequest", batch(stage, name="web2"))
    await stage.ask("no list", client, "BatchInstanceRequest", {**service(stage), "type": "batchRegisterInstance"})
    await stage.ask("another type", client, "BatchInstanceRequest", {**batch(stage, 1), "type": "registerInstance"})
    await stage.ask("not an instance", client, "BatchInstanceRequest", {**batch(stage), "instances": [7]})
    wrong = {**batch(stage, name="web3"), "instances": [instance(port=70000), instance(ip="")]}
    await stage.ask("illegal instances", client, "BatchInstanceRequest", wrong)
    await stage.shown()
    for name in ("web", "web2", "web3"):
        await stage.ask(f"query {name}", client, "ServiceQueryRequest", query(stage, name))
    await stage.ask("deregister", client, "InstanceRequest", deregister(stage))
    await stage.state()


@script("subscribe", "a subscriber is notified of what others register")
async def subscribing(stage: Stage) -> None:
    watcher, client = await stage.client("watcher"), await stage.client("client")
    await stage.ask("subscribe, nothing there", watcher, "SubscribeServiceRequest", subscribe(stage))
    await stage.pushed("no push for nothing", watcher, 0)
    await stage.ask("register", client, "InstanceRequest", register(stage))
    await stage.pushed("push", watcher, 1)
    await stage.ask("change", client, "InstanceRequest", register(stage, weight=3.0, metadata={"a": "b"}))
    await stage.ask("change at once", client, "InstanceRequest", register(stage, weight=4.0))
    await stage.pushed("one push for both", watcher, 1)
    await stage.ask("subscribe again", watcher, "SubscribeServiceRequest", subscribe(stage))
    await stage.pushed("push for subscribing again", watcher, 0)
    late = await stage.client("late")
    await stage.ask("late subscriber", late, "SubscribeServiceRequest", subscribe(stage))
    await stage.pushed("push to the late one", late, 1)
    await stage.pushed("none to the first", watcher, 0)
    await stage.ask("of a cluster", late, "SubscribeServiceRequest", subscribe(stage, clusters="other"))
    await stage.pushed("push for the cluster", late, 1)
    await stage.ask("disabled", client, "InstanceRequest", register(stage, enabled=False))
    await stage.pushed("push of a disabled instance", watcher, 1)
    await stage.pushed("the same for the cluster", late, 1)
    await stage.ask("unsubscribe", late, "SubscribeServiceRequest", subscribe(stage, on=False))
    await stage.leave(client)
    await stage.pushed("push of an empty list", watcher, 1)
    await stage.pushed("none after unsubscribing", late, 0)
    await stage.ask("unsubscribe from nothing", late, "SubscribeServiceRequest", subscribe(stage, "none", on=False))
    await stage.ask("grouped name", late, "SubscribeServiceRequest", subscribe(stage, "DEFAULT_GROUP@@web"))
    await stage.ask("fields missing", late, "SubscribeServiceRequest", service(stage))
    await stage.state()


def _short(changed: dict[str, Any]) -> str:
    return str(changed)[:120]


def _gone(named: dict[str, Any], changed: dict[str, Any]) -> dict[str, Any]:
    """The odd name in a query too; a name that is missing stays missing."""
    return {**named, **{key: None for key, value in changed.items() if value is None}}
