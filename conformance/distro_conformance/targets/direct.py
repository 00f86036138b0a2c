"""One HTTP request to a foreign or starting server: returns the answer, never raises."""

from __future__ import annotations

import http.client
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping


def _opener(*handlers: urllib.request.BaseHandler) -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(
        urllib.request.ProxyHandler({}), *handlers
    )  # loopback never goes through a proxy


NO_HEADERS: Mapping[str, str] = {}
_direct = _opener()
NO_ANSWER = 0


def asked(
    url: str,
    timeout_s: float = 1.0,
    headers: Mapping[str, str] = NO_HEADERS,
    data: bytes | None = None,
    context: ssl.SSLContext | None = None,
) -> tuple[int, str]:
    """Status and body of the answer, a POST if there are `data`; NO_ANSWER and an empty body without an answer."""
    opener = _direct if context is None else _opener(urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(urllib.request.Request(url, data, dict(headers)), timeout=timeout_s) as answer:
            return answer.status, str(answer.read().decode("utf-8", "replace"))
    except urllib.error.HTTPError as refusal:
        return refusal.code, ""
    except (OSError, http.client.HTTPException):  # no server listens, or it does not speak HTTP
        return NO_ANSWER, ""


def get(url: str, timeout_s: float = 1.0, headers: Mapping[str, str] = NO_HEADERS) -> str | None:
    """The body of a good answer; None when there is none (yet)."""
    status, body = asked(url, timeout_s, headers)
    return body if status == http.client.OK else None
