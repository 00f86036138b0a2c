"""From a service to the clients that publish in it, or that subscribe to it: `ClientServiceIndexesManager`.

Kept by `ClientManager` alone. Source: docs/protocol #index-entries.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from distro_impl.naming.client import Client, Service


class ClientIndex:
    """The clients of each service, in the order in which they came to it."""

    def __init__(self) -> None:
        self._clients: dict[Service, dict[str, Client]] = {}

    def __contains__(self, service: Service) -> bool:
        return service in self._clients

    def __iter__(self) -> Iterator[tuple[Service, str]]:
        """Each service with the id of each of its clients."""
        return ((service, client_id) for service, clients in self._clients.items() for client_id in clients)

    def of(self, service: Service) -> Collection[Client]:
        return self._clients.get(service, {}).values()

    def add(self, service: Service, client: Client) -> None:
        clients = self._clients.get(service)
        if clients is None:
            clients = self._clients[service] = {}
        clients[client.id] = client

    def discard(self, service: Service, client: Client) -> None:
        clients = self._clients.get(service, {})
        clients.pop(client.id, None)
        if not clients:
            self._clients.pop(service, None)
