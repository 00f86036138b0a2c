"""The initial load: ask the other members for a snapshot, in ascending order, until the first one gives one.

When no member does, all are asked again after the retry delay. An empty snapshot is a success. Until then the node
sends no verify and, in strict, gives no snapshot either. There all members may be starting: each refuses, and each
would wait for the others. So it is a complete load when all that are not DOWN were asked and refused, and there
was one. A member that is SUSPICIOUS, was not reached, or not understood, may have the missing data, and is worth
another round; one that is DOWN may never come back. Should it come back with data, its next verify brings them here
(of an ip:port client the next beat does), and nothing that a loaded node does takes anything away from it. A member of
a cluster that has no other member yet waits for one; in strict it is complete, since it holds all there is. Source:
docs/protocol #load-first, #load-takes, #load-refusals, #load-alone, #load-interrupted, #load-asks; B33.
"""

from __future__ import annotations

from distro_impl.core import Core
from distro_impl.distro.data_processor import BatchOverSingleError, DistroClientDataProcessor
from distro_impl.distro.distro_log import DistroLog
from distro_impl.distro.transport_agent import DistroReply, DistroTransportAgent
from distro_impl.membership.members import ServerMemberManager
from distro_impl.naming.client import MalformedSyncDataError

ALONE_POLL_MS = 1_000
"""How often a member without others looks whether there is one by now."""


class LoadTask:
    """A node that is standalone has no member to ask."""

    def __init__(
        self,
        core: Core,
        members: ServerMemberManager,
        processor: DistroClientDataProcessor,
        agent: DistroTransportAgent,
        log: DistroLog,
    ) -> None:
        self._clock, self._profile, self._members = core.clock, core.profile, members
        self._processor, self._agent, self._log = processor, agent, log
        self._started_ms = core.clock.now_ms()
        self.finished_initial = core.config.is_standalone

    async def run(self) -> None:
        """One round over all members; sets a timer for the next one when it fails.

        An unexpected exception is a defect: the clock logs it, and the load continues with its next round.
        """
        try:
            self.finished_initial = self.finished_initial or await self._round()
        except Exception:
            if self._profile.load_outlives_exception:
                self._try_again_later()
            raise
        if self.finished_initial:
            self._log.loaded(self._clock.now_ms() - self._started_ms)
        else:
            self._try_again_later()

    async def _round(self) -> bool:
        """Whether the load is complete."""
        peers = self._members.other_addresses()
        replies = set()
        for peer in peers:
            is_down = self._members.is_down(peer)  # as it is when the request would be sent, not after the reply
            reply = await self._load_from(peer)
            if reply is DistroReply.SUCCESS:
                return True
            if not is_down:
                replies.add(reply)
        return self._profile.snapshot_needs_load and (replies == {DistroReply.FAIL} or not peers)

    def _try_again_later(self) -> None:
        wait_ms = self._profile.load_retry_delay_ms if self._members.others else ALONE_POLL_MS
        self._clock.call_at(self._clock.now_ms() + wait_ms, self.run, "initial load")

    async def _load_from(self, peer: str) -> DistroReply:
        began_ms = self._clock.now_ms()
        self._log.load_began(peer)
        reply, elements = await self._agent.load_snapshot(peer)
        if reply is DistroReply.SUCCESS:
            self._log.load_answered(peer, elements, self._clock.now_ms() - began_ms)
        try:
            self._processor.process_snapshot(elements, peer)
        except (MalformedSyncDataError, BatchOverSingleError):
            reply = DistroReply.EXCEPTION
        self._log.load_ended(peer, reply)
        return reply
