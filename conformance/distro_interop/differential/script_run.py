"""The interface of a script: every kind of connection to the node under test, and the log of the answers.

Nothing is judged here, and no answer of the node ends a script: a refused connection, a failed call, a timeout are
answers too. Each script works in a namespace of its own, so that scripts do not see each other.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import aiohttp
import grpc.aio

from distro_conformance.node.peer import Arrival, PlayedPeer
from distro_conformance.node.player import PlayedClient
from distro_conformance.release import Timings
from distro_conformance.targets.ports import CLUSTER_OFFSET, RAFT_OFFSET, SDK_OFFSET, with_offset
from distro_conformance.targets.target import Target
from distro_conformance.waiting import eventually, poll_local, settled
from distro_conformance.wire.connection import SDK_LABELS
from distro_conformance.wire.messages import content_of, distro_request
from distro_interop.differential.exchange import ScriptLog, in_rows, opened
from distro_interop.differential.udp_client import UdpClient
from distro_interop.differential.udp_client import opened as in_packet
from distro_protos import Json, Message, Payload, UnreadableBodyError, decode
from distro_protos.addresses import parse_address

SERVICE, GROUP, CLUSTER = "web", "DEFAULT_GROUP", "DEFAULT"
_TICK_MS = 50
_HTTP_TIMEOUT_S = 5.0
_MARGIN_MS = 300
_UDP_DELIVERY_S = 0.05
_DELIVERIES, _DELIVERY_S = 200, 0.005
"""How often, and at which interval in real time, the kit checks for a message. Only a missing one takes all of it."""


class ScriptRun:
    """`namespace` is the script's own."""

    def __init__(self, script: str, target: Target, peer: PlayedPeer) -> None:
        self.namespace = script
        self.target, self.peer, self.member = target, peer, peer.http
        self.timings = Timings.of(target.profile)
        self.log = ScriptLog(script, {**_family("node", target.address), **_family("member", peer.address)})
        self._clients: dict[PlayedClient, int] = {}
        """With the number of pushes that have been logged."""
        self._udp_clients: list[UdpClient] = []
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(_HTTP_TIMEOUT_S), trust_env=False)
        self._foreign: set[str] = set()
        self._arrived_before = len(peer.arrivals)
        self._asked = len(self.member.requests)
        self._logged_until: dict[str, int] = {}

    # Connections.

    async def client(
        self, name: str, *, labels: Mapping[str, str] | None = None, cluster: bool = False
    ) -> PlayedClient:
        """A connection that has been set up, as an SDK does it unless other labels are given."""
        client = await PlayedClient.open(self._grpc_address(cluster), labels=labels or SDK_LABELS)
        client.name = name
        self._clients[client] = 0
        self.log.names[client.id] = f"{{{name}}}"
        self.log.names[client.id.rpartition("_")[2]] = f"{{port of {name}}}"
        return client

    async def bare_client(self, name: str, *, cluster: bool = False) -> PlayedClient:
        """A transport without set-up."""
        client = PlayedClient.bare(self._grpc_address(cluster))
        client.name = name
        self._clients[client] = 0
        return client

    def _grpc_address(self, cluster: bool) -> str:
        return with_offset(self.target.address, CLUSTER_OFFSET if cluster else SDK_OFFSET)

    async def leave(self, client: PlayedClient) -> None:
        """Its connection ends without a message."""
        del self._clients[client]
        await client.close()
        await self.target.clock.pass_ms(0)  # where time is virtual, until the node knows of it

    async def udp_client(self, name: str) -> UdpClient:
        """The socket on which a client of 1.x listens."""
        client = await UdpClient.open(name)
        self.log.names[str(client.port)] = f"{{port of {name}}}"
        self._udp_clients.append(client)
        return client

    def foreign_client(self, name: str) -> str:
        """The id of a client that the played member owns."""
        client = f"17000000{len(self._foreign):05d}_127.0.0.1_{self.peer.port}_{self.namespace}"
        self._foreign.add(client)
        self.log.names[client] = f"{{{name}}}"
        return client

    # Requests and answers.

    async def ask(
        self, step: str, client: PlayedClient, type_name: str, body: Json, *, headers: Mapping[str, str] | None = None
    ) -> Message | None:
        """One call; None when the transport failed."""
        return await self._logged(step, client.ask(type_name, body, headers=headers))

    async def call(self, step: str, client: PlayedClient, payload: Payload) -> Message | None:
        """One call with a payload that no client would send."""

        async def calling() -> Message:
            return decode(await client.call(payload))

        return await self._logged(step, calling())

    async def send(self, step: str, body: Json) -> None:
        """Send a Distro message of the played member, unchanged."""
        await self._logged(step, self.peer.send(body))

    async def distro(self, step: str, operation: str, client: str | None = None, content: Any = None) -> None:
        """Send a Distro message as a member does."""
        target = None if operation == "VERIFY" else self.target.address
        await self.send(step, distro_request(operation, client, target=target, content=content))

    async def http(
        self,
        step: str,
        method: str,
        path: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        body: bytes | None = None,
        form: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """A request below the context path, `form`: with parameters in its body; gives the body of the answer, read as
        JSON where it is JSON."""
        url = f"http://{self.target.address}/nacos{path}"
        query = {name: str(value) for name, value in (parameters or {}).items()}
        if form is not None:
            body = "&".join(f"{name}={value}" for name, value in form.items()).encode()
            headers = {"Content-Type": "application/x-www-form-urlencoded"}
        try:
            async with self._session.request(method, url, params=query, data=body, headers=headers) as reply:
                kind, text = reply.headers.get("Content-Type", ""), await reply.text(errors="replace")
                answer = {"status": reply.status, "type": _media_type(kind), "body": _read(text)}
        except (aiohttp.ClientError, TimeoutError) as error:
            answer = {"failed": type(error).__name__}
        self.log.note(step, answer)
        return answer.get("body")

    async def log_in(self, step: str, user: str, password: str, *, path: str = "/v1/auth/login") -> str:
        """The token, "" when there is none."""
        found = await self.http(step, "POST", path, {"username": user, "password": password})
        return str(found.get("accessToken", "")) if isinstance(found, dict) else ""

    # Events that the node starts.

    async def pass_ms(self, ms: int) -> None:
        await self.target.clock.pass_ms(ms)

    async def shown(self) -> None:
        """Wait until queries show the applied content, and subscribers have been notified."""
        await self.pass_ms(self.timings.view_ms + _MARGIN_MS)

    async def pushed(self, step: str, client: PlayedClient, expected: int, *, within_ms: int | None = None) -> None:
        """The pushes to a client since the last call. Wait for the expected number, with 0 for the whole time; the
        default is the time that the push of a changed service takes."""
        within_ms = self.timings.view_ms if within_ms is None else within_ms
        await self.until(lambda: len(client.pushes) - self._clients[client], expected, within_ms)
        pushes = client.pushes[self._clients[client] :]
        self._clients[client] = len(client.pushes)
        self.log.note(step, [{"type": push.type, "body": push.body} for push in pushes])

    async def received(
        self, step: str, client: UdpClient, expected: int, *, acknowledged: bool = True, within_ms: int | None = None
    ) -> None:
        """The packets that a client of 1.x received over UDP since the last call; `acknowledged`: it answers."""
        within_ms = self.timings.view_ms if within_ms is None else within_ms
        await self.until(lambda: len(client.packets) - client.seen, expected, within_ms)
        packets = [in_packet(data) for data, _ in client.packets[client.seen :]]
        client.seen = len(client.packets)
        if acknowledged:
            client.acknowledge()
            await asyncio.sleep(_UDP_DELIVERY_S)
        for packet in packets:  # numbers of packets are the nanoseconds of some clock
            packet["message"]["lastRefTime"] = type(packet["message"].get("lastRefTime")).__name__
        self.log.note(step, packets)

    async def synced(self, step: str, client: str, expected: int, *, only_last: bool = False) -> None:
        """The syncs of a client that the played member received since the last call, without verifies.

        `only_last`: after so many changes that a busy machine needs more than one sync delay for them.
        """
        await self.until(lambda: len(self._of(client)), expected, self.timings.sync_ms)
        found = self._of(client)
        self._logged_until[client] = len(self.peer.arrivals)
        self.log.note(step, [opened(arrival.body) for arrival in (found[-1:] if only_last else found)])

    async def verified(self, step: str, client: str) -> None:
        """The next verify of a client."""
        seen = len(self.peer.arrivals)

        def found() -> list[Arrival]:
            return [arrival for arrival in self.peer.arrivals[seen:] if arrival.is_about("VERIFY", client)]

        await self.until(lambda: len(found()), 1, self.timings.verify_ms)
        self.log.note(step, opened(found()[0].body) if found() else None)

    async def forwarded(self, step: str) -> None:
        """The HTTP requests that the played member received since the last call."""
        asked = self.member.requests[self._asked :]
        self._asked = len(self.member.requests)
        self.log.note(step, [each for each in asked if each["query"].get("namespaceId") == self.namespace])

    async def state(self, step: str = "state", request: Json | None = None) -> None:
        """Every client of this script that the node holds, as it sends them to a member."""
        reply = await self.peer.send(request or distro_request("SNAPSHOT"))
        content = content_of(reply.body.get("distroData") or {}) or {}
        own = [client for client in content.get("clientSyncDataList", ()) if self._is_own(client)]
        self.log.note(step, in_rows({"clientSyncDataList": own}))

    async def close(self) -> None:
        for each in list(self._clients):
            await self.leave(each)
        for client in self._udp_clients:
            client.close()
        await self._session.close()

    # Below.

    async def _logged(self, step: str, calling: Awaitable[Message]) -> Message | None:
        try:
            message: Message = await calling
        except grpc.aio.AioRpcError as error:
            self.log.note(step, {"failed": error.code().name})
            return None
        except UnreadableBodyError as error:
            self.log.note(step, {"unreadable": error.type_name})
            return None
        self.log.note(step, {"type": message.type, "body": opened(message.body)})
        return message

    def _of(self, client: str) -> Sequence[Arrival]:
        arrivals = self.peer.arrivals[self._logged_until.get(client, self._arrived_before) :]
        return [
            arrival
            for arrival in arrivals
            if arrival.call and arrival.call.client == client and arrival.call.operation != "VERIFY"
        ]

    def _is_own(self, client: Json) -> bool:
        named = {*client.get("namespaces", ()), *(client.get("batchInstanceData") or {}).get("namespaces", ())}
        return self.namespace in named or client.get("clientId") in {
            *self._foreign,
            *(each.id for each in self._clients),
        }

    async def until(self, count: Callable[[], int], expected: int, within_ms: int) -> None:
        """Until so many are there, in time or late; where none is expected, as long as the node would have had for one.
        No verdict hangs on the wait: how the two nodes differ is judged (`judge.py`)."""
        clock = self.target.clock
        if expected:
            await eventually(poll_local(lambda: count() >= expected), clock, within_ms + _MARGIN_MS, step_ms=_TICK_MS)
        else:
            await settled(clock, within_ms + _MARGIN_MS)
        for _ in range(_DELIVERIES if expected else 1):  # what was sent in virtual time arrives in real time
            if expected and count() >= expected:
                return
            await asyncio.sleep(_DELIVERY_S)


def _family(name: str, address: str) -> dict[str, str]:
    """The names of an address and of the ports that belong to it."""
    port = str(parse_address(address).port)
    own = {address: f"{{{name}}}", port: f"{{port of {name}}}"}
    for offset, use in ((SDK_OFFSET, "SDK"), (CLUSTER_OFFSET, "cluster"), (RAFT_OFFSET, "raft")):
        own[str(int(port) + offset)] = f"{{{use} port of {name}}}"
    return own


def _media_type(text: str) -> str:
    """JSON has no charset: a named one is no difference."""
    kind = text.lower().replace(" ", "")
    return kind.partition(";")[0] if kind.startswith("application/json") else kind


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
