"""What a request handler is, and the handlers that belong to no other part."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from distro_impl.remote.errors import success
from distro_protos import Json


class Request(Struct, frozen=True):
    """A unary request of a registered connection."""

    type: str
    body: Any
    """The structure that the type has in payloads.py."""
    connection_id: str
    headers: Mapping[str, str] = {}
    client_ip: str = ""
    """Where it comes from, as the transport sees it."""


IRREGULAR_RESPONSES = {
    "PersistentInstanceRequest": "InstanceResponse",
    "ServiceQueryRequest": "QueryServiceResponse",
}


def response_type(request_type: str) -> str:
    """The class of the answer, named after that of the request but for a few."""
    return IRREGULAR_RESPONSES.get(request_type) or request_type.removesuffix("Request") + "Response"


Reply = tuple[str, Json]
"""Type and body."""

Handler = Callable[[Request], Reply]
"""Runs without interruption. What it raises is answered with `ErrorResponse`."""

Refusal = Callable[[Request], Reply | None]
"""What stands before the handlers; None lets the request pass."""


def _health_check(_: Request) -> Reply:
    return "HealthCheckResponse", success()


def _config_change(_: Request) -> Reply:
    """Members of mixed clusters report changed configurations, of which this node keeps none
    (docs/protocol #connection-internal)."""
    return "ConfigChangeClusterSyncResponse", success()


CORE_HANDLERS: Mapping[str, Handler] = {
    "HealthCheckRequest": _health_check,
    "ConfigChangeClusterSyncRequest": _config_change,
}
