"""What threads do to each other, on a node that has one: a step is put off, and what comes meanwhile gets in between.

A server looks something up on one thread while another removes it, or puts a client together piece by piece while
another reads it. Here the second half of such a step runs a moment later. Who lets the node come to rest before going
on sees nothing of it; who does two things at once may.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from distro_conformance.node_mutants.mutant import mutant
from distro_impl.naming.changes import ClientChanged, ClientRemoved, IpPortClientCreated
from distro_impl.naming.client import SyncData
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.ip_port_client import IpPortClient
from distro_impl.naming.push import PushService
from distro_impl.remote.connection import Connection
from distro_impl.remote.connection_manager import ConnectionManager

_PUT_OFF_S = 0.02
"""More than a message takes from one end of a transport to the other; in virtual time nothing passes meanwhile."""
_QUEUE_MAX = 2
"""Events. A server has room for 16,384."""


async def _later(step: Callable[[], object]) -> None:
    await asyncio.sleep(_PUT_OFF_S)
    step()


@mutant("B05", ClientManager, "apply")
def _torn(old: Any, self: Any, sync: SyncData, *, revision: int | None, reason: str) -> None:
    """Of two CHANGEs of one client at once, the older one removes what the newer one has brought."""
    held = self.get(sync.client_id)
    before = {} if held is None else dict(held.publishers)
    old(self, SyncData(sync.client_id, sync.revision, {**before, **sync.publishers}), revision=None, reason=reason)

    def rest() -> None:
        client = self.get(sync.client_id)
        if client is not None:
            left = {service: kept for service, kept in client.publishers.items() if service in sync.publishers}
            old(self, SyncData(sync.client_id, sync.revision, left), revision=revision, reason=reason)

    self._clock.spawn(_later(rest), f"rest of a CHANGE of {sync.client_id}")


@mutant("B25", ClientManager, "register", missing_client_is_deleted=False)
def _registers_late(old: Any, self: Any, client: Any, service: Any, published: Any, **named: Any) -> None:
    """A registration goes on with the client that it has found, also when that has gone meanwhile."""
    rest = _later(lambda: old(self, client, service, published, **named))
    self._clock.spawn(rest, f"rest of a registration of {client.id}")


@mutant("B28", ClientManager, "__init__", missing_client_is_deleted=False)
def _overflows(old: Any, self: Any, core: Any, *others: Any) -> None:
    """What happens to clients waits in a queue, and when that is full the next event overtakes all that wait."""
    old(self, replace(core, notify_center=_Queue(core.clock, core.notify_center)), *others)


class _Queue:
    """Before the centre, with little room."""

    def __init__(self, clock: Any, center: Any) -> None:
        self._clock, self._center = clock, center
        self._events: deque[object] = deque()

    def publish(self, event: object) -> None:
        if not isinstance(event, ClientChanged | ClientRemoved) or len(self._events) >= _QUEUE_MAX:
            self._center.publish(event)
            return
        self._events.append(event)
        self._clock.spawn(_later(lambda: self._center.publish(self._events.popleft())), "a queued event")


@mutant("B30", ClientManager, "ip_port_client_connected")
def _creates_twice(old: Any, self: Any, client_id: str) -> IpPortClient:
    """Two first requests of a client of the HTTP API create it twice, and beats are looked for at
    the lost one."""
    now_ms, created_ms = self._clock.now_ms(), self.__dict__.setdefault("_created_ms", {})
    is_known = self.get(client_id) is not None
    client: IpPortClient = old(self, client_id)
    if not is_known:
        created_ms[client_id] = now_ms
    elif created_ms.get(client_id) == now_ms:
        lost = IpPortClient(client_id, native=False, renewed_ms=now_ms, revision=0, ownership=self._ownership)
        self._notify.publish(IpPortClientCreated(lost))
    return client


@mutant("B40", ConnectionManager, "register")
def _inserts_late(old: Any, self: Any, connection: Connection) -> None:
    """A connection whose transport ends while it is set up is inserted all the same."""
    self._clock.spawn(_later(lambda: old(self, connection)), f"rest of the set-up of {connection.id}")


@mutant("B44", PushService, "_push_to", queries_read_pushed_view=True)
def _tells_first(old: Any, self: Any, service: Any, targets: Any) -> None:
    """Subscribers get a push with the old list, before the new one is made."""
    storage, self._storage = self._storage, _Unrefreshed(self._storage)
    try:
        old(self, service, targets)
    finally:
        self._storage = storage
    self._clock.spawn(_later(lambda: storage.refresh(service)), f"rest of a push of {service.name}")


class _Unrefreshed:
    def __init__(self, storage: Any) -> None:
        self._storage = storage

    def refresh(self, service: Any) -> None:
        """Nothing yet."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)
