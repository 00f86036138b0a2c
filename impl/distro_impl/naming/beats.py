"""Beats: the signs of life of ip:port clients, and what becomes of instances without them.

Every member looks at each of its ip:port clients every 5 s from the moment it has it, but only the responsible one
acts: no beat for 15 s makes an instance unhealthy, none for 30 s removes it. Both are changes that travel like any
other. A real timer is always a little late, so that servers are seen to act at 15 s sharp; here time may stand at 15 s.
Source: docs/protocol #lease-beats, #lease-ip-port-copies, #lease-copies, classes ClientBeatProcessorV2 and
ClientBeatCheckTaskV2.
"""

from __future__ import annotations

from collections.abc import Callable

from distro_impl.clocks.clock import Clock, TimerHandle
from distro_impl.core import Core
from distro_impl.naming.changes import ClientRemoved, IpPortClientCreated
from distro_impl.naming.client import PublishedInstance
from distro_impl.naming.client_manager import MISSED_TURN, ClientManager
from distro_impl.naming.ip_port_client import IpPortClient
from distro_impl.naming.service_info import heart_beat
from distro_impl.naming.switch_domain import SwitchDomain
from distro_impl.profiles import Profile

BEAT_CHECK_PERIOD_MS = 5_000
TICK_MS = 100
TRUE = frozenset({"true", "yes", "on", "y", "t"})
"""In metadata (`ConvertUtils` of Nacos); in a parameter of a request "1" is true too."""


class Beats:
    """What the absence of beats does to the clients that this node is responsible for."""

    def __init__(self, core: Core, clients: ClientManager, switches: SwitchDomain) -> None:
        self._clock, self._profile, self._clients, self._switches = core.clock, core.profile, clients, switches
        self._start_ms = core.clock.now_ms()
        self._rounds: dict[int, BeatCheckRound] = {}
        self._round_of: dict[str, int] = {}
        core.notify_center.subscribe(IpPortClientCreated, self._on_created)
        core.notify_center.subscribe(ClientRemoved, self._on_removed)

    def check(self, client: IpPortClient) -> None:
        """Judge every instance of a client by its last beat."""
        if not client.responsible or not self._switches.health_check_enabled:
            return
        now_ms = self._clock.now_ms()
        for service, instance in client.singles.items():
            if is_exempt(instance):
                continue
            silent_ms = now_ms - client.heart_beats_ms[service]
            if instance.healthy and silent_ms >= heart_beat_ms(instance, "instanceHeartBeatTimeOut"):
                self._clients.take_for_dead(client, service)
            if self._profile.expire_instance and silent_ms >= heart_beat_ms(instance, "ipDeleteTimeout"):
                self._clients.expire_instance(client, service)

    def _on_created(self, event: IpPortClientCreated) -> None:
        """Its first check is one period from now, at the next tick."""
        ticks = -((self._start_ms - self._clock.now_ms()) // TICK_MS)
        phase = ticks % (BEAT_CHECK_PERIOD_MS // TICK_MS)
        if phase not in self._rounds:
            first_ms = self._start_ms + ticks * TICK_MS + BEAT_CHECK_PERIOD_MS
            self._rounds[phase] = BeatCheckRound(self._clock, self._profile, self._clients, first_ms, self.check)
        self._rounds[phase].clients[event.client.id] = event.client
        self._round_of[event.client.id] = phase

    def _on_removed(self, event: ClientRemoved) -> None:
        phase = self._round_of.pop(event.client.id, None)
        if phase is None:
            return
        in_round = self._rounds[phase].clients
        del in_round[event.client.id]
        if not in_round:
            self._rounds.pop(phase).cancel()


class BeatCheckRound:
    """The clients that are looked at in the same instants. A server has a timer for each client; here those that came
    within one tick share one, since there may be very many."""

    def __init__(
        self,
        clock: Clock,
        profile: Profile,
        clients: ClientManager,
        first_ms: int,
        check: Callable[[IpPortClient], None],
    ) -> None:
        self._clock, self._profile, self._clients, self._check = clock, profile, clients, check
        self.clients: dict[str, IpPortClient] = {}
        self._checked_ms = first_ms - BEAT_CHECK_PERIOD_MS
        self._timer: TimerHandle = clock.every(BEAT_CHECK_PERIOD_MS, self._run, first_ms=first_ms, name="beat check")

    def cancel(self) -> None:
        self._timer.cancel()

    def _run(self) -> None:
        """After a pause of this node no beat counts as missed: those that came meanwhile are not handled yet (B23)."""
        now_ms = self._clock.now_ms()
        gap_ms, self._checked_ms = now_ms - self._checked_ms, now_ms
        was_paused = gap_ms > MISSED_TURN * BEAT_CHECK_PERIOD_MS
        for client in tuple(self.clients.values()):
            if was_paused and self._profile.renews_after_pause:
                self._clients.renew_after_pause(client)
            self._check(client)


def is_exempt(instance: PublishedInstance) -> bool:
    """In spite of the name an instance that has it needs no beats."""
    return str(instance.extend_datum.get("enableClientBeat", "")).lower() in TRUE


def heart_beat_ms(instance: PublishedInstance, field: str) -> int:
    """A heart-beat number of an instance, by its field in `Instance`; the default where the metadata has none."""
    return heart_beat(instance.extend_datum)[field]
