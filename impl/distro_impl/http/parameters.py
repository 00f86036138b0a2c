"""Parameters of an HTTP request, read as the servers read them.

They come in the query string or in a form body, and all of them are text; whether a text is a number or true is
decided here, once for all APIs; what several of them mean together, in service_names.py and instance_parameters.py. Who
sends something unusable gets the name of the parameter. Source: docs/protocol #http-v1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl

from aiohttp import web

from distro_impl.http.body import read_bytes
from distro_impl.http.metadata import printable
from distro_impl.http.replies import ApiError, ErrorCode, FilterError
from distro_impl.ports import MAX_PORT
from distro_impl.remote.errors import INVALID_PARAM

FORM = "application/x-www-form-urlencoded"
MAX_FIELDS = 10_000
"""Of a form; as Tomcat has it, under real servers."""
TRUE = frozenset({"true", "yes", "on", "y", "t", "1"})
WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,10}", re.ASCII)


class Parameters:
    """The parameters of one request by name. A blank one counts as missing."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

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
        request[PARAMETERS] = Parameters({key: printable(value) for key, value in values.items()})
    return request[PARAMETERS]


async def _form(request: web.Request) -> list[tuple[str, str]]:
    if request.content_type != FORM:
        return []
    text = (await read_bytes(request)).decode("utf-8", "replace")
    try:
        return parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        raise FilterError(INVALID_PARAM, f"a form has more than {MAX_FIELDS} fields") from None


def invalid(name: str, problem: str) -> ApiError:
    return ApiError(ErrorCode.PARAMETER_VALIDATE_ERROR, f"Param '{name}' {problem}")
