"""The initial load: ask the other members for a snapshot, in ascending order, until the first one gives one.

When nobody does, all are asked again after the retry delay. An empty snapshot is a success. Until then the node sends
no verify and, in strict, gives no snapshot either. There it may be that all members are starting: each refuses, and
each would wait for the others. So it is a complete load when all were asked and all refused; a member that was not
reached, or not understood, may have the data that we miss. Source: wire-protocol.md section 6.8, known-bugs.md B33.
"""

from __future__ import annotations

from collections.abc import Sequence

from distro_impl.clocks.clock import Clock
from distro_impl.distro.data_processor import DistroClientDataProcessor
from distro_impl.distro.transport_agent import DistroReply, DistroTransportAgent
from distro_impl.naming.client import MalformedSyncDataError
from distro_impl.profiles import Profile


class LoadTask:
    def __init__(
        self,
        clock: Clock,
        profile: Profile,
        peers: Sequence[str],
        processor: DistroClientDataProcessor,
        agent: DistroTransportAgent,
    ) -> None:
        self._clock, self._profile, self._peers = clock, profile, peers
        self._processor, self._agent = processor, agent
        self.finished_initial = not peers
        """Alone there is nobody to ask."""

    async def run(self) -> None:
        """One round over all members; sets a timer for the next one when it fails.

        An exception that nobody foresaw is a defect and goes to the clock, which tells; the load need not end with it.
        """
        try:
            self.finished_initial = self.finished_initial or await self._round()
        except Exception:
            if self._profile.load_outlives_exception:
                self._try_again_later()
            raise
        if not self.finished_initial:
            self._try_again_later()

    async def _round(self) -> bool:
        """Whether the load is complete."""
        replies = set()
        for peer in self._peers:
            reply = await self._load_from(peer)
            if reply is DistroReply.SUCCESS:
                return True
            replies.add(reply)
        return self._profile.snapshot_needs_load and replies == {DistroReply.FAIL}

    def _try_again_later(self) -> None:
        retry_ms = self._clock.now_ms() + self._profile.load_retry_delay_ms
        self._clock.call_at(retry_ms, self.run, "initial load")

    async def _load_from(self, peer: str) -> DistroReply:
        reply, elements = await self._agent.load_snapshot(peer)
        try:
            self._processor.process_snapshot(elements)
        except MalformedSyncDataError:
            return DistroReply.EXCEPTION
        return reply
