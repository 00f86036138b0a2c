"""Registering over gRPC: what is published, in which form, and what members receive."""

from __future__ import annotations

from typing import Any

from distro_conformance.release import Span
from distro_interop.differential.script_run import ScriptRun
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

BATCH = Span("2.1.1")


@script("register", "a client registers, changes what it registered, deregisters it and leaves; members receive it")
async def registering(run: ScriptRun) -> None:
    client, other = await run.client("client"), await run.client("other")
    await run.ask("register", client, "InstanceRequest", register(run))
    await run.synced("the member receives it", client.id, 1)
    await run.ask("register again", client, "InstanceRequest", register(run, port=8002, metadata={"a": "b"}))
    await run.ask("another service", client, "InstanceRequest", register(run, "web2", 8003))
    await run.ask("another client", other, "InstanceRequest", register(run, port=8004))
    await run.ask("the same address", other, "InstanceRequest", register(run, "web2", 8003))
    await run.synced("both in one", client.id, 1)
    await run.synced("both of the other in one", other.id, 1)
    await run.ask("query", client, "ServiceQueryRequest", query(run))
    await run.ask("query web2", client, "ServiceQueryRequest", query(run, "web2"))
    await run.state("state of both")
    await run.ask("another address", client, "InstanceRequest", deregister(run, port=9))
    await run.ask("nothing left to take back", client, "InstanceRequest", deregister(run))
    await run.ask("an unknown service", client, "InstanceRequest", deregister(run, "none"))
    await run.ask("no instance", client, "InstanceRequest", {**deregister(run, "web2"), "instance": {}})
    await run.synced("one after the other is gone", client.id, 1)
    await run.verified("verify", other.id)
    await run.leave(other)
    await run.synced("delete", other.id, 1)
    await run.ask("query, empty", client, "ServiceQueryRequest", query(run))
    await run.state()


@script("instances", "instances in which one field is not as usual")
async def fields(run: ScriptRun) -> None:
    client = await run.client("client")
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
        body = {**register(run, f"web{number}", 8001), "instance": instance(**{"port": 8001, **changed})}
        await run.ask(f"register {changed}", client, "InstanceRequest", body)
    await run.shown()
    for number, changed in enumerate(kinds):
        await run.ask(f"query {changed}", client, "ServiceQueryRequest", query(run, f"web{number}"))
        parameters = {"serviceName": f"web{number}", "namespaceId": run.namespace, "ip": "10.0.0.1", "port": 8001}
        await run.http(f"detail {changed}", "GET", "/v1/ns/instance", parameters)
    await run.synced("the member receives it", client.id, 1, only_last=True)
    await run.state()


@script("instances-refused", "instances that should not be taken, each in a service of its own")
async def refused(run: ScriptRun) -> None:
    client = await run.client("client")
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
        body = {**register(run, f"web{number}"), "instance": instance(**{"port": 8001, **changed})}
        await run.ask(f"register {_short(changed)}", client, "InstanceRequest", body)
    await run.shown()
    for number, changed in enumerate(kinds):
        await run.ask(f"query {_short(changed)}", client, "ServiceQueryRequest", query(run, f"web{number}"))
    for step, body in (
        ("no instance", {**service(run, "x1"), "type": "registerInstance"}),
        ("no type", {**service(run, "x2"), "instance": instance()}),
        ("another type", {**service(run, "x3"), "type": "updateInstance", "instance": instance()}),
        ("deregister persistent", deregister(run, "web0", ephemeral=False)),
        ("deregister without instance", {**service(run, "web1"), "type": "deregisterInstance"}),
    ):
        await run.ask(step, client, "InstanceRequest", body)


@script("names", "names that are empty, blank, long or odd")
async def names(run: ScriptRun) -> None:
    client = await run.client("client")
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
        named = given({**service(run), "serviceName": "odd", "groupName": "ODD", **changed})
        body = {**named, "instance": instance()}
        await run.ask(f"register, {step}", client, "InstanceRequest", {**body, "type": "registerInstance"})
        await run.ask(f"query, {step}", client, "ServiceQueryRequest", {**query(run), **_gone(named, changed)})
        await run.ask(f"deregister, {step}", client, "InstanceRequest", {**body, "type": "deregisterInstance"})
        watching = {**named, "subscribe": False, "clusters": ""}
        await run.ask(f"unsubscribe, {step}", client, "SubscribeServiceRequest", watching)


@script("batch", "a client registers several instances of a service at once", BATCH)
async def batches(run: ScriptRun) -> None:
    client = await run.client("client")
    await run.ask("two", client, "BatchInstanceRequest", batch(run, 8001, 8002))
    await run.synced("the member receives two", client.id, 1)
    await run.ask("query two", client, "ServiceQueryRequest", query(run))
    await run.ask("one", client, "BatchInstanceRequest", batch(run, 8002))
    await run.ask("single, other service", client, "InstanceRequest", register(run, "web2", 8003))
    await run.synced("the member receives one", client.id, 1)
    await run.ask("query one", client, "ServiceQueryRequest", query(run))
    await run.state("state with a batch and a single one")
    await run.ask("single over batch", client, "InstanceRequest", register(run, port=8004))
    await run.ask("batch over single", client, "BatchInstanceRequest", batch(run, 8005, 8006, name="web2"))
    await run.synced("the member receives both", client.id, 1)
    await run.state("state after each took the other's place")
    await run.ask("none", client, "BatchInstanceRequest", batch(run, name="web2"))
    await run.ask("no list", client, "BatchInstanceRequest", {**service(run), "type": "batchRegisterInstance"})
    await run.ask("another type", client, "BatchInstanceRequest", {**batch(run, 1), "type": "registerInstance"})
    await run.ask("not an instance", client, "BatchInstanceRequest", {**batch(run), "instances": [7]})
    wrong = {**batch(run, name="web3"), "instances": [instance(port=70000), instance(ip="")]}
    await run.ask("illegal instances", client, "BatchInstanceRequest", wrong)
    await run.shown()
    for name in ("web", "web2", "web3"):
        await run.ask(f"query {name}", client, "ServiceQueryRequest", query(run, name))
    await run.ask("deregister", client, "InstanceRequest", deregister(run))
    await run.state()


@script("subscribe", "a subscriber is notified of what others register")
async def subscribing(run: ScriptRun) -> None:
    watcher, client = await run.client("watcher"), await run.client("client")
    await run.ask("subscribe, nothing there", watcher, "SubscribeServiceRequest", subscribe(run))
    await run.pushed("no push for nothing", watcher, 0)
    await run.ask("register", client, "InstanceRequest", register(run))
    await run.pushed("push", watcher, 1)
    await run.ask("change", client, "InstanceRequest", register(run, weight=3.0, metadata={"a": "b"}))
    await run.ask("change at once", client, "InstanceRequest", register(run, weight=4.0))
    await run.pushed("one push for both", watcher, 1)
    await run.ask("subscribe again", watcher, "SubscribeServiceRequest", subscribe(run))
    await run.pushed("push for subscribing again", watcher, 0)
    late = await run.client("late")
    await run.ask("late subscriber", late, "SubscribeServiceRequest", subscribe(run))
    await run.pushed("push to the late one", late, 1)
    await run.pushed("none to the first", watcher, 0)
    await run.ask("of a cluster", late, "SubscribeServiceRequest", subscribe(run, clusters="other"))
    await run.pushed("push for the cluster", late, 1)
    await run.ask("disabled", client, "InstanceRequest", register(run, enabled=False))
    await run.pushed("push of a disabled instance", watcher, 1)
    await run.pushed("the same for the cluster", late, 1)
    await run.ask("unsubscribe", late, "SubscribeServiceRequest", subscribe(run, on=False))
    await run.leave(client)
    await run.pushed("push of an empty list", watcher, 1)
    await run.pushed("none after unsubscribing", late, 0)
    await run.ask("unsubscribe from nothing", late, "SubscribeServiceRequest", subscribe(run, "none", on=False))
    await run.ask("grouped name", late, "SubscribeServiceRequest", subscribe(run, "DEFAULT_GROUP@@web"))
    await run.ask("fields missing", late, "SubscribeServiceRequest", service(run))
    await run.state()


def _short(changed: dict[str, Any]) -> str:
    return str(changed)[:120]


def _gone(named: dict[str, Any], changed: dict[str, Any]) -> dict[str, Any]:
    """The odd name in a query too; a name that is missing stays missing."""
    return {**named, **{key: None for key, value in changed.items() if value is None}}
