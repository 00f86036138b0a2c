"""Events between the parts of one node, so that naming does not know Distro and neither knows the push.

Delivered at once and in order, on the spot: queues of their own for each kind of event are what B08 is about.
Source: wire-protocol.md sections 6.1 and 6.4.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from distro_impl.naming.client import Client, Service
from distro_impl.naming.ip_port_client import IpPortClient

E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class ClientChanged:
    """A client's published set changed, by its own connection or by a peer."""

    client: Client


@dataclass(frozen=True, slots=True)
class IpPortClientCreated:
    """This node has an ip:port client that it had not."""

    client: IpPortClient


@dataclass(frozen=True, slots=True)
class ClientRemoved:
    """A client is gone from this node."""

    client: Client


@dataclass(frozen=True, slots=True)
class ServiceChanged:
    """The publishers of a service changed; all its subscribers here are to be told."""

    service: Service


@dataclass(frozen=True, slots=True)
class ServiceRemoved:
    """A service that was empty for long does not exist here any more."""

    service: Service


@dataclass(frozen=True, slots=True)
class ServiceSubscribed:
    """A client of ours subscribed for the first time; it alone is to be told."""

    service: Service
    client_id: str


@dataclass(frozen=True, slots=True)
class VerifyFailed:
    """A peer answered a verify with a typed failure."""

    client_id: str
    peer: str


@dataclass(frozen=True, slots=True)
class MembersChanged:
    """The member list changed, or the state of a member, or what it says of itself. Addresses are sorted; `healthy`
    are those that are UP or SUSPICIOUS; both have this node in them."""

    members: tuple[str, ...]
    healthy: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OwnersChanged:
    """Some ip:port clients may have another owner now; the function tells the one before, by tag."""

    owner_before: Callable[[str], str]


class NotifyCenter:
    def __init__(self) -> None:
        self._subscribers: defaultdict[type, list[Callable[[Any], None]]] = defaultdict(list)

    def subscribe(self, kind: type[E], subscriber: Callable[[E], None]) -> None:
        self._subscribers[kind].append(subscriber)

    def publish(self, event: object) -> None:
        for subscriber in self._subscribers[type(event)]:
            subscriber(event)
