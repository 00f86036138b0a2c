"""Parameters of an HTTP request, read as the servers read them.

They come in the query string or in a form body, and all of them are text; what a text means is decided here, once for
all APIs: Java's booleans, numbers, metadata, the service that `serviceName` and `groupName` name together. Who sends
something unusable is told which parameter it was. Source: docs/protocol #http-v1.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from aiohttp import web

from distro_impl.http.body import read_bytes
from distro_impl.http.replies import ApiError, ErrorCode, FilterError
from distro_impl.naming.client import DEFAULT_CLUSTER, DEFAULT_GROUP, DEFAULT_NAMESPACE, Service
from distro_impl.naming.instance_operator import BeatInfo
from distro_impl.naming.service_info import MAX_WEIGHT, MIN_WEIGHT
from distro_impl.ports import MAX_PORT
from distro_impl.remote.errors import INVALID_PARAM
from distro_impl.remote.payloads import Instance
from distro_protos import check_nesting, read_json

FORM = "application/x-www-form-urlencoded"
MAX_FIELDS = 10_000
"""Of a form; as Tomcat has it, under real servers."""
PARAMETERS = "distro_impl.parameters"
"""Where a request keeps them once they are read: filters ask first, then the handler."""
GROUP_SEPARATOR = "@@"
UNGROUPED = "Param 'serviceName' is illegal, it should be format as 'groupName@@serviceName'"
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
            raise _invalid(name, f"is not a whole number: '{text}'")
        return int(text)

    def port(self, name: str = "port", *, default: int | None = None) -> int:
        port = self.whole_number(name, default=default)
        if not 0 <= port <= MAX_PORT:
            raise _invalid(name, f"is not between 0 and {MAX_PORT}: '{port}'")
        return port

    def weight(self) -> float:
        return checked_weight(self.text("weight", default="1"))

    def flag(self, *names: str, default: bool) -> bool:
        """Whatever is not one of the words for true is false."""
        return self.text(*names, default=str(default)).lower() in TRUE

    def cluster(self) -> str:
        return self.text("clusterName", "cluster", default=DEFAULT_CLUSTER)

    def service(self) -> Service:
        """The service of a grouped or plain `serviceName`, as ServiceNameFilter makes it."""
        if self._values.get("serviceName", "").isspace():
            raise ApiError(ErrorCode.PARAMETER_VALIDATE_ERROR, UNGROUPED)
        return self.service_named(self.required("serviceName"))

    def service_named(self, name: str) -> Service:
        """`name` may be `group@@name`, and then the parameter `groupName` has no say."""
        group, separator, plain = name.partition(GROUP_SEPARATOR)
        if not separator:
            group, plain = self.text("groupName", default=DEFAULT_GROUP), name
        if not group.strip() or not plain.strip():
            raise FilterError(INVALID_PARAM, f"Param 'serviceName' is illegal: '{name}'")
        return Service(self.text("namespaceId", default=DEFAULT_NAMESPACE), group, plain)

    def address(self) -> tuple[str, int]:
        """Of the instance that the request is about."""
        return self.required("ip"), self.port()

    def instance(self, service: Service) -> Instance:
        """What a gRPC client would send. The id is always generated on HTTP (section 7.1)."""
        (ip, port), cluster = self.address(), self.cluster()
        return Instance(
            instance_id=f"{ip}#{port}#{cluster}#{service.grouped_name}",
            ip=ip,
            port=port,
            cluster_name=cluster,
            weight=self.weight(),
            enabled=self.flag("enabled", "enable", default=True),
            healthy=self.flag("healthy", default=True),
            ephemeral=self.flag("ephemeral", default=True),
            metadata=metadata_of(self.text("metadata")),
        )

    def beat(self) -> BeatInfo | None:
        """The full beat in the parameter `beat`; None for a light one."""
        text = self.text("beat")
        if not text:
            return None
        try:
            beat = read_json(text.encode())
        except ValueError:
            raise _invalid("beat", "is not JSON") from None
        if not isinstance(beat, dict):
            raise _invalid("beat", "is not a JSON object")
        fields = Parameters({key: _scalar("beat", value) for key, value in beat.items() if _is_scalar(value)})
        if not fields.flag("ephemeral", default=True):
            raise _invalid("beat", "is of a persistent instance; those have no beats")
        return BeatInfo(
            ip=fields.required("ip"),
            port=fields.port(),
            cluster=fields.text("cluster", default=self.cluster()),
            weight=fields.weight(),
            metadata=_text_values("beat", beat.get("metadata") or {}),
        )


async def read_parameters(request: web.Request) -> Parameters:
    """Of the query string and of a form body; what is in both counts as in the query string. Read once."""
    if PARAMETERS not in request:
        values = dict(reversed(await _form(request)))
        values.update(reversed(list(request.query.items())))  # of several values the first counts
        request[PARAMETERS] = Parameters({key: _printable(value) for key, value in values.items()})
    found: Parameters = request[PARAMETERS]
    return found


async def _form(request: web.Request) -> list[tuple[str, str]]:
    if request.content_type != FORM:
        return []
    text = (await read_bytes(request)).decode("utf-8", "replace")
    try:
        return parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        raise FilterError(INVALID_PARAM, f"a form has more than {MAX_FIELDS} fields") from None


def metadata_of(text: str) -> dict[str, str]:
    """A JSON object, or `k=v,k=v`."""
    if not text:
        return {}
    try:
        check_nesting(text.encode())
        metadata = json.loads(text, parse_int=str, parse_float=str)
    except ValueError:
        return _metadata_of_pairs(text)
    return _text_values("metadata", {} if metadata is None else metadata)


def checked_weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not MIN_WEIGHT <= weight <= MAX_WEIGHT:
        raise ApiError(
            ErrorCode.WEIGHT_ERROR,
            f"instance format invalid: The weights range from {MIN_WEIGHT} to {MAX_WEIGHT}",
        )
    return weight


def _metadata_of_pairs(text: str) -> dict[str, str]:
    metadata = {}
    for pair in filter(None, text.split(",")):
        key, separator, value = pair.partition("=")
        if not separator or not value or "=" in value:
            raise ApiError(ErrorCode.INSTANCE_METADATA_ERROR, f"metadata format incorrect:{text}")
        metadata[key] = value
    return metadata


def _text_values(name: str, metadata: Any) -> dict[str, str]:
    """Metadata is text; a number or a boolean becomes one, null is left out, anything else is refused."""
    if not isinstance(metadata, dict):
        raise ApiError(ErrorCode.INSTANCE_METADATA_ERROR, f"metadata in param '{name}' is not a JSON object")
    return {_printable(key): _scalar(name, value) for key, value in metadata.items() if value is not None}


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (str, bool, int, float))


def _scalar(name: str, value: Any) -> str:
    if isinstance(value, str):
        return _printable(value)
    if not _is_scalar(value):
        raise ApiError(ErrorCode.INSTANCE_METADATA_ERROR, f"metadata in param '{name}' has a value that is no text")
    return json.dumps(value)


def _printable(text: str) -> str:
    """Without lone surrogates, which JSON can say and UTF-8 cannot: such a text could never be replicated."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _invalid(name: str, problem: str) -> ApiError:
    return ApiError(ErrorCode.PARAMETER_VALIDATE_ERROR, f"Param '{name}' {problem}")
