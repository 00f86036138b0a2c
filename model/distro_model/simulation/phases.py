"""A run in phases, active and quiet by turns.

In an active phase clients act and faults happen. Then all faults are healed, and clients do nothing for the time that
the protocol may need. A checkpoint ends the quiet phase: from then on all nodes are expected to agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from distro_model.actions import Restart
from distro_model.profiles import Profile
from distro_model.simulation.clients import Clients
from distro_model.simulation.cluster import SimulatedCluster, Watch
from distro_model.simulation.faults import SimulatedFault, Situation
from distro_model.simulation.scheduler import Chance, Scheduler

ACTIVE_MS = (20_000, 60_000)
BETWEEN_FAULTS_MS = (500, 10_000)
STARTS_WITHIN_MS = 2000
LOADED_WITHIN_MS = 1000
PROGRESS_MS = 5000


class Run:
    """One run of a cluster. `faults`: those from which each active phase draws; `on_progress` is called regularly."""

    def __init__(
        self,
        nodes: Sequence[str],
        clients: int,
        faults: Sequence[SimulatedFault],
        profile: Profile,
        chance: Chance,
        watch: Watch,
        on_progress: Callable[[], None] = lambda: None,
    ) -> None:
        self.checkpoints = 0
        self._nodes, self._faults, self._profile, self._chance = nodes, faults, profile, chance
        self._scheduler = Scheduler(chance)
        self._cluster = SimulatedCluster(nodes, profile, self._scheduler, watch)
        self._clients = Clients(clients, self._cluster, self._scheduler, chance)
        self._on_progress = on_progress
        self._begins_ms = STARTS_WITHIN_MS + profile.load_retry_ms + LOADED_WITHIN_MS

    @property
    def lived_ms(self) -> int:
        """The time since its nodes have loaded."""
        return self._scheduler.now_ms - self._begins_ms

    def live(self, for_ms: int, is_enough: Callable[[], bool]) -> None:
        """Run until a checkpoint after this time, or until a limit is reached."""
        self._start()
        while self.lived_ms < for_ms and not is_enough():
            active_ms = min(self._chance.randrange(*ACTIVE_MS), for_ms - self.lived_ms)
            quiet_ms = self._begin_activity(self._scheduler.now_ms + active_ms)
            self._let_pass(active_ms)
            self._cluster.heal()
            self._let_pass(quiet_ms)
            self._cluster.checkpoint()
            self.checkpoints += 1

    def _start(self) -> None:
        """All nodes, no clients yet: the node that starts first finds no member to load from, and retries later.

        A load that includes a client that has just left restores it until its lease ends, in `strict` too; so the calm
        after an active phase would have to last as long as after a crash.
        """
        for node in self._nodes:
            self._scheduler.at(self._chance.randrange(STARTS_WITHIN_MS), self._cluster.perform, Restart(node))
        self._scheduler.run_until(self._begins_ms)

    def _begin_activity(self, end_ms: int) -> int:
        """Plan the actions of clients and faults, and return the length of the quiet phase that must follow."""
        self._clients.act_until(end_ms)
        kinds = [fault for fault in self._faults if self._chance.random() < 0.5]
        at_ms = self._scheduler.now_ms
        while kinds and (at_ms := at_ms + self._chance.randrange(*BETWEEN_FAULTS_MS)) < end_ms:
            self._scheduler.at(at_ms, self._inject, self._chance.choice(kinds))
        lease = any(fault.outlived_by_lease for fault in kinds)
        return quiet_ms(self._profile, len(self._nodes), outlasting_leases=lease)

    def _inject(self, fault: SimulatedFault) -> None:
        situation = Situation(self._nodes, self._cluster.homes())
        for after_ms, action in list(fault.plan(self._chance, situation)):
            if after_ms:
                self._scheduler.at(self._scheduler.now_ms + after_ms, self._cluster.perform, action)
            else:
                self._cluster.perform(action)

    def _let_pass(self, ms: int) -> None:
        end_ms = self._scheduler.now_ms + ms
        while self._scheduler.now_ms < end_ms:
            self._scheduler.run_until(min(end_ms, self._scheduler.now_ms + PROGRESS_MS))
            self._on_progress()


def quiet_ms(profile: Profile, nodes: int, *, outlasting_leases: bool) -> int:
    """The longest time that a healed cluster needs until its nodes agree.

    A request lost just now must time out; then the target must be UP again, by a report of the round robin; then comes
    the retry, or a verify and its sync. After a crash the load may have to be repeated first, and the clients without
    an owner that it brought stay for a lease from then on.
    """
    reported_ms = profile.report_first_ms + profile.report_interval_ms * nodes
    retried_ms = profile.call_timeout_ms + reported_ms + profile.retry_delay_ms + profile.sync_delay_ms
    healed_ms = retried_ms + 2 * profile.verify_interval_ms + 1000
    if not outlasting_leases:
        return healed_ms
    loaded_ms = profile.load_timeout_ms * (nodes - 1) + profile.load_retry_ms
    return healed_ms + loaded_ms + profile.lease_ms + profile.lease_check_ms
