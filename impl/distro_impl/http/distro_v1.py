"""`/v1/ns/distro`: the consistency endpoints of 1.x data, which servers up to 2.1.2 still have.

Once a cluster speaks gRPC no member calls them any more, but a server of 2.0.x asks each member for its `datums` while
it starts, and takes 404 for a failed load. What arrives here is kept and given back; no service list shows it, since a
server in gRPC mode builds its lists from clients. Answers as seen on a running 2.0.4.
Source: docs/protocol #load-types.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from aiohttp import web

from distro_impl.http.body import read_json_body
from distro_impl.http.replies import text
from distro_impl.jackson import convert
from distro_impl.profiles import Profile
from distro_impl.remote.errors import INVALID_PARAM, SERVER_ERROR, NacosError
from distro_protos import Json

MAX_DATA, MAX_BYTES = 10_000, 64 * 1024 * 1024
"""Services of 1.x, and all of them as JSON; a member has no reason to send more to a node that shows none of them."""


class DataStore:
    """Datum by key, the 1.x name of a service's instance list."""

    def __init__(self) -> None:
        self._data: dict[str, Any] = {}
        self._bytes: dict[str, int] = {}

    def put(self, data: Json) -> None:
        if not data:
            raise NacosError(INVALID_PARAM, "receive empty entity!")
        for key, datum in data.items():
            if not isinstance(datum, dict) or not isinstance(datum.get("key"), str):
                raise NacosError(SERVER_ERROR, f"caused: the datum of {key} has no key;")
        if len(self._data.keys() | data.keys()) > MAX_DATA:
            raise NacosError(SERVER_ERROR, f"caused: more than {MAX_DATA} services of 1.x;")
        sizes = self._bytes | {key: len(json.dumps(datum)) for key, datum in data.items()}
        if sum(sizes.values()) > MAX_BYTES:
            raise NacosError(SERVER_ERROR, f"caused: more than {MAX_BYTES} bytes of services of 1.x;")
        self._data.update(data)
        self._bytes = sizes

    def get(self, keys: Iterable[str]) -> Json:
        return {key: self._data[key] for key in keys if key in self._data}

    def all(self) -> Json:
        return dict(self._data)


def distro_v1_routes(profile: Profile, store: DataStore) -> Iterable[web.RouteDef]:
    async def put_datum(request: web.Request) -> web.Response:
        store.put(await _object(request))
        return text()

    async def get_datum(request: web.Request) -> web.Response:
        keys = (await _object(request)).get("keys")
        if not isinstance(keys, str):
            raise NacosError(SERVER_ERROR, "caused: the body names no keys;")
        return _octets(store.get(keys.split(",")))

    async def get_datums(_: web.Request) -> web.Response:
        return _octets(store.all())

    async def put_checksum(request: web.Request) -> web.Response:
        """A member reports what it has; up to date or not, the data of 1.x have no other source any more."""
        if "source" not in request.query:
            raise NacosError(INVALID_PARAM, "Parameter 'source' is missing")
        await _object(request)
        return text()

    if not profile.http_v1_distro:
        return
    path = "/v1/ns/distro"
    yield web.put(f"{path}/datum", put_datum)
    yield web.get(f"{path}/datum", get_datum)
    yield web.get(f"{path}/datums", get_datums)
    yield web.put(f"{path}/checksum", put_checksum)


async def _object(request: web.Request) -> Json:
    try:
        body = convert(dict[str, Any], await read_json_body(request))
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise NacosError(SERVER_ERROR, "caused: the body is no JSON object;")
    return body


def _octets(data: Json) -> web.Response:
    return web.Response(body=json.dumps(data).encode(), content_type="application/octet-stream", charset="UTF-8")
