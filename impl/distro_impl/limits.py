"""How many connections of clients a node takes: in all, of one IP address, of one application.

Connections of members are not counted, and by default nothing is limited (docs/protocol #connection-limits,
#ejector-check). Releases count what labels itself `source=sdk`; here a connection counts unless it comes to the port of
the members from the address of one, so a client cannot opt out. The names of the numbers are those of Nacos' own limit
rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

NO_LIMIT = -1


class CountedConnection(Protocol):
    """What counting needs to know of a connection."""

    @property
    def id(self) -> str: ...
    @property
    def client_ip(self) -> str: ...
    @property
    def app_name(self) -> str: ...
    @property
    def is_counted(self) -> bool: ...
    @property
    def created_ms(self) -> int: ...


class ClientCounts:
    """How many connections there are that count."""

    def __init__(self) -> None:
        self.total = 0
        self.by_ip: Counter[str] = Counter()
        self.by_app: Counter[str] = Counter()

    def add(self, meta: CountedConnection, by: int = 1) -> None:
        if meta.is_counted:
            self.total += by
            for counter, key in ((self.by_ip, meta.client_ip), (self.by_app, meta.app_name)):
                counter[key] += by
                if not counter[key]:
                    del counter[key]

    def remove(self, meta: CountedConnection) -> None:
        self.add(meta, by=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """A negative number is no limit. An address or application named in a mapping has that number as its own."""

    count_limit: int = NO_LIMIT
    count_limit_per_client_ip: int = NO_LIMIT
    count_limit_per_client_app: int = NO_LIMIT
    client_ips: Mapping[str, int] = field(default_factory=dict)
    client_apps: Mapping[str, int] = field(default_factory=dict)

    @property
    def are_none(self) -> bool:
        """Whether nothing is limited at all."""
        return self == UNLIMITED

    def has_room_for_stream(self, ip: str, without_set_up: int) -> bool:
        """Whether an address that has so many streams without a set-up may open one more."""
        limit = self.client_ips.get(ip, self.count_limit_per_client_ip)
        return limit < 0 or without_set_up < max(1, limit)

    def refusal(self, newcomer: CountedConnection, connected: ClientCounts) -> str | None:
        """Why one more connection would be too many, or None."""
        if not newcomer.is_counted:
            return None
        ip, app = newcomer.client_ip, newcomer.app_name
        counted = (
            ("in all", self.count_limit, connected.total),
            (f"of {ip}", self.client_ips.get(ip, self.count_limit_per_client_ip), connected.by_ip[ip]),
            (f"of {app}", self.client_apps.get(app, self.count_limit_per_client_app), connected.by_app[app]),
        )
        for whose, limit, count in counted:
            if 0 <= limit <= count:
                return f"{count} connections {whose}, the limit is {limit}"
        return None

    def over_limit(self, connected: Iterable[CountedConnection]) -> list[str]:
        """Ids of the connections that a lowered limit leaves no room for; the oldest stay."""
        kept, expelled = ClientCounts(), []
        for meta in sorted(connected, key=lambda meta: meta.created_ms):
            if self.refusal(meta, kept) is None:
                kept.add(meta)
            else:
                expelled.append(meta.id)
        return expelled


UNLIMITED = ConnectionLimits()
