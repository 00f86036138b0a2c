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

from distro_impl.clocks.clock import side_by_side
from distro_impl.core import Core
from distro_impl.distro.data_processor import DistroClientDataProcessor, SupersededReceived
from distro_impl.distro.distro_log import DistroLog
from distro_impl.distro.mapper import DistroMapper
from distro_impl.distro.transport_agent import DistroReply, DistroTransportAgent
from distro_impl.distro.unacknowledged import UnacknowledgedChanges
from distro_impl.distro.verify_task import VerifyFailed
from distro_impl.membership.members import MembersChanged, ServerMemberManager
from distro_impl.naming.changes import Cause, ClientChanged, ClientRemoved
from distro_impl.naming.client import Client
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.ip_port_client import IpPortClient, is_ip_port, responsible_tag
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
        core: Core,
        *,
        members: ServerMemberManager,
        mapper: DistroMapper,
        clients: ClientManager,
        processor: DistroClientDataProcessor,
        agent: DistroTransportAgent,
        unacknowledged: UnacknowledgedChanges,
        log: DistroLog,
        execute_engine: ExecuteTaskEngine,
    ) -> None:
        self._clock, self._profile, self._members, self._mapper = core.clock, core.profile, members, mapper
        self._listed = frozenset(members.other_addresses())
        self._clients, self._processor, self._agent, self._unacknowledged = clients, processor, agent, unacknowledged
        self._delayed: DelayTaskEngine[DistroKey, DataOperation] = DelayTaskEngine(
            core.clock, self._execute, lambda new, _: new, "distro delay tasks"
        )
        self._log, self._execute_engine = log, execute_engine
        core.notify_center.subscribe(ClientChanged, self._on_client_changed)
        core.notify_center.subscribe(ClientRemoved, self._on_client_removed)
        core.notify_center.subscribe(VerifyFailed, self._on_verify_failed)
        if core.profile.owner_hands_over:
            core.notify_center.subscribe(MembersChanged, self._on_members_changed)
            core.notify_center.subscribe(SupersededReceived, self._on_superseded_received)

    # Events

    def _on_client_changed(self, event: ClientChanged) -> None:
        """What a member has sent of an ip:port client was announced by the node that accepted it. In releases its owner
        announces it too (B22)."""
        client, is_announced = event.client, event.client.responsible
        if self._profile.owner_hands_over and isinstance(client, IpPortClient):
            is_announced = event.cause is not Cause.RECEIVED
            if event.cause is Cause.ASKED:
                self._unacknowledged.accepted(client.id, self._members.other_addresses())
            if is_announced:
                self._unacknowledged.supersede(client.id, (event.replaced,), client.revision)
        if is_announced:
            self._sync_to_all(client.id, DataOperation.CHANGE)

    def _on_client_removed(self, event: ClientRemoved) -> None:
        if event.client.responsible:
            self._sync_to_all(event.client.id, DataOperation.DELETE)
        # If not, its owner has deleted it, or has not verified it for a lease.
        self._unacknowledged.ended(event.client.id, event.client.revision, was_owner=event.client.responsible)

    def _on_verify_failed(self, event: VerifyFailed) -> None:
        client = self._clients.get(event.client_id)
        if client is not None and client.responsible:
            self._delayed.add(DistroKey(event.client_id, event.peer), DataOperation.CHANGE, AT_THE_NEXT_TICK_MS)

    def _on_members_changed(self, _: MembersChanged) -> None:
        """A member that joins is sent what ip:port clients have asked of this node: it may own them from now on. What
        this node only concluded from missing beats is not sent."""
        before, self._listed = self._listed, frozenset(self._members.other_addresses())
        joined = sorted(self._listed - before)
        self._unacknowledged.keep_members(self._listed)
        for client in filter(self._is_handed_over, self._clients):
            for peer in joined:
                self._send_until_acknowledged(client.id, peer)

    def _on_superseded_received(self, event: SupersededReceived) -> None:
        """The member has acknowledged the client before, if at all, and sends what was replaced since."""
        if event.sender in self._members.other_addresses() and self._clients.get(event.client_id) is not None:
            self._send_until_acknowledged(event.client_id, event.sender)

    def _send_until_acknowledged(self, client_id: str, peer: str) -> None:
        self._unacknowledged.accepted(client_id, (peer,))
        self._delayed.add(DistroKey(client_id, peer), DataOperation.CHANGE, self._profile.sync_delay_ms)

    def _is_handed_over(self, client: Client) -> bool:
        return isinstance(client, IpPortClient) and client.accepted_here

    def _sync_to_all(self, client_id: str, operation: DataOperation) -> None:
        for peer in self._members.other_addresses():
            self._delayed.add(DistroKey(client_id, peer), operation, self._profile.sync_delay_ms)

    # Tasks

    async def flush(self) -> None:
        """Do now, and once, what is still waiting for its time."""
        waiting = self._delayed.take_all().items()
        due = (self._sync(*task) for task in waiting if self._is_still_to_send(task[0]))
        await side_by_side(self._clock, due, "last sync")

    def _execute(self, key: DistroKey, operation: DataOperation) -> None:
        if self._is_still_to_send(key):
            name = f"{operation} of {key.client_id} to {key.peer}"
            self._execute_engine.add_task(f"sync to {key.peer}", name, partial(self._sync, key, operation))

    def _is_still_to_send(self, key: DistroKey) -> bool:
        """What this node concluded from missing beats is not sent any more once another member owns the client: the
        beats may have gone there. In releases whatever was announced is sent."""
        if not self._profile.owner_hands_over or not is_ip_port(key.client_id):
            return True
        return self._mapper.responsible(responsible_tag(key.client_id)) or self._unacknowledged.is_pending(*key)

    def _sync(self, key: DistroKey, operation: DataOperation) -> Coroutine[None, None, None]:
        return self._sync_delete(key) if operation is DataOperation.DELETE else self._sync_change(key)

    async def _sync_change(self, key: DistroKey) -> None:
        """Sends the state of now, not that of the event: changes in between travel together."""
        revision, change = self._revision(key), self._change(key)
        if change is not None:
            self._handle(key, DataOperation.CHANGE, await self._send(key, DataOperation.CHANGE, change), revision)
        elif self._profile.missing_client_is_deleted:
            await self._sync_delete(key)
        else:  # neither success nor retry (B24, B25)
            self._log.nothing_to_sync(*key)

    def _change(self, key: DistroKey) -> Json | None:
        """The body of the request. Nothing else of the client is held until the answer comes, for as many as there are
        under way."""
        data = self._processor.data_of(key.client_id)
        return None if data is None else self._agent.sync_body(key.peer, DataOperation.CHANGE, key.client_id, data)

    def _revision(self, key: DistroKey) -> int | None:
        client = self._clients.get(key.client_id)
        return None if client is None else client.revision

    async def _sync_delete(self, key: DistroKey) -> None:
        body = self._agent.sync_body(key.peer, DataOperation.DELETE, key.client_id, None)
        self._handle(key, DataOperation.DELETE, await self._send(key, DataOperation.DELETE, body), None)

    async def _send(self, key: DistroKey, operation: DataOperation, body: Json) -> DistroReply:
        self._log.sync_began(operation, *key)
        reply = await self._agent.sync(key.peer, body)
        self._log.sync_ended(*key, reply)
        return reply

    def _handle(self, key: DistroKey, operation: DataOperation, reply: DistroReply, revision: int | None) -> None:
        """DistroClientTaskFailedHandler: whatever is not a success is tried again later. `revision` is the one that was
        sent."""
        if reply is DistroReply.SUCCESS:
            self._unacknowledged.acknowledged(*key, revision)
        elif not self._is_delete_pending(key):
            self._delayed.add(key, operation, self._profile.sync_retry_delay_ms)

    def _is_delete_pending(self, key: DistroKey) -> bool:
        """A retry counts as created now, so in real releases it replaces a DELETE that waits (D2, B24)."""
        return self._profile.pending_delete_survives_retry and self._delayed.pending(key) is DataOperation.DELETE
