"""Pushes over UDP, to clients of 1.x that name a port when they ask for a list."""

from __future__ import annotations

from distro_conformance.release import Span
from distro_interop.differential.scripts.bodies import deregister, register
from distro_interop.differential.scripts.registry import script
from distro_interop.differential.stage import Stage
from distro_interop.differential.udp_client import UdpClient
from distro_protos import Json

LIST = "/v1/ns/instance/list"
JAVA = {"User-Agent": "Nacos-Java-Client:v1.4.8"}
SENT_AGAIN_WITHIN_MS = 10_500


def asked(stage: Stage, listener: UdpClient, **changed: object) -> Json:
    return {
        "namespaceId": stage.namespace,
        "serviceName": "web",
        "clusters": "",
        "clientIP": "127.0.0.1",
        "udpPort": listener.port,
        "app": "shop",
        **changed,
    }


@script("udp-push", "a client of 1.x is notified of changes, acknowledges them, and does not")
async def pushing(stage: Stage) -> None:
    listener, client = await stage.udp_client("listener"), await stage.client("client")
    await stage.http("list", "GET", LIST, asked(stage, listener), headers=JAVA)
    await stage.received("the empty list", listener, 1)
    await stage.ask("register", client, "InstanceRequest", register(stage))
    await stage.received("one instance", listener, 1)
    await stage.ask("register much", client, "InstanceRequest", register(stage, metadata={"much": "x" * 1_000}))
    await stage.received("a long list", listener, 1)
    await stage.http("list of a cluster", "GET", LIST, asked(stage, listener, clusters="none"), headers=JAVA)
    await stage.received("the list of a cluster", listener, 1)
    await stage.ask("deregister", client, "InstanceRequest", deregister(stage))
    await stage.received("not acknowledged", listener, 1, acknowledged=False)
    await stage.received("sent again", listener, 1, within_ms=SENT_AGAIN_WITHIN_MS)
    first, second = listener.packets[-2:]
    stage.log.note("the same once more", first == second)
    await stage.state()


@script("udp-agents", "the clients that are notified over UDP")
async def agents(stage: Stage) -> None:
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
        listener = await stage.udp_client(agent)
        await stage.http(f"list, {agent}", "GET", LIST, asked(stage, listener), headers={"User-Agent": agent})
        listeners.append(listener)
    kinds: tuple[tuple[str, Json], ...] = (
        ("no ip", {"clientIP": ""}),
        ("an ip that is none", {"clientIP": "localhost"}),
        ("Client-Version says it", {}),
        ("the port is a word", {"udpPort": "much"}),
        ("the port is too high", {"udpPort": 70_000}),
    )
    for step, changed in kinds:
        listener = await stage.udp_client(step)
        headers = {"User-Agent": "curl", "Client-Version": JAVA["User-Agent"]} if "Version" in step else JAVA
        await stage.http(f"list, {step}", "GET", LIST, asked(stage, listener, **changed), headers=headers)
        listeners.append(listener)
    await stage.shown()
    await stage.until(lambda: 0, 0, 0)
    for listener in listeners:
        stage.log.note(f"packets, {listener.name}", len(listener.packets))
        listener.acknowledge()


@script("udp-subscribers", "clients that are notified over UDP, as an operator sees them", Span("2.2.0"))
async def subscribers(stage: Stage) -> None:
    listener = await stage.udp_client("listener")
    await stage.http("list", "GET", LIST, asked(stage, listener), headers=JAVA)
    await stage.received("the empty list", listener, 1)
    version_2 = await stage.udp_client("listener of version 2")
    named = asked(stage, version_2, serviceName="web2")
    await stage.http("list in version 2", "GET", "/v2/ns/instance/list", named, headers=JAVA)
    await stage.received("the empty list in version 2", version_2, 1)
    path, client_id = "/v2/ns/client", f"127.0.0.1:{listener.port}#true"
    await stage.http("detail", "GET", path, {"clientId": client_id})
    await stage.http("subscribed", "GET", f"{path}/subscribe/list", {"clientId": client_id})
    service = {"namespaceId": stage.namespace, "serviceName": "web", "groupName": "DEFAULT_GROUP", "ephemeral": "true"}
    at = {"ip": "127.0.0.1", "port": listener.port}
    await stage.http("subscribers", "GET", f"{path}/service/subscriber/list", {**service, **at})
    await stage.state()
