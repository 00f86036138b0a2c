"""Limits of the number of client connections: of all, of one IP address, of one application.

Connections of members are not counted, and by default there is no limit (docs/protocol #connection-limits,
#ejector-check). Releases count the connections with the label `source=sdk`. Here every connection counts, except those
from the address of a member to the cluster port, so a client cannot avoid the limits by its label. The numbers have the
names that Nacos gives them in its limit rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

NO_LIMIT = -1


class CountedConnection(Protocol):
    """The properties of a connection that the limits use."""

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
    """The numbers of counted connections."""

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
    """A negative number means no limit. An address or application in a mapping has its own limit there."""

    count_limit: int = NO_LIMIT
    count_limit_per_client_ip: int = NO_LIMIT
    count_limit_per_client_app: int = NO_LIMIT
    client_ips: Mapping[str, int] = field(default_factory=dict)
    client_apps: Mapping[str, int] = field(default_factory=dict)

    @property
    def are_none(self) -> bool:
        """Whether there is no limit at all."""
        return self == UNLIMITED

    def has_room_for_stream(self, ip: str, without_set_up: int) -> bool:
        """Whether an address with that number of streams without a set-up may open another one."""
        limit = self.client_ips.get(ip, self.count_limit_per_client_ip)
        return limit < 0 or without_set_up < max(1, limit)

    def refusal(self, newcomer: CountedConnection, connected: ClientCounts) -> str | None:
        """The limit that another connection would exceed, as a clause; None: it may connect."""
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
        """The ids of the connections to close when a limit was lowered. The oldest connections stay."""
        kept, expelled = ClientCounts(), []
        for meta in sorted(connected, key=lambda meta: meta.created_ms):
            if self.refusal(meta, kept) is None:
                kept.add(meta)
            else:
                expelled.append(meta.id)
        return expelled


UNLIMITED = ConnectionLimits()
