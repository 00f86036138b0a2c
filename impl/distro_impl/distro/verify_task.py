"""The verify round: the owner asks every other member whether its copy is still the right one.

One request per client and peer, with what the client is when it is sent, and only after the node's own initial load. A
typed failure makes the owner send the client again to that peer; every other bad end is left to the next round. Where
a round takes longer than its period, because there are more clients than a peer can verify in that time, the next one
waits for its end: rounds stretch, and their queues hold one round at most.
Source: docs/protocol #verify-failed, #verify-pure-subscriber, #verify-round.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from distro_impl.distro.data_processor import DistroClientDataProcessor
from distro_impl.distro.distro_log import DistroLog
from distro_impl.distro.load_task import LoadTask
from distro_impl.distro.transport_agent import DistroReply, DistroTransportAgent
from distro_impl.membership.members import ServerMemberManager
from distro_impl.notify_center import NotifyCenter
from distro_impl.tasks.execute_engine import ExecuteTaskEngine


@dataclass(frozen=True, slots=True)
class VerifyFailed:
    """A peer answered a verify with a typed failure."""

    client_id: str
    peer: str


class VerifyTask:
    def __init__(
        self,
        *,
        members: ServerMemberManager,
        processor: DistroClientDataProcessor,
        agent: DistroTransportAgent,
        load_task: LoadTask,
        log: DistroLog,
        execute_engine: ExecuteTaskEngine,
        notify_center: NotifyCenter,
    ) -> None:
        self._members, self._processor, self._agent = members, processor, agent
        self._load_task, self._log = load_task, log
        self._execute_engine, self._notify = execute_engine, notify_center

    def run(self) -> None:
        """One round."""
        if not self._load_task.finished_initial:
            self._log.verify_skipped()
            return
        owned = self._processor.owned_clients()
        for peer in self._members.other_addresses():
            worker = f"VERIFY to {peer}"
            if self._execute_engine.is_busy(worker):
                self._log.record.verify_rounds_late += 1
                continue
            for client_id in owned:
                verify = partial(self._verify, peer, client_id)
                self._execute_engine.add_task(worker, f"VERIFY of {client_id} to {peer}", verify)

    async def _verify(self, peer: str, client_id: str) -> None:
        revision = self._processor.revision_of(client_id)
        if revision is None:
            return
        reply = await self._agent.verify(peer, client_id, revision)
        self._log.verify_ended(client_id, peer, reply)
        if reply is DistroReply.FAIL:
            self._notify.publish(VerifyFailed(client_id, peer))
