"""Moving SDK connections between members: how many each has, and asking clients to go elsewhere.

An operator asks over HTTP (http/loader.py), members ask each other on the cluster port. Nothing moves by itself.
Source: docs/protocol #ejector-check, #connection-internal and #http-admin; ServerLoaderInfoRequestHandler,
ServerReloaderRequestHandler, ServerLoaderController.
"""

from __future__ import annotations

import json
import os
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from distro_impl.clocks.clock import Clock, side_by_side
from distro_impl.membership.cluster_clients import ClusterRpcClientProxy
from distro_impl.membership.members import ServerMemberManager
from distro_impl.profiles import Profile
from distro_impl.remote.connection import APP_NAME_LABEL, Connection
from distro_impl.remote.connection_manager import ConnectionManager
from distro_impl.remote.ejector import ConnectionEjector
from distro_impl.remote.errors import success
from distro_impl.remote.handlers import Handler, Reply, Request
from distro_impl.remote.peer_connection import PeerUnreachableError
from distro_protos import Json, UnreadableBodyError

T = TypeVar("T")

LOADER_INFO, RELOAD = "ServerLoaderInfoRequest", "ServerReloadRequest"
PEER_TIMEOUT_MS = 3_000


@dataclass(frozen=True, slots=True)
class ServerLoad:
    """What one member says of itself."""

    address: str
    metrics: Mapping[str, str]

    @property
    def sdk_count(self) -> int:
        count = str(self.metrics.get("sdkConCount", ""))
        return int(count) if count.isdecimal() else 0


class ServerLoader:
    def __init__(
        self,
        clock: Clock,
        profile: Profile,
        members: ServerMemberManager,
        peers: ClusterRpcClientProxy,
        connections: ConnectionManager,
        ejector: ConnectionEjector,
    ) -> None:
        self._clock, self._profile, self._members, self._peers = clock, profile, members, peers
        self._connections, self._ejector = connections, ejector

    def handlers(self) -> Mapping[str, Handler]:
        """Request type -> handler; both types come from members only."""

        def loader_info(_: Request) -> Reply:
            return "ServerLoaderInfoResponse", success(loaderMetrics=dict(self.own_load().metrics))

        def reload(request: Request) -> Reply:
            """Nothing is done where there are no more connections than are to stay."""
            count = request.body.reload_count
            if self._connections.sdk_count <= count:
                return "ServerReloadResponse", success(message="ignore")
            self.reload_count(count, request.body.reload_server)
            return "ServerReloadResponse", success(message="ok")

        return {LOADER_INFO: loader_info, RELOAD: reload}

    def current(self) -> Json:
        """Connection id -> what is known of that connection."""
        return {connection.id: self._shown(connection) for connection in self._connections}

    @property
    def member_count(self) -> int:
        return len(self._members.all_members())

    def own_load(self) -> ServerLoad:
        """Everything is text there."""
        load = os.getloadavg()[0]
        metrics = {
            "conCount": str(len(self._connections)),
            "sdkConCount": str(self._connections.sdk_count),
            "load": f"{load:.2f}",
            "cpu": f"{min(1.0, load / (os.cpu_count() or 1)):.2f}",
        }
        if self._profile.load_tells_limits:
            metrics["limitRule"] = json.dumps(self._connections.limits.to_rule())
        return ServerLoad(self._members.self_member.address, metrics)

    def reload_count(self, count: int, redirect: str | None = None) -> None:
        """The next connection check leaves so many SDK connections, where the release's ejector does that."""
        self._ejector.reduce_to(count, redirect)

    def reload_client(self, connection_id: str, redirect: str | None = None) -> bool:
        """Ask one client to connect again; False when there is no such connection."""
        connection = self._connections.get(connection_id)
        if connection is not None:
            self._connections.reset(connection, redirect)
        return connection is not None

    async def cluster_loads(self) -> list[ServerLoad]:
        """Of this node and of every other member that answers."""
        asked = (self._load_of(member) for member in self._members.other_addresses())
        answers = await self._side_by_side(asked, "asking the members for their load")
        return [self.own_load(), *(answer for answer in answers if answer is not None)]

    async def smart_reload(self, factor: float) -> bool:
        """Tell who has more than the average and `factor` above it to send the surplus to one that has as much less.

        False when a member that should have done so did not take it.
        """
        loads = sorted(await self.cluster_loads(), key=lambda load: load.sdk_count)
        average = sum(load.sdk_count for load in loads) / len(loads)
        most = int(average * (1 + factor))
        low = [load for load in loads if load.sdk_count < average * (1 - factor)]
        high = [load for load in reversed(loads) if load.sdk_count > most]
        asked = (self._reload(above.address, most, below.address) for above, below in zip(high, low, strict=False))
        return all(await self._side_by_side(asked, "smart reload"))

    def _shown(self, connection: Connection) -> Json:
        meta = connection.meta
        shown = {**meta.to_json(), "lastActiveTime": connection.last_active_ms}
        whole = {"connected": True, "traced": False, "labels": dict(meta.labels), "metaInfo": shown}
        if not self._profile.connection_shows_app:
            return {**whole, "abilities": None}
        app = {"AppName": meta.labels.get(APP_NAME_LABEL), "ClientVersion": meta.version}
        abilities = None if meta.abilities is None else dict(meta.abilities)
        return {**whole, "metaInfo": {**shown, "appLabels": app}, "appLabels": app, "abilityTable": abilities}

    async def _load_of(self, member: str) -> ServerLoad | None:
        metrics = (await self._ask(member, LOADER_INFO, {}) or {}).get("loaderMetrics")
        return ServerLoad(member, metrics) if isinstance(metrics, dict) else None

    async def _reload(self, member: str, count: int, redirect: str) -> bool:
        if member == self._members.self_member.address:
            self.reload_count(count, redirect)
            return True
        return await self._ask(member, RELOAD, {"reloadCount": count, "reloadServer": redirect}) is not None

    async def _side_by_side(self, asked: Iterable[Coroutine[Any, Any, T]], what: str) -> list[T]:
        return await self._clock.spawn(side_by_side(self._clock, asked, what), what)

    async def _ask(self, member: str, type_name: str, body: Json) -> Json | None:
        """The body of a successful reply."""
        try:
            reply = await self._peers.request(member, type_name, {**body, "module": "internal"}, PEER_TIMEOUT_MS)
        except (PeerUnreachableError, TimeoutError, UnreadableBodyError):
            return None
        return reply.body if reply.succeeded and reply.type != "ErrorResponse" else None
