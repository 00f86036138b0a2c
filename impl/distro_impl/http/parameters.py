"""The body and the parameters of an HTTP request, read as the servers read them.

Parameters come in the query string or in a form body, and all of them are text; whether a text is a number or true, and
which service `serviceName` and `groupName` name together, is decided here, once for all APIs; the instance that a
request is about, in instance_parameters.py. Who sends something unusable gets the name of the parameter. Source:
docs/protocol #http-v1, ServiceNameFilter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from aiohttp import web
from aiohttp.typedefs import Handler

from distro_impl.http.replies import ApiError, ErrorCode, FilterError, answer
from distro_impl.naming.client import DEFAULT_GROUP, DEFAULT_NAMESPACE, Service
from distro_impl.ports import MAX_PORT
from distro_impl.remote.errors import INVALID_PARAM, NacosError
from distro_protos import read_json

FORM = "application/x-www-form-urlencoded"
MAX_FIELDS = 10_000
"""Of a form; as Tomcat has it, under real servers."""
TRUE = frozenset({"true", "yes", "on", "y", "t", "1"})
WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,10}", re.ASCII)
GROUP_SEPARATOR = "@@"
UNGROUPED = "Param 'serviceName' is illegal, it should be format as 'groupName@@serviceName'"


class Parameters:
    """The parameters of one request by name. A blank one counts as missing."""

    def __init__(self, values: Mapping[str, str], *, agent: str = "", caller_ip: str = "") -> None:
        """`agent` is what the client calls itself, `caller_ip` the address that the request comes from."""
        self._values, self.agent, self.caller_ip = values, agent, caller_ip

    def texts(self) -> dict[str, str]:
        """All of them as they came, blank ones too."""
        return dict(self._values)

    def text(self, *names: str, default: str = "") -> str:
        """The first of `names` that is there: some parameters have an older name too."""
        for name in names:
            value = self._values.get(name, "").strip()
            if value:
                return value
        return default

    def as_given(self, name: str) -> str:
        """With its white space: a password may have some. "" when it is not there."""
        return self._values.get(name, "")

    def required(self, name: str) -> str:
        value = self.text(name)
        if not value:
            raise ApiError(ErrorCode.PARAMETER_MISSING, f"Param '{name}' is required.")
        return value

    def whole_number(self, name: str, *, default: int | None = None) -> int:
        """Required when there is no default."""
        if default is not None and not self.text(name):
            return default
        text = self.required(name)
        if not WHOLE_NUMBER.fullmatch(text):
            raise invalid(name, f"is not a whole number: '{text}'")
        return int(text)

    def port(self, name: str = "port", *, default: int | None = None) -> int:
        port = self.whole_number(name, default=default)
        if not 0 <= port <= MAX_PORT:
            raise invalid(name, f"is not between 0 and {MAX_PORT}: '{port}'")
        return port

    def flag(self, *names: str, default: bool) -> bool:
        """Whatever is not one of the words for true is false."""
        return self.text(*names, default=str(default)).lower() in TRUE


PARAMETERS = web.RequestKey("distro_impl.parameters", Parameters)
"""Where a request keeps them once they are read: filters ask first, then the handler."""


async def read_parameters(request: web.Request) -> Parameters:
    """Of the query string and of a form body; what is in both counts as in the query string. Read once."""
    if PARAMETERS not in request:
        values = dict(reversed(await _form(request)))
        values.update(reversed(list(request.query.items())))  # of several values the first counts
        request[PARAMETERS] = Parameters(
            {key: printable(value) for key, value in values.items()},
            agent=request.headers.get("User-Agent", "") or request.headers.get("Client-Version", ""),
            caller_ip=request.remote or "",
        )
    return request[PARAMETERS]


def answered(operation: Callable[[Parameters], Any]) -> Handler:
    """The handler of requests whose answer the operation makes of their parameters."""

    async def handler(request: web.Request) -> web.StreamResponse:
        return answer(request, operation(await read_parameters(request)))

    return handler


async def _form(request: web.Request) -> list[tuple[str, str]]:
    if request.content_type != FORM:
        return []
    text = (await read_bytes(request)).decode("utf-8", "replace")
    try:
        return parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        raise FilterError(INVALID_PARAM, f"a form has more than {MAX_FIELDS} fields") from None


async def read_bytes(request: web.Request) -> bytes:
    """The body. Raises NacosError where it ends before its declared end, or is not in the encoding that it claims."""
    try:
        return await request.read()
    except (web.RequestPayloadError, ConnectionError) as error:  # in the second case the client is gone
        raise NacosError(INVALID_PARAM, f"caused: the body cannot be read: {' '.join(str(error).split())};") from error


async def read_json_body(request: web.Request) -> Any:
    """In UTF-8, whatever the request says. Raises ValueError when it is no JSON, NacosError when it cannot be read."""
    return read_json(await read_bytes(request))


def service_of(parameters: Parameters) -> Service:
    """The service of a grouped or plain `serviceName`."""
    if parameters.as_given("serviceName").isspace():
        raise ApiError(ErrorCode.PARAMETER_VALIDATE_ERROR, UNGROUPED)
    return service_named(parameters.required("serviceName"), parameters)


def service_named(name: str, parameters: Parameters) -> Service:
    """`name` may be `group@@name`, and then the parameter `groupName` has no say."""
    group, separator, plain = name.partition(GROUP_SEPARATOR)
    if not separator:
        group, plain = parameters.text("groupName", default=DEFAULT_GROUP), name
    if not group.strip() or not plain.strip():
        raise FilterError(INVALID_PARAM, f"Param 'serviceName' is illegal: '{name}'")
    return Service(parameters.text("namespaceId", default=DEFAULT_NAMESPACE), group, plain)


def printable(text: str) -> str:
    """Without lone surrogates, which JSON can say and UTF-8 cannot: such a text could never be replicated."""
    return text.encode("utf-8", "replace").decode("utf-8")


def invalid(name: str, problem: str) -> ApiError:
    return ApiError(ErrorCode.PARAMETER_VALIDATE_ERROR, f"Param '{name}' {problem}")
