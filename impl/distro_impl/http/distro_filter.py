"""DistroFilter: a request about an ip:port client goes to the member that owns the client.

A node that is not the owner forwards the request unchanged and returns the owner's answer. A request that comes from
another server is never passed on a second time: two members that disagree about the owner would send it back and forth.
Source: docs/protocol #owner-filter, #owner-place.
"""

from __future__ import annotations

import aiohttp
from aiohttp import web
from aiohttp.typedefs import Handler
from multidict import CIMultiDict
from yarl import URL

from distro_impl.core import Core
from distro_impl.distro.mapper import DistroMapper
from distro_impl.http.parameters import Parameters, read_parameters, service_of
from distro_impl.http.replies import FilterError
from distro_impl.logs import logger
from distro_impl.naming.client import MAX_ID_LENGTH
from distro_impl.remote.errors import INVALID_PARAM, SERVER_ERROR, NacosError
from distro_impl.remote.http_client import SERVER_AGENT, HttpClient
from distro_protos import read_json

OF_ONE_HOP = frozenset({"host", "connection", "keep-alive", "content-length", "transfer-encoding", "upgrade", "expect"})
"""Headers about the connection that a request came on, not about the request."""

NULL = "null"
MARKS = {"encoding": "UTF-8", "nofix": "1"}
"""What the servers' HTTP client adds to every query that it writes."""
FORM_UTF_8 = "application/x-www-form-urlencoded;charset=UTF-8"
FORWARDED = "application/json;charset=UTF-8"
"""How the answer of an owner is declared, whatever it is."""

log = logger(__name__)


class DistroFilter:
    def __init__(self, core: Core, mapper: DistroMapper, client: HttpClient) -> None:
        self._config, self._clock, self._mapper, self._client = core.config, core.clock, mapper, client

    def forwarding(self, handler: Handler) -> Handler:
        """The handler for requests whose client this node owns; others are forwarded."""

        async def filtered(request: web.Request) -> web.StreamResponse:
            parameters = await read_parameters(request)
            tag = responsible_tag(parameters)
            if self._mapper.responsible(tag):
                return await handler(request)
            if SERVER_AGENT in request.headers.get("User-Agent", ""):
                log.error("receive invalid redirect request from peer %s", request.remote)
                raise FilterError(INVALID_PARAM, f"receive invalid redirect request from peer {request.remote}")
            owner = self._mapper.map_server(tag)
            url = forwarded_url(self._client.url(owner, request.path), parameters)
            # Work of the node until the owner has answered; the client gets the answer or the error.
            answer = await self._clock.spawn(self._forward(request, owner, url), f"request about {tag} to {owner}")
            if isinstance(answer, NacosError):
                raise answer
            return answer

        return filtered

    async def _forward(self, request: web.Request, owner: str, url: str) -> web.Response | NacosError:
        """Raises nothing: an error goes to the client alone."""
        timeout_ms = self._config.profile.forward_timeout_ms
        asked = self._client.request(request.method, url, headers=self._headers(request), body=b"")
        try:
            answer = await self._clock.wait_for(asked, timeout_ms)
        except TimeoutError:
            return NacosError(SERVER_ERROR, f"Server failed, {owner} did not answer within {timeout_ms} ms")
        except aiohttp.ClientError as error:
            return NacosError(SERVER_ERROR, f"Server failed, {owner} cannot be asked: {error}")
        return web.Response(body=answer.body, status=answer.status, headers={"Content-Type": FORWARDED})

    def _headers(self, request: web.Request) -> CIMultiDict[str]:
        headers = CIMultiDict(
            (name, value) for name, value in request.headers.items() if name.lower() not in OF_ONE_HOP
        )
        version = self._config.profile.version
        headers["User-Agent"] = f"{SERVER_AGENT}:{version}"
        headers["Client-Version"] = version
        headers["Content-Type"] = FORM_UTF_8
        headers["Request-Source"] = self._config.address
        identity = self._config.options.identity
        if identity is not None:
            headers[identity.key] = identity.value
        return headers


def forwarded_url(url: str, parameters: Parameters) -> str:
    """All parameters go into the query, also those of a form, and the name of the service with its group.

    Raises FilterError when that name is none: it is refused where it is read first, and not passed on.
    """
    query = {**parameters.texts(), **MARKS}
    if query.get("serviceName", "").strip():
        query["serviceName"] = service_of(parameters).grouped_name
    return str(URL(url).with_query(query))


def responsible_tag(parameters: Parameters) -> str:
    """`ip:port` of the client that a request is about: from its parameters, or from the beat.

    A missing ip is the text `null`, which has an owner like any other; that one refuses it. Raises FilterError for an
    address that is longer than any.
    """
    ip, port = parameters.texts().get("ip", NULL), parameters.text("port", default="0")
    if ip == NULL or not ip.strip():
        ip, port = _address_in_beat(parameters.text("beat")) or (ip, port)
    if len(ip) + len(port) > MAX_ID_LENGTH:
        raise FilterError(INVALID_PARAM, f"the address of the instance is longer than {MAX_ID_LENGTH}")
    return f"{ip.strip() or ip}:{port}"  # as in the id of the client, which white space is no part of


def _address_in_beat(beat: str) -> tuple[str, str] | None:
    """None when there is no beat, or none that can be read."""
    try:
        fields = read_json(beat.encode())
    except ValueError:
        return None
    return (str(fields.get("ip", NULL)), str(fields.get("port", 0))) if isinstance(fields, dict) else None
