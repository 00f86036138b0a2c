"""The envelope and the set-up: the answers to requests that never reach a handler."""

from __future__ import annotations

import json

from distro_conformance.wire.connection import raw
from distro_interop.differential.script_run import ScriptRun
from distro_interop.differential.scripts.bodies import query, register, subscribe
from distro_interop.differential.scripts.registry import script
from distro_protos import encode

INTERNAL = {"module": "internal"}


@script("envelope-unregistered", "a transport without set-up asks")
async def unregistered(run: ScriptRun) -> None:
    for port, is_cluster in (("SDK", False), ("cluster", True)):
        stranger = await run.bare_client(f"stranger at {port}", cluster=is_cluster)
        check = await run.ask(f"server check, {port} port", stranger, "ServerCheckRequest", INTERNAL)
        if check is not None:
            run.log.names[str(check.body.get("connectionId"))] = f"{{{stranger.name}}}"
        await run.ask(f"health check, {port} port", stranger, "HealthCheckRequest", INTERNAL)
        await run.ask(f"register, {port} port", stranger, "InstanceRequest", register(run))
        await run.ask(f"query, {port} port", stranger, "ServiceQueryRequest", query(run))
        await run.ask(f"snapshot, {port} port", stranger, "DistroDataRequest", {"dataOperation": "SNAPSHOT"})
        await run.ask(f"unknown type, {port} port", stranger, "NoSuchRequest", {})
        await run.call(f"malformed, {port} port", stranger, raw("InstanceRequest", b"{"))


@script("envelope-malformed", "payloads that no client would send")
async def malformed(run: ScriptRun) -> None:
    client = await run.client("client")
    for step, payload in (
        ("no type", raw("", b"{}")),
        ("unknown type", raw("NoSuchRequest", b"{}")),
        ("unknown type, malformed", raw("NoSuchRequest", b"{")),
        ("a Java class name", raw("com.alibaba.nacos.api.naming.remote.request.InstanceRequest", b"{}")),
        ("malformed", raw("InstanceRequest", b"{")),
        ("empty body", raw("InstanceRequest", b"")),
        ("null", raw("InstanceRequest", b"null")),
        ("an array", raw("InstanceRequest", b"[]")),
        ("a text", raw("InstanceRequest", b'"text"')),
        ("a number", raw("InstanceRequest", b"1")),
        ("no fields", raw("InstanceRequest", b"{}")),
        ("not UTF-8", raw("InstanceRequest", b'{"namespace":"\xff"}')),
        ("trailing text", raw("HealthCheckRequest", b"{} x")),
        ("unknown fields", raw("HealthCheckRequest", b'{"x":{"y":[1]}}')),
        ("empty health check", raw("HealthCheckRequest", b"")),
        ("single quotes", raw("HealthCheckRequest", b"{'module':'internal'}")),
        ("a comment", raw("HealthCheckRequest", b"/* x */ {}")),
        ("a number for a text", raw("ServiceQueryRequest", _changed(run, serviceName=7))),
        ("a text for a flag", raw("ServiceQueryRequest", _changed(run, healthyOnly="true"))),
        ("a word for a flag", raw("ServiceQueryRequest", _changed(run, healthyOnly="perhaps"))),
        ("a number for a flag", raw("ServiceQueryRequest", _changed(run, healthyOnly=1))),
        ("an object for a text", raw("ServiceQueryRequest", _changed(run, serviceName={}))),
        ("a list for a text", raw("ServiceQueryRequest", _changed(run, serviceName=["web"]))),
        ("an empty text for a number", raw("ServiceListRequest", _page(run, pageNo=""))),
        ("a word for a number", raw("ServiceListRequest", _page(run, pageNo="first"))),
        ("a fraction for a number", raw("ServiceListRequest", _page(run, pageNo=1.5))),
        ("a huge number", raw("ServiceListRequest", _page(run, pageNo=2**40))),
        ("a response", encode("InstanceResponse", {"resultCode": 200})),
        ("a request id", encode("HealthCheckRequest", {"requestId": "17", "headers": {"a": "b"}})),
    ):
        await run.call(step, client, payload)


@script("envelope-types", "requests that are meant for another receiver")
async def types(run: ScriptRun) -> None:
    client = await run.client("client")
    for name in (
        "ConnectionSetupRequest",
        "ConnectResetRequest",
        "ClientDetectionRequest",
        "SetupAckRequest",
        "PushAckRequest",
        "NotifySubscriberRequest",
        "NamingFuzzyWatchRequest",
        "PersistentInstanceRequest",
        "BatchInstanceRequest",
        "HealthCheckRequest",
        "ServerCheckRequest",
    ):
        answer = await run.ask(name, client, name, {})
        if name == "ServerCheckRequest" and answer is not None:
            run.log.names[str(answer.body.get("connectionId"))] = "{client}"


@script("set-up", "connections of other kinds than an SDK's")
async def set_up(run: ScriptRun) -> None:
    for number, (step, labels) in enumerate(
        (
            ("no labels", {"x": "y"}),
            ("no module", {"source": "sdk"}),
            ("module config", {"source": "sdk", "module": "config"}),
            ("another member", {"source": "cluster"}),
            ("module naming, no source", {"module": "naming"}),
        )
    ):
        client = await run.client(f"client {number}", labels=labels)
        await run.ask(f"{step}: register", client, "InstanceRequest", register(run, f"web{number}", 8001 + number))
        await run.ask(f"{step}: subscribe", client, "SubscribeServiceRequest", subscribe(run, "other"))
        await run.ask(f"{step}: deregister nothing", client, "InstanceRequest", register(run, "other2"))
    await run.shown()
    for number in range(5):
        await run.ask(f"query {number}", client, "ServiceQueryRequest", query(run, f"web{number}"))
    await run.state()


def _changed(run: ScriptRun, **fields: object) -> bytes:
    return json.dumps({**query(run), **fields}).encode()


def _page(run: ScriptRun, **fields: object) -> bytes:
    return json.dumps({**query(run), "pageNo": 1, "pageSize": 10, **fields}).encode()
