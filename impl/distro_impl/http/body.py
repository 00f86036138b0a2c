"""The body of an HTTP request, read whole.

A body may end before its declared end, or not be in the encoding that it claims. Who sends such a one is answered like
any other client whose request cannot be served.
"""

from __future__ import annotations

from typing import Any

from aiohttp import web

from distro_impl.remote.errors import INVALID_PARAM, NacosError
from distro_protos import read_json


async def read_bytes(request: web.Request) -> bytes:
    """Raises NacosError when it cannot be read."""
    try:
        return await request.read()
    except (web.RequestPayloadError, ConnectionError) as error:  # in the second case the client is gone
        raise NacosError(INVALID_PARAM, f"caused: the body cannot be read: {' '.join(str(error).split())};") from error


async def read_json_body(request: web.Request) -> Any:
    """In UTF-8, whatever the request says. Raises ValueError when it is no JSON, NacosError when it cannot be read."""
    return read_json(await read_bytes(request))
