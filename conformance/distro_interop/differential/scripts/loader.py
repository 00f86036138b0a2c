"""How many connections a node has, and how clients are asked to go elsewhere: over HTTP, and between members.

What is asked here counts and moves the connections of all clients of a node, so these scripts play alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from distro_interop.differential.scripts.bodies import register
from distro_interop.differential.scripts.registry import script
from distro_interop.differential.stage import Stage, Voice
from distro_protos import Json

V1, V2 = "/v1/core/loader", "/v2/core/loader"
OPERATIONS = ("current", "cluster", "reloadCurrent", "reloadClient", "smartReloadCluster")
LABELS = {"source": "sdk", "module": "naming", "AppName": "shop", "taskId": "0"}
EJECTOR_PERIOD_MS = 3_200
ELSEWHERE = "10.0.0.9:80"


@script("loader", "the connections of a node, and one client that is asked to go elsewhere", alone=True)
async def one_client(stage: Stage) -> None:
    client, other = await stage.client("client", labels=LABELS), await stage.client("other")
    await _connections(stage, "current", client, other)
    await stage.http("cluster", "GET", f"{V2}/cluster")
    for step, parameters, is_reset in (
        ("no connection", {}, False),
        ("empty connection", {"connectionId": ""}, False),
        ("unknown connection", {"connectionId": "nobody"}, False),
        ("without address", {"connectionId": client.id}, True),
        ("to an address", {"connectionId": client.id, "redirectAddress": "127.0.0.1:8848"}, True),
        ("to an ip", {"connectionId": client.id, "redirectAddress": "127.0.0.1"}, True),
        ("to nowhere", {"connectionId": client.id, "redirectAddress": ""}, True),
    ):
        await stage.http(step, "GET", f"{V2}/reloadClient", parameters)
        await stage.pushed(f"what the client receives: {step}", client, is_reset)
    await stage.pushed("what the other receives", other, 0)
    await stage.ask("the client is still served", client, "InstanceRequest", register(stage))
    await _connections(stage, "current afterwards", client, other)
    for method in ("POST", "PUT"):
        await stage.http(f"reload by {method}", method, f"{V2}/reloadClient", {"connectionId": client.id})


@script("loader-paths", "under which paths a release has this")
async def paths(stage: Stage) -> None:
    for operation in OPERATIONS:
        await stage.http(f"GET {V1}/{operation}", "GET", f"{V1}/{operation}")
        for version in (V1, V2):
            await stage.http(f"POST {version}/{operation}", "POST", f"{version}/{operation}")


@script("loader-count", "so many connections are to stay", alone=True)
async def by_count(stage: Stage) -> None:
    clients = [await stage.client(f"client {number}") for number in range(4)]
    member = await stage.client("member", labels={"source": "cluster"}, cluster=True)
    for step, parameters in (
        ("no count", {}),
        ("a word", {"count": "many"}),
        ("a negative count", {"count": -1}),
        ("more than there are", {"count": 1000}),
    ):
        await stage.http(step, "GET", f"{V2}/reloadCurrent", parameters)
    for step, parameters in (
        ("balance", {}),
        ("balance by half", {"loaderFactor": "0.5"}),
        ("balance by a word", {"loaderFactor": "much"}),
        ("balance by more than all", {"loaderFactor": "7"}),
    ):
        await stage.http(step, "GET", f"{V2}/smartReloadCluster", parameters)
    for count in (0, 3):
        asked = {"count": count, "redirectAddress": ELSEWHERE}
        await stage.http(f"{count} are to stay", "GET", f"{V2}/reloadCurrent", asked)
        await _resets(stage, f"of {count}", member, clients)


@script("loader-member", "members ask each other for their load, and to send clients away", alone=True)
async def between_members(stage: Stage) -> None:
    clients = [await stage.client(f"client {number}") for number in range(2)]
    member = await stage.client("member", labels={"source": "cluster"}, cluster=True)
    bodies: tuple[tuple[str, str, Json], ...] = (
        ("load", "ServerLoaderInfoRequest", {}),
        ("more than there are", "ServerReloadRequest", {"reloadCount": 1000}),
        ("a word for a count", "ServerReloadRequest", {"reloadCount": "many"}),
        ("one is to stay", "ServerReloadRequest", {"reloadCount": 1, "reloadServer": ELSEWHERE}),
    )
    for step, kind, body in bodies:
        await stage.ask(step, member, kind, {**body, "module": "internal"})
    await _resets(stage, "of a member", member, clients)
    for step, kind, body in bodies:
        await stage.ask(f"{step}, on the port of the SDKs", clients[0], kind, {**body, "module": "internal"})
    await _resets(stage, "of a client", member, clients)
    await stage.ask("no count", member, "ServerReloadRequest", {"module": "internal"})


async def _resets(stage: Stage, why: str, member: Voice, clients: Sequence[Voice]) -> None:
    """The resets of the next ejector round. The number of clients is guaranteed, their choice is not."""
    await stage.pass_ms(EJECTOR_PERIOD_MS)
    for voice in (*clients, member):
        await stage.pushed(f"what {voice.name} receives {why}", voice, 0, within_ms=0)
    answers = [stage.log.exchanges.pop().answer for _ in range(len(clients) + 1)][1:]
    resets = [push for pushes in answers for push in pushes if push["type"] == "ConnectResetRequest"]
    stage.log.note(f"how many are reset {why}", len(resets))
    stage.log.note(f"what they receive {why}", {push["body"].get("serverPort") for push in resets} == {"80"})


async def _connections(stage: Stage, step: str, *voices: Voice) -> None:
    """The listed fields of these connections; the others are those of the members."""
    listed = await stage.http(step, "GET", f"{V2}/current")
    stage.log.exchanges.pop()
    own = {voice.id: listed.get(voice.id) for voice in voices} if isinstance(listed, dict) else listed
    stage.log.note(step, own)
