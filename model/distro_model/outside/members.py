"""What a node may believe about its members, and whether its requests reach them, as far as is observed from outside.

Reports of members, and those of the node with their answers, determine the beliefs. Reports to an absent member fail
unobserved, so the beliefs about it change with time. Times in ms, of the observer's clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from distro_model.messages import CallResult
from distro_model.node import Member, MemberState
from distro_model.outside.history import History
from distro_model.outside.ip_clients import Alive
from distro_model.outside.slack import Slack
from distro_model.outside.unexplained import Unexplained
from distro_model.profile import Profile
from distro_model.rules.members import judged


@dataclass(slots=True)
class _Peer:
    """The possible beliefs of the node about one member, and whether requests reach it."""

    believed: frozenset[Member]
    can_answer: bool = True
    is_held: bool = False
    sure_since_ms: int | None = 0
    """Since when requests certainly reach it; None: perhaps not."""
    is_doubtful: bool = False
    """An event has happened since it last answered a report with success."""
    up_until_ms: int | None = None
    """The last time at which it may have been believed UP, if it is no longer."""
    reported_ms: int | None = None
    left_ms: int | None = None
    unsettled_ms: int | None = None
    """When its connection was last lost, or requests to it were last held."""
    released_ms: int | None = None
    """When requests were last held no longer, and all that had been held reached it."""
    open_verifies: set[str] = field(default_factory=set)

    @property
    def is_up(self) -> bool:
        return all(each.state is MemberState.UP for each in self.believed)

    @property
    def may_be_up(self) -> bool:
        return any(each.state is MemberState.UP for each in self.believed)

    @property
    def belief(self) -> str:
        return " or ".join(sorted({each.state for each in self.believed}))

    def may_be_alive(self, slack: Slack) -> frozenset[bool]:
        """In real time some failed reports are not observed."""
        if slack.skew_ms and self.is_doubtful:
            return frozenset((True, False))
        return frozenset(each.state is not MemberState.DOWN for each in self.believed)


class MembersOutside:
    def __init__(self, peers: Sequence[str], profile: Profile, slack: Slack, history: History, started_ms: int) -> None:
        self._profile, self._slack, self._history, self._started_ms = profile, slack, history, started_ms
        self._peers = {peer: _Peer(frozenset({Member(peer)}), sure_since_ms=started_ms) for peer in peers}
        self._round_ms = self._verified_ms = -profile.verify_interval_ms
        self.late: set[str] = set()
        """The reports that were late by no more than the machine's delay."""

    # Facts

    @property
    def alive(self) -> Alive:
        return {name: peer.may_be_alive(self._slack) for name, peer in self._peers.items()}

    @property
    def without_verifies(self) -> tuple[str, ...]:
        """The members that have answered each VERIFY."""
        return tuple(name for name, peer in self._peers.items() if not peer.open_verifies)

    @property
    def all_reached(self) -> bool:
        return all(peer.sure_since_ms is not None for peer in self._peers.values())

    def reach(self, name: str) -> int | None:
        return self._peers[name].sure_since_ms

    def belief(self, name: str) -> str:
        return self._peers[name].belief

    def may_be_up(self, name: str, now_ms: int) -> bool:
        """The node may believe that it is UP, or may have done so when it sent what arrives now."""
        peer, since_ms = self._peers[name], now_ms - self._slack.skew_ms
        return peer.may_be_up or (peer.up_until_ms is not None and peer.up_until_ms > since_ms)

    # Requests of the node

    def gathered_ms(self, name: str, call: str, now_ms: int) -> int:
        """The earliest time at which the node read the revision in a VERIFY that arrives now. A round reads all of them
        before it sends the first (docs/protocol #verify-round). Where requests may not have reached a member, a worker
        waited for its connection at each client, and the round may be the one before (docs/protocol #sync-workers)."""
        peer, interval_ms = self._peers[name], self._profile.verify_interval_ms
        peer.open_verifies.add(call)
        if now_ms - self._verified_ms > interval_ms // 2:
            self._round_ms = now_ms
        self._verified_ms = now_ms
        sure_ms = [each.sure_since_ms for each in self._peers.values()]
        waited = any(since_ms is None or since_ms > now_ms - interval_ms for since_ms in sure_ms)
        return min(self._round_ms, now_ms - interval_ms) if self._slack.skew_ms and waited else self._round_ms

    def ended(self, name: str, call: str, took_ms: int, now_ms: int) -> None:
        """A call of the node has ended."""
        peer = self._peers[name]
        peer.open_verifies.discard(call)
        if self._slack.skew_ms and took_ms > self._slack.skew_ms and peer.sure_since_ms is not None:
            peer.sure_since_ms = now_ms  # a server may have closed the connection meanwhile, and made another

    # Events

    def joined(self, now_ms: int) -> None:
        for peer in self._peers.values():
            peer.reported_ms = peer.sure_since_ms = now_ms

    def left(self, name: str, now_ms: int) -> None:
        peer = self._peers[name]
        if peer.can_answer:
            self._history.note(None, now_ms, f"requests to {name} may fail from now on")
            peer.can_answer, peer.left_ms, peer.sure_since_ms = False, now_ms, None
            peer.is_doubtful, peer.unsettled_ms = True, now_ms

    def back(self, name: str, now_ms: int) -> None:
        self._history.note(None, now_ms, f"requests reach {name} again")
        peer = self._peers[name]
        self.age(now_ms)
        peer.can_answer, peer.left_ms, peer.reported_ms = True, None, now_ms
        peer.sure_since_ms = now_ms if peer.is_up else None

    def waits(self, name: str, now_ms: int, *, waits: bool) -> None:
        self._history.note(None, now_ms, f"requests to {name}", "are held" if waits else "are no longer held")
        peer = self._peers[name]
        peer.is_held, peer.reported_ms, peer.is_doubtful, peer.unsettled_ms = waits, now_ms, True, now_ms
        peer.released_ms = None if waits else now_ms

    def reported(self, name: str, result: CallResult | None, now_ms: int) -> None:
        peer = self._peers[name]
        if result is not CallResult.SUCCESS:
            self._history.note(None, now_ms, f"{name} answers its report with {result or 'what has no meaning'}")
        peer.reported_ms = now_ms
        peer.can_answer, peer.left_ms = True, None  # a member that is reached is no longer away
        peer.is_doubtful = peer.is_held or result is not CallResult.SUCCESS
        if result is not None:
            after = [judged(each, result, self._profile) for each in peer.believed]
            unread = peer.believed if self._may_be_unread(peer, result, now_ms) else ()
            self._believe(name, (*after, *unread), now_ms)

    def _may_be_unread(self, peer: _Peer, result: CallResult, now_ms: int) -> bool:
        """In real time: whether the node may not have read an answer that was given now, since it did not wait so long,
        or, of a refusal, since the connection of its report has been replaced or was held; a success, if the report
        itself was held."""
        skew_ms, timeout_ms = self._slack.skew_ms, self._profile.call_timeout_ms
        if skew_ms >= timeout_ms:
            return True
        if not skew_ms:
            return False
        if result is CallResult.SUCCESS:
            return peer.released_ms is not None and peer.released_ms >= now_ms - skew_ms
        return peer.is_held or (peer.unsettled_ms is not None and peer.unsettled_ms >= now_ms - timeout_ms - skew_ms)

    def reported_to(self, name: str, now_ms: int) -> None:
        peer = self._peers[name]
        after = [Member(each.name, MemberState.UP, each.failures) for each in peer.believed]
        before = peer.believed if self._slack.skew_ms else frozenset()
        peer.left_ms = None if peer.left_ms is None else now_ms
        self._believe(name, (*after, *before), now_ms)

    def age(self, now_ms: int) -> None:
        """Reports to an absent member fail, at least one in each round; they are not observed."""
        for name, peer in self._peers.items():
            if peer.left_ms is None:
                continue
            after = set(peer.believed)
            while more := {judged(each, CallResult.UNREACHABLE, self._profile) for each in after} - after:
                after |= more
            gone_ms = now_ms - peer.left_ms - self._profile.report_first_ms - self._slack.late_ms
            if gone_ms > self._report_round_ms:
                after = {each for each in after if each.state is not MemberState.UP}
            if gone_ms > self._report_round_ms * (self._profile.failures_until_down + 1):
                after = {each for each in after if each.state is MemberState.DOWN}
            self._set_believed(name, after, now_ms)

    def check_reports(self, now_ms: int) -> None:
        """All reports due by now have been observed. Raises Unexplained."""
        for name, peer in self._peers.items():
            if not peer.can_answer or peer.is_held:
                continue
            first_ms = self._started_ms + self._profile.report_first_ms - self._profile.report_interval_ms
            base_ms = max(first_ms, peer.reported_ms or 0)
            due_ms = base_ms + self._report_round_ms + self._profile.tick_ms + self._slack.late_ms
            if now_ms > due_ms and not self._slack.is_starved:
                seen = f"it has not reported itself to {name} since {base_ms} ms"
                raise Unexplained("report", None, seen, f"a report by {due_ms} ms")
            if now_ms > due_ms - self._slack.taken_ms:
                self.late.add(f"report to {name} after {base_ms} ms")

    @property
    def _report_round_ms(self) -> int:
        """A server reports to the next member two seconds after the one before has answered or timed out, the model two
        seconds after the report has begun."""
        waits_ms = self._profile.call_timeout_ms if self._slack.skew_ms else 0
        return (self._profile.report_interval_ms + waits_ms) * len(self._peers)

    def _believe(self, name: str, members: Iterable[Member], now_ms: int) -> None:
        peer = self._peers[name]
        was_up = peer.is_up
        if peer.may_be_up:
            peer.up_until_ms = now_ms
        self._set_believed(name, members, now_ms)
        if not peer.is_up:
            peer.sure_since_ms = None
        elif peer.can_answer and (not was_up or peer.sure_since_ms is None):
            peer.sure_since_ms = now_ms

    def _set_believed(self, name: str, members: Iterable[Member], now_ms: int) -> None:
        peer = self._peers[name]
        before, peer.believed = peer.belief, frozenset(members)
        if peer.belief != before:
            self._history.note(None, now_ms, f"it believes {name} to be {peer.belief}")
