"""What happens in naming, for who listens: Distro, the pushes, the views of services, the beats.

Published through the NotifyCenter, so that naming knows none of them. Source: docs/protocol #sync-announce and
#receive-change.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from distro_impl.naming.client import Client, Service
from distro_impl.naming.ip_port_client import IpPortClient


class Cause(StrEnum):
    """Why what a client publishes has changed."""

    ASKED = "asked"  # by the client, of this node
    CONCLUDED = "concluded"  # from missing beats, by this node
    RECEIVED = "received"  # from a member


class ClientChanged(Struct, frozen=True):
    """A client's published set changed."""

    client: Client
    cause: Cause
    replaced: int
    """The revision that it had before; 0 where it is new."""


class IpPortClientCreated(Struct, frozen=True):
    """This node has an ip:port client that it had not."""

    client: IpPortClient


class ClientRemoved(Struct, frozen=True):
    """A client is gone from this node."""

    client: Client


class ServiceChanged(Struct, frozen=True):
    """The publishers of a service changed; a push to all its subscribers here is due."""

    service: Service


class ServiceRemoved(Struct, frozen=True):
    """A service that was empty for long does not exist here any more."""

    service: Service


class ServiceSubscribed(Struct, frozen=True):
    """A native client subscribed for the first time; a push to it alone is due."""

    service: Service
    client_id: str
