"""Beats: the signs of life of ip:port clients, and what becomes of instances without them.

Every member looks at each of its ip:port clients every 5 s from the moment it has it, but only the responsible one
acts: no beat for 15 s makes an instance unhealthy, none for 30 s removes it. Both are changes that travel like any
other. A real timer is always a little late, so that servers are seen to act at 15 s sharp; here time may stand at 15 s.
Source: wire-protocol.md section 6.7, classes ClientBeatProcessorV2 and ClientBeatCheckTaskV2.
"""

from __future__ import annotations

from collections.abc import Callable

from distro_impl.clocks.clock import Clock, TimerHandle
from distro_impl.events import NodeEventKind, Watch
from distro_impl.naming.client import PublishedInstance, Service
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.ip_port_client import IpPortClient
from distro_impl.naming.service_info import heart_beat
from distro_impl.naming.switch_domain import SwitchDomain
from distro_impl.notify_center import ClientRemoved, IpPortClientCreated, NotifyCenter
from distro_impl.profiles import Profile

BEAT_CHECK_PERIOD_MS = 5_000
MISSED_TURN = 2
"""A check has missed a turn when the last one is longer ago than so many periods."""


class Beats:
    """What beats, and their absence, do to the clients that this node is responsible for."""

    def __init__(
        self,
        *,
        clock: Clock,
        profile: Profile,
        clients: ClientManager,
        switches: SwitchDomain,
        notify_center: NotifyCenter,
        watch: Watch,
    ) -> None:
        self._clock, self._profile, self._clients = clock, profile, clients
        self._switches, self._watch = switches, watch
        self._checks: dict[str, ClientBeatCheckTask] = {}
        notify_center.subscribe(IpPortClientCreated, self._on_created)
        notify_center.subscribe(ClientRemoved, self._on_removed)

    def beat(self, client: IpPortClient, service: Service) -> None:
        """An instance of a client of ours gave a sign of life."""
        now_ms = self._clock.now_ms()
        client.renewed_ms = client.heart_beats_ms[service] = now_ms
        if not client.singles[service].healthy:
            self._clients.set_healthy(client, service, True)
            self._changed(client)

    def check(self, client: IpPortClient) -> None:
        """Judge every instance of a client by its last beat."""
        if not client.responsible or not self._switches.health_check_enabled:
            return
        now_ms = self._clock.now_ms()
        for service, instance in client.singles.items():
            silent_ms = now_ms - client.heart_beats_ms[service]
            if instance.healthy and silent_ms >= heart_beat_ms(instance, "instanceHeartBeatTimeOut"):
                self._clients.set_healthy(client, service, False)
                self._changed(client)
            if self._profile.expire_instance and silent_ms >= heart_beat_ms(instance, "ipDeleteTimeout"):
                self._clients.unpublish(client, service)
                self._changed(client)

    def _changed(self, client: IpPortClient) -> None:
        """Releases compute the revision at registering and deregistering only, so no verify finds the loss of what
        changed here (D12, B06)."""
        if self._profile.revision_follows_beats:
            client.revision = client.content_hash()
        self._watch.tell(NodeEventKind.CLIENT_CHANGED, client)

    def _on_created(self, event: IpPortClientCreated) -> None:
        self._checks[event.client.id] = ClientBeatCheckTask(self._clock, self._profile, event.client, self.check)

    def _on_removed(self, event: ClientRemoved) -> None:
        check = self._checks.pop(event.client.id, None)
        if check is not None:
            check.cancel()


class ClientBeatCheckTask:
    """One for each client, for as long as this node has that client."""

    def __init__(
        self, clock: Clock, profile: Profile, client: IpPortClient, check: Callable[[IpPortClient], None]
    ) -> None:
        self._clock, self._profile, self._client, self._check = clock, profile, client, check
        self._checked_ms = clock.now_ms()
        first_ms = self._checked_ms + BEAT_CHECK_PERIOD_MS
        self._timer: TimerHandle = clock.every(BEAT_CHECK_PERIOD_MS, self._run, first_ms=first_ms, name="beat check")

    def cancel(self) -> None:
        self._timer.cancel()

    def _run(self) -> None:
        """After a pause of this node nobody is judged: the beats that came meanwhile still wait to be handled (B23)."""
        now_ms = self._clock.now_ms()
        gap_ms, self._checked_ms = now_ms - self._checked_ms, now_ms
        if self._profile.pause_is_forgiven and gap_ms > MISSED_TURN * BEAT_CHECK_PERIOD_MS:
            self._client.renew(now_ms)
        self._check(self._client)


def heart_beat_ms(instance: PublishedInstance, field: str) -> int:
    """A heart-beat number of an instance, by its field in `Instance`; the default where the metadata has none."""
    return heart_beat(instance.extend_datum)[field]
