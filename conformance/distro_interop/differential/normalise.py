"""A log without the values of one run: addresses, ports, client ids, times, and orders that are not guaranteed.

Everything else stays, so a rule that is missing here shows up as a difference, never as a pass.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from distro_interop.differential.exchange import Exchange, ScriptLog

UNORDERED = frozenset(
    {"hosts", "doms", "serviceNames", "clientSyncDataList", "published", "serviceList", "ips", "servers", "data"}
)
"""Lists that servers make of hash tables."""

MEASURED = frozenset({"cpu", "load", "mem"})
"""Measured values of the machine."""

COUNTED = "requestId"
"""Numbers of pushes: one row for a whole server."""

SIGNED = "accessToken"
"""Tokens that a server has made."""

LEFT_S = "tokenTtl"
"""The remaining time of a token: a second less when a second has just begun. Rounded up to tens."""

_MILLISECONDS = re.compile(r"\b1[5-9]\d{11}\b")
_ISO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*(Z|[+-]\d\d:?\d\d)?")
_SINCE_2017 = 1_500_000_000_000


def normalised(log: ScriptLog) -> tuple[Exchange, ...]:
    """The exchanges of a log in words that another run would use too."""
    words = _Words(log.names)
    return tuple(Exchange(exchange.step, words.of(exchange.answer)) for exchange in log.exchanges)


class _Words:
    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = sorted(names.items(), key=lambda name: -len(name[0]))  # an address before the port in it
        self._numbers = {int(text): word for text, word in names.items() if text.isdecimal()}

    def of(self, value: Any, key: str = "") -> Any:
        if isinstance(value, Mapping):
            return {self._text(name): self.of(item, name) for name, item in value.items()}
        if isinstance(value, list):
            items = [self.of(item) for item in value]
            return sorted(items, key=partial(json.dumps, sort_keys=True)) if key in UNORDERED else items
        if key in MEASURED:
            return "{measured}"
        if key == SIGNED and isinstance(value, str):
            return f"{{token with {value.count('.')} dots}}"
        if key == LEFT_S and isinstance(value, int):
            return -(-value // 10) * 10
        if key == COUNTED:
            return "{count}" if value else value
        if isinstance(value, str):
            port = self._port(int(value), key) if value.isdecimal() else None
            return port if isinstance(port, str) else self._text_or_object(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return "{time}" if value > _SINCE_2017 else self._port(value, key)
        return value

    def _port(self, number: int, key: str) -> int | str:
        """Only in fields for ports: a code such as 20002 can be the number of a port that was chosen at random."""
        return self._numbers.get(number, number) if key.lower().endswith("port") else number

    def _text_or_object(self, text: str) -> Any:
        """A JSON object inside a text: the order of its fields is no difference."""
        if text.startswith("{"):
            with contextlib.suppress(ValueError):
                return {"within a text": self.of(json.loads(text))}
        return self._text(text)

    def _text(self, text: str) -> str:
        for own, word in self._names:
            before = "(?<=[:_])" if own.isdecimal() else "(?<![0-9])"
            text = re.sub(rf"{before}{re.escape(own)}(?![0-9])", word, text)
        return _ISO_TIME.sub("{time}", _MILLISECONDS.sub("{time}", text))
