"""The Distro protocol of one node: which event becomes which task, and what a task does when it is due.

    change -> delay task (merged per client and peer) -> execute task -> request -> reply -> nothing, or a retry

Verify rounds and the initial load are tasks of their own (verify_task.py, load_task.py). Only clients that this node is
responsible for are replicated. Source: docs/protocol #owner-handover, #sync-null-data, #sync-retry, #load-snapshot,
#sync-announce to #sync-only-up.
"""

from __future__ import annotations

from collections.abc import Coroutine
from functools import partial
from typing import NamedTuple

from distro_impl.clocks.clock import Clock, side_by_side
from distro_impl.distro.data_processor import DistroClientDataProcessor
from distro_impl.distro.distro_log import DistroLog
from distro_impl.distro.mapper import DistroMapper, OwnersChanged
from distro_impl.distro.record import DistroRecord
from distro_impl.distro.transport_agent import DistroReply, DistroTransportAgent
from distro_impl.distro.verify_task import VerifyFailed
from distro_impl.membership.members import ServerMemberManager
from distro_impl.naming.changes import ClientChanged, ClientRemoved
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.ip_port_client import IpPortClient, is_ip_port, responsible_tag
from distro_impl.notify_center import NotifyCenter
from distro_impl.profiles import Profile
from distro_impl.remote.payloads import DataOperation
from distro_impl.tasks.delay_engine import DelayTaskEngine
from distro_impl.tasks.execute_engine import ExecuteTaskEngine
from distro_protos import Json

AT_THE_NEXT_TICK_MS = 0


class DistroKey(NamedTuple):
    """What a task is about: there is at most one pending for each key."""

    client_id: str
    peer: str


class DistroProtocol:
    """Replication of our own clients to the other members."""

    def __init__(
        self,
        *,
        clock: Clock,
        profile: Profile,
        members: ServerMemberManager,
        mapper: DistroMapper,
        clients: ClientManager,
        processor: DistroClientDataProcessor,
        agent: DistroTransportAgent,
        record: DistroRecord,
        log: DistroLog,
        execute_engine: ExecuteTaskEngine,
        notify_center: NotifyCenter,
    ) -> None:
        self._clock, self._profile, self._members, self._mapper = clock, profile, members, mapper
        self._clients, self._processor, self._agent = clients, processor, agent
        self._delayed: DelayTaskEngine[DistroKey, DataOperation] = DelayTaskEngine(
            clock, self._execute, lambda new, _: new, "distro delay tasks"
        )
        self._record, self._log, self._execute_engine = record, log, execute_engine
        notify_center.subscribe(ClientChanged, self._on_client_changed)
        notify_center.subscribe(ClientRemoved, self._on_client_removed)
        notify_center.subscribe(VerifyFailed, self._on_verify_failed)
        if profile.owner_hands_over:
            notify_center.subscribe(OwnersChanged, self._on_owners_changed)

    # Events

    def _on_client_changed(self, event: ClientChanged) -> None:
        if event.client.responsible:
            self._sync_to_all(event.client.id, DataOperation.CHANGE)

    def _on_client_removed(self, event: ClientRemoved) -> None:
        if event.client.responsible:
            self._sync_to_all(event.client.id, DataOperation.DELETE)

    def _on_verify_failed(self, event: VerifyFailed) -> None:
        client = self._clients.get(event.client_id)
        if client is not None and client.responsible:
            self._delayed.add(DistroKey(event.client_id, event.peer), DataOperation.CHANGE, AT_THE_NEXT_TICK_MS)

    def _on_owners_changed(self, event: OwnersChanged) -> None:
        """A change that was accepted here goes to the present owner of the client, also after an owner in between: no
        other node knows that it is newer than the copy of the new owner."""
        for client in self._clients:
            tag = responsible_tag(client.id)
            key = DistroKey(client.id, self._mapper.map_server(tag))
            if self._is_handed_over(key) and event.owner_before(tag) != key.peer:
                self._delayed.add(key, DataOperation.CHANGE, AT_THE_NEXT_TICK_MS)

    def _sync_to_all(self, client_id: str, operation: DataOperation) -> None:
        for peer in self._members.other_addresses():
            self._delayed.add(DistroKey(client_id, peer), operation, self._profile.sync_delay_ms)

    # Tasks

    async def flush(self) -> None:
        """Do now, and once, what is still waiting for its time."""
        waiting = self._delayed.take_all().items()
        due = (self._sync(*task) for task in waiting if not self._is_others(*task))
        await side_by_side(self._clock, due, "last sync")

    def _execute(self, key: DistroKey, operation: DataOperation) -> None:
        if not self._is_others(key, operation):
            name = f"{operation} of {key.client_id} to {key.peer}"
            self._execute_engine.add_task(f"sync to {key.peer}", name, partial(self._sync, key, operation))

    def _sync(self, key: DistroKey, operation: DataOperation) -> Coroutine[None, None, None]:
        return self._sync_delete(key) if operation is DataOperation.DELETE else self._sync_change(key)

    async def _sync_change(self, key: DistroKey) -> None:
        """Sends the state of now, not that of the event: changes in between travel together."""
        change = self._change(key)
        if change is not None:
            self._handle(key, DataOperation.CHANGE, await self._send(key, DataOperation.CHANGE, change))
        elif self._profile.missing_client_is_deleted:
            await self._sync_delete(key)
        else:  # neither success nor retry (B24, B25)
            self._log.nothing_to_sync(*key)

    def _change(self, key: DistroKey) -> Json | None:
        """The body of the request. Nothing else of the client is held until the answer comes, for as many as there are
        under way."""
        data = self._processor.data_of(key.client_id)
        return None if data is None else self._agent.sync_body(key.peer, DataOperation.CHANGE, key.client_id, data)

    async def _sync_delete(self, key: DistroKey) -> None:
        body = self._agent.sync_body(key.peer, DataOperation.DELETE, key.client_id, None)
        self._handle(key, DataOperation.DELETE, await self._send(key, DataOperation.DELETE, body))

    async def _send(self, key: DistroKey, operation: DataOperation, body: Json) -> DistroReply:
        self._log.sync_began(operation, *key)
        reply = await self._agent.sync(key.peer, body)
        self._log.sync_ended(*key, reply)
        return reply

    def _handle(self, key: DistroKey, operation: DataOperation, reply: DistroReply) -> None:
        """DistroClientTaskFailedHandler: whatever is not a success is tried again later."""
        self._record.synced(is_success=reply is DistroReply.SUCCESS)
        if reply is DistroReply.SUCCESS or self._is_superseded(key, operation):
            return
        self._delayed.add(key, operation, self._profile.sync_retry_delay_ms)

    def _is_others(self, key: DistroKey, operation: DataOperation) -> bool:
        """Releases ask at the event only, and go on with what waits although a new owner speaks for the client now."""
        if not self._profile.owner_hands_over or not is_ip_port(key.client_id):
            return False
        if self._mapper.responsible(responsible_tag(key.client_id)):
            return False
        return operation is DataOperation.DELETE or not self._is_handed_over(key)

    def _is_handed_over(self, key: DistroKey) -> bool:
        """Whether the client is that peer's now, and we have something that it asked of us. What we only concluded,
        from beats that went elsewhere, is nothing."""
        client = self._clients.get(key.client_id)
        return (
            isinstance(client, IpPortClient)
            and client.accepted_here
            and not client.responsible
            and key.peer == self._mapper.map_server(responsible_tag(key.client_id))
        )

    def _is_superseded(self, key: DistroKey, operation: DataOperation) -> bool:
        """A retry counts as created now, so in real releases it replaces a DELETE that waits (D2, B24)."""
        return (
            self._profile.pending_delete_survives_retry
            and operation is DataOperation.CHANGE
            and self._delayed.pending(key) is DataOperation.DELETE
        )
