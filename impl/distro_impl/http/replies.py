"""What an HTTP request is answered with: plain text, JSON, or the wrapper of the v2 and v3 APIs, and errors in each.

An error is raised as `NacosError` wherever it is found; only the path says whether the client reads a text or a
wrapper. Source: docs/protocol #wire-errors, #http-v1 and #http-v2; ErrorCode and ResponseExceptionHandler of 2.2.4.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from enum import Enum
from http import HTTPStatus
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from distro_impl.logs import logger
from distro_impl.remote.errors import INVALID_PARAM, NOT_FOUND, SERVER_ERROR, NacosError

CONTEXT_PATH = "/nacos"
GONE = 410
JSON = "application/json"
HTTP_ERRORS = range(400, 600)

log = logger(__name__)


class ErrorCode(Enum):
    """The codes in the wrapper: (code, its name there, HTTP status that goes with it)."""

    SUCCESS = (0, "success", 200)
    PARAMETER_MISSING = (10000, "parameter missing", INVALID_PARAM)
    PARAMETER_VALIDATE_ERROR = (20002, "parameter validate error", INVALID_PARAM)
    RESOURCE_NOT_FOUND = (20004, "resource not found", NOT_FOUND)
    WEIGHT_ERROR = (21001, "weight error", INVALID_PARAM)
    INSTANCE_METADATA_ERROR = (21002, "instance metadata error", INVALID_PARAM)
    INSTANCE_NOT_FOUND = (21003, "instance not found", 200)
    INSTANCE_ERROR = (21004, "instance error", INVALID_PARAM)
    ILLEGAL_STATE = (23000, "illegal state", INVALID_PARAM)
    SERVER_ERROR = (30000, "server error", SERVER_ERROR)
    API_DEPRECATED = (40000, "API deprecated", GONE)


class ApiError(NacosError):
    """An error of the HTTP API, with the code that the wrapper shows besides the status."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(error.value[2], message)
        self.error = error


class FilterError(NacosError):
    """Found by a filter, before any handler: the client gets the error page and never reads the message."""


def text(body: str = "ok", status: int = 200) -> web.Response:
    return web.Response(text=body, status=status)


def json_reply(data: Any, status: int = 200) -> web.Response:
    """JSON without a charset, as Spring writes it; half of a surrogate pair becomes a question mark, as over gRPC."""
    body = json.dumps(data, ensure_ascii=False).encode(errors="replace")
    return web.Response(body=body, status=status, content_type=JSON)


def error_page(status: int, path: str, message: str | None = None) -> web.Response:
    """What Spring shows for an error that no handler wrote about; its time is that of the machine, as in a log."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    shown = {} if message is None else {"message": message}
    page = {"timestamp": now, "status": status, "error": HTTPStatus(status).phrase, **shown, "path": path}
    return json_reply(page, status)


def wrapped(
    data: Any, error: ErrorCode = ErrorCode.SUCCESS, status: int = 200, message: str | None = None
) -> web.Response:
    """The `Result` of the v2 and v3 APIs; its message is the name of the error unless there is more to say."""
    code, name, _ = error.value
    return json_reply({"code": code, "message": message or name, "data": data}, status)


def answer(request: web.Request, data: Any) -> web.StreamResponse:
    """Data in the form that clients of the path read. None is `ok`; what is an answer already stays as it is."""
    if isinstance(data, web.StreamResponse):
        return data
    if is_wrapped(request):
        return wrapped("ok" if data is None else data)
    return text() if data is None else json_reply(data)


@web.middleware
async def answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """An error of this node reaches a client as a status and a text alone."""
    try:
        return await handler(request)
    except NacosError as error:
        return _failure(request, error)
    except web.HTTPMethodNotAllowed as error:
        if _is_naming_v1(request):
            return error_page(HTTPStatus.NOT_IMPLEMENTED, request.path)
        return text(f"caused: Request method '{error.method}' not supported;", SERVER_ERROR)
    except web.HTTPNotFound:
        return error_page(HTTPStatus.NOT_IMPLEMENTED if _is_naming_v1(request) else HTTPStatus.NOT_FOUND, request.path)
    except web.HTTPException:
        raise
    except Exception as error:
        log.exception("%s %s failed", request.method, request.path)
        return _failure(request, NacosError(SERVER_ERROR, f"{type(error).__name__}: {error}"))


def _failure(request: web.Request, error: NacosError) -> web.Response:
    status = error.code if error.code in HTTP_ERRORS else SERVER_ERROR
    if isinstance(error, FilterError):
        return error_page(status, request.path)
    if is_wrapped(request):
        return wrapped(error.message, error.error if isinstance(error, ApiError) else ErrorCode.SERVER_ERROR, status)
    return text(error.message, status)


def _is_naming_v1(request: web.Request) -> bool:
    """There a filter looks up the handler of each request first, and says itself when there is none."""
    return request.path.startswith(f"{CONTEXT_PATH}/v1/ns/")


def is_wrapped(request: web.Request) -> bool:
    """Whether the client of this path, `/nacos/v2/…`, reads the wrapper."""
    return request.path.split("/", 3)[2:3] in (["v2"], ["v3"])
