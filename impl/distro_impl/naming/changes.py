"""What happens in naming, for who listens: Distro, the pushes, the views of services, the beats.

Published through the NotifyCenter, so that naming knows none of them. Source: docs/protocol #sync-announce and
#receive-change.
"""

from __future__ import annotations

from msgspec import Struct

from distro_impl.naming.client import Client, Service
from distro_impl.naming.ip_port_client import IpPortClient


class ClientChanged(Struct, frozen=True):
    """A client's published set changed, by its own connection or by a peer."""

    client: Client


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
