"""A client of the HTTP API that the kit plays: it holds no connection, registers, and stays alive by its beats.

Its owner follows from its address alone, so a check chooses the address by the member that is to own it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import aiohttp

from distro_conformance.node.player import CLUSTER, FIELDS, GROUP, without_fields
from distro_conformance.release import Span
from distro_conformance.verdict import TargetError
from distro_model.rules.owners import place

_TIMEOUT_S = 10.0
_SPREAD = 37
"""Adjacent addresses have hashes of the same sign."""
_PATHS = {"v1": "/nacos/v1/ns/instance", "v2": "/nacos/v2/ns/instance", "v3": "/nacos/v3/client/ns/instance"}
_IN_3X = Span("3.0.0", "3.99.99")
_HAS_LATER_API = Span(since="2.2.0")

_SERVICES = "/nacos/v1/ns/service/list"
_SWITCHES = "/nacos/v1/ns/operator/switches"
"""3.x answers there as long as it is compatible with the API of administrators of 2.x."""

LIGHT_BEATS_ONLY = "a beat of version 3 says where and not what: it registers nothing; write light-beat"


def later_api(profile: str) -> str:
    """The version of the API beside v1: 3.x answers 410 to clients that speak v2 (docs/protocol #http-v2)."""
    return "v3" if profile in _IN_3X else "v2"


def apis_of(profile: str) -> tuple[str, ...]:
    """All versions of the API, the first one first."""
    return ("v1", later_api(profile)) if profile in _HAS_LATER_API else ("v1",)


@dataclass(frozen=True, slots=True)
class HttpReply:
    status: int
    text: str

    def __str__(self) -> str:
        return f"{self.status} {self.text!r}"


@dataclass(frozen=True, slots=True)
class PlayedHttpClient:
    """An instance at ip:port, which is also the client. `node` is the member that it sends to.

    `api` is `v2` for what came with 2.2.0, `v3` for what took its place in 3.x (docs/protocol #http-v2).
    """

    node: str
    ip: str
    port: int
    connector: Callable[[], aiohttp.BaseConnector] = aiohttp.TCPConnector
    api: str = "v1"
    headers: Mapping[str, str] = field(default_factory=dict)
    """The headers of its requests."""
    require: Callable[[str], None] = field(default=lambda _: None, compare=False, repr=False)
    """Called with the feature that a request needs; raises where the server lacks it."""

    @property
    def id(self) -> str:
        """Its name in Distro (docs/protocol #http-v1)."""
        return f"{self.ip}:{self.port}#true"

    async def register(self, service: str, metadata: Mapping[str, str] | None = None, **more: str) -> HttpReply:
        """The keys of FIELDS among the metadata are parameters of their own; `more` are others of the API."""
        for key in FIELDS.intersection(metadata or ()):
            more["clusterName" if key == "cluster" else key] = (metadata or {})[key]
        if metadata and (rest := without_fields(metadata)):
            more["metadata"] = json.dumps(rest, ensure_ascii=False)
        return await self._ask("POST", "", service, None, **more)

    async def register_with(self, service: str, **parameters: str) -> HttpReply:
        """With these parameters as they are, in a form."""
        query = {"serviceName": service, "ip": self.ip, "port": str(self.port)}
        return await self._send("POST", _PATHS[self.api], query, form=parameters)

    async def deregister(self, service: str) -> HttpReply:
        return await self._ask("DELETE", "", service)

    async def beat(
        self,
        service: str,
        metadata: Mapping[str, str] | None = None,
        *,
        parameter: str | None = None,
        by_body: bool = False,
        **more: str,
    ) -> HttpReply:
        """The whole beat, so that a node that has forgotten the instance registers it again. It names the service with
        its group, as SDKs do: version 2 of the API refuses a beat without it.

        `service` may be grouped. `parameter`: the service that the parameter of the request names, where it is not that
        of the body.
        `by_body`: no parameter has the address, and the beat is in a form, as in beats of old SDKs.
        """
        known = metadata or {}
        grouped = _grouped(service)
        info = {
            "ip": self.ip,
            "port": self.port,
            "serviceName": grouped,
            "cluster": known.get("cluster", CLUSTER),
            "weight": float(known.get("weight", 1.0)),  # without it a server registers the weight 0
            "metadata": without_fields(known),
        }
        named = grouped if parameter is None else _grouped(parameter)
        if by_body:
            form = {"beat": json.dumps(info, ensure_ascii=False)}
            return await self._send("PUT", f"{_PATHS[self.api]}/beat", {"serviceName": named}, form=form)
        return await self._ask("PUT", "/beat", named, None, beat=json.dumps(info, ensure_ascii=False), **more)

    async def light_beat(self, service: str, **more: str) -> HttpReply:
        """The light beat names the address only, which a node that does not know the instance cannot use. It is the
        only beat of version 3 of the API, where it is a registration with a mark."""
        if self.api == "v3":
            return await self._ask("POST", "", service, None, heartBeat="true", **more)
        return await self._ask("PUT", "/beat", _grouped(service), None, clusterName="DEFAULT", **more)

    async def list(self, service: str, **selector: str) -> HttpReply:
        """`selector`: parameters of the API, `clusters` for instance."""
        return await self._ask("GET", "/list", service, None, **selector)

    async def query(self, service: str, **selector: str) -> HttpReply:
        """The instance at this address."""
        return await self._ask("GET", "", service, None, **selector)

    async def services(self, namespace: str, group: str | None, page_no: int, page_size: int) -> HttpReply:
        """A page of the services of the group, from page 1 on. None names no group."""
        of = {"namespaceId": namespace, **({} if group is None else {"groupName": group})}
        query = {**of, "pageNo": str(page_no), "pageSize": str(page_size)}
        return await self._send("GET", _SERVICES, query)

    async def passed_on(self, method: str, service: str) -> HttpReply:
        """A registration (POST), a beat (PUT) or a deregistration (DELETE) as a member would pass it on."""
        agent = {"User-Agent": "Nacos-Server:v2.2.4"}
        return await self._ask(method, "/beat" if method == "PUT" else "", service, headers=agent)

    async def turn_switch(self, entry: str, value: str) -> HttpReply:
        """As an operator does; `debug` turns it on this node alone, without the raft log."""
        query = {"entry": entry, "value": value, "debug": "true"}
        return await self._send("PUT", _SWITCHES, query)

    async def _ask(
        self, method: str, below: str, service: str, headers: Mapping[str, str] | None = None, **more: str
    ) -> HttpReply:
        """`below`: the rest of the path."""
        query = {"serviceName": service, "ip": self.ip, "port": str(self.port), **more}
        return await self._send(method, _PATHS[self.api] + below, query, headers)

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        headers: Mapping[str, str] | None = None,
        form: Mapping[str, str] | None = None,
    ) -> HttpReply:
        """Raises TargetError when there is no answer."""
        self.require("http")
        shown = {**self.headers, **(headers or {})}
        timeout = aiohttp.ClientTimeout(_TIMEOUT_S)
        try:
            async with (
                aiohttp.ClientSession(connector=self.connector(), timeout=timeout, trust_env=False) as session,
                session.request(method, f"http://{self.node}{path}", params=query, headers=shown, data=form) as reply,
            ):
                return HttpReply(reply.status, await reply.text())
        except (aiohttp.ClientError, TimeoutError) as error:
            raise TargetError(f"{self.node} does not answer {method} {path}: {error!r}") from error


def _grouped(service: str) -> str:
    return service if "@@" in service else f"{GROUP}@@{service}"


def address_owned_by(
    owner: str, members: tuple[str, ...], number: int, *others: tuple[str, tuple[str, ...]]
) -> tuple[str, int]:
    """The ip and port of the `number`-th client that this member owns (docs/protocol #owner-place).

    `others`: its owners under other lists of members.
    """
    owners = [(each, sorted(among)) for each, among in ((owner, members), *others)]
    net = f"10.{1 + number // 256}"  # a run has more clients than fit into one
    owned = (
        (f"{net}.{high}.{low}", 80)
        for high in range(number * _SPREAD % 256, 256)
        for low in range(256)
        if all(ring[place(f"{net}.{high}.{low}:80", len(ring))] == each for each, ring in owners)
    )
    return next(owned)
