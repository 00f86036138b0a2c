"""`/v1/ns/service/list`: the names of services with instances or subscribers. Source: docs/protocol #http-v1."""

from __future__ import annotations

from collections.abc import Iterable

from aiohttp import web

from distro_impl.http.parameters import WHOLE_NUMBER, Parameters, answered
from distro_impl.http.replies import ApiError, ErrorCode, json_reply
from distro_impl.naming.client import DEFAULT_GROUP, DEFAULT_NAMESPACE
from distro_impl.naming.client_manager import ClientManager


def service_routes(clients: ClientManager) -> Iterable[web.RouteDef]:
    def services(parameters: Parameters) -> web.Response:
        """`count` is the total, `doms` the page, plain names."""
        page_no, page_size = _page(parameters, "pageNo"), _page(parameters, "pageSize")
        namespace = parameters.text("namespaceId", default=DEFAULT_NAMESPACE)
        group = parameters.text("groupName", default=DEFAULT_GROUP)
        if page_size < 0:
            raise ApiError(ErrorCode.PARAMETER_VALIDATE_ERROR, f"fromIndex(0) > toIndex({page_size})")
        names = clients.service_names(namespace, group)
        start = max(0, page_no - 1) * page_size
        return json_reply({"count": len(names), "doms": names[start : start + page_size]})

    yield web.get("/v1/ns/service/list", answered(services))


def _page(parameters: Parameters, name: str) -> int:
    """What is no number counts as 0."""
    text = parameters.required(name)
    return int(text) if WHOLE_NUMBER.fullmatch(text) else 0
