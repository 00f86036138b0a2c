"""Pushes over UDP, to clients of 1.x that name a port when they ask for a list."""

from __future__ import annotations

from distro_conformance.release import Span
from distro_interop.differential.script_run import ScriptRun
from distro_interop.differential.scripts.bodies import deregister, register
from distro_interop.differential.scripts.registry import script
from distro_interop.differential.udp_client import UdpClient
from distro_protos import Json

LIST = "/v1/ns/instance/list"
JAVA = {"User-Agent": "Nacos-Java-Client:v1.4.8"}
SENT_AGAIN_WITHIN_MS = 10_500


def asked(run: ScriptRun, listener: UdpClient, **changed: object) -> Json:
    return {
        "namespaceId": run.namespace,
        "serviceName": "web",
        "clusters": "",
        "clientIP": "127.0.0.1",
        "udpPort": listener.port,
        "app": "shop",
        **changed,
    }


@script("udp-push", "a client of 1.x is notified of changes, acknowledges them, and does not")
async def pushing(run: ScriptRun) -> None:
    listener, client = await run.udp_client("listener"), await run.client("client")
    await run.http("list", "GET", LIST, asked(run, listener), headers=JAVA)
    await run.received("the empty list", listener, 1)
    await run.ask("register", client, "InstanceRequest", register(run))
    await run.received("one instance", listener, 1)
    await run.ask("register much", client, "InstanceRequest", register(run, metadata={"much": "x" * 1_000}))
    await run.received("a long list", listener, 1)
    await run.http("list of a cluster", "GET", LIST, asked(run, listener, clusters="none"), headers=JAVA)
    await run.received("the list of a cluster", listener, 1)
    await run.ask("deregister", client, "InstanceRequest", deregister(run))
    await run.received("not acknowledged", listener, 1, acknowledged=False)
    await run.received("sent again", listener, 1, within_ms=SENT_AGAIN_WITHIN_MS)
    first, second = listener.packets[-2:]
    run.log.note("the same once more", first == second)
    await run.state()


@script("udp-agents", "the clients that are notified over UDP")
async def agents(run: ScriptRun) -> None:
    listeners = []
    for agent in (
        "Nacos-Java-Client:v1.4.8",
        "Nacos-Java-Client:v0.0.9",
        "Nacos-Java-Client:1.4.8",
        "Nacos-Java-Client",
        "nacos-java-client:v1.4.8",
        "Nacos-Go-Client:v1.0.0",
        "Nacos-Go-Client:v0.0.1",
        "Nacos-C-Client:v1.0.12",
        "Nacos-C-Client:v1.0.11",
        "Nacos-CSharp-Client:v0.9.0",
        "Nacos-CSharp-Client:v0.8.9",
        "Nacos-DNS:v1.0.0",
        "nacos-dns:v1.0.0",
        "Nacos-Python-Client:v1.0.0",
        "Nacos-SDK-CPP:v1.0.0",
        "Nacos-Server:v2.0.0",
        "curl",
    ):
        listener = await run.udp_client(agent)
        await run.http(f"list, {agent}", "GET", LIST, asked(run, listener), headers={"User-Agent": agent})
        listeners.append(listener)
    kinds: tuple[tuple[str, Json], ...] = (
        ("no ip", {"clientIP": ""}),
        ("an ip that is none", {"clientIP": "localhost"}),
        ("Client-Version says it", {}),
        ("the port is a word", {"udpPort": "much"}),
        ("the port is too high", {"udpPort": 70_000}),
    )
    for step, changed in kinds:
        listener = await run.udp_client(step)
        headers = {"User-Agent": "curl", "Client-Version": JAVA["User-Agent"]} if "Version" in step else JAVA
        await run.http(f"list, {step}", "GET", LIST, asked(run, listener, **changed), headers=headers)
        listeners.append(listener)
    await run.shown()
    await run.until(lambda: 0, 0, 0)
    for listener in listeners:
        run.log.note(f"packets, {listener.name}", len(listener.packets))
        listener.acknowledge()


@script("udp-subscribers", "clients that are notified over UDP, as an operator sees them", Span("2.2.0"))
async def subscribers(run: ScriptRun) -> None:
    listener = await run.udp_client("listener")
    await run.http("list", "GET", LIST, asked(run, listener), headers=JAVA)
    await run.received("the empty list", listener, 1)
    version_2 = await run.udp_client("listener of version 2")
    named = asked(run, version_2, serviceName="web2")
    await run.http("list in version 2", "GET", "/v2/ns/instance/list", named, headers=JAVA)
    await run.received("the empty list in version 2", version_2, 1)
    path, client_id = "/v2/ns/client", f"127.0.0.1:{listener.port}#true"
    await run.http("detail", "GET", path, {"clientId": client_id})
    await run.http("subscribed", "GET", f"{path}/subscribe/list", {"clientId": client_id})
    service = {"namespaceId": run.namespace, "serviceName": "web", "groupName": "DEFAULT_GROUP", "ephemeral": "true"}
    at = {"ip": "127.0.0.1", "port": listener.port}
    await run.http("subscribers", "GET", f"{path}/service/subscriber/list", {**service, **at})
    await run.state()
