"""The machine of one node among played members in real time: many runs side by side, so that they share the waits.

The runs are drawn before anything is started: the actions that a rule makes of its numbers depend on the rules alone.
Each run has its own clients on the one node; an action of a run on a member affects all runs, and the oracle receives
it. Within a budget a failed run is repeated by itself, to report how often it fails. A run that does not fail each time
is called flaky, and is a violation all the same: nothing explained its first failure.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

from distro_conformance.drivers.lockstep import DivergedError
from distro_conformance.drivers.peers import PeersCluster
from distro_conformance.event_loop import event_loop
from distro_conformance.language.expectations import ExpectModel
from distro_conformance.language.text import build
from distro_conformance.targets.registry import resolve_target
from distro_conformance.verdict import TargetError
from distro_conformance.walks import NODES, PEERS
from distro_conformance.walks.driver import WAIT_MAX_MS, WalkDriver, in_real_time
from distro_conformance.walks.machine import Machine
from distro_conformance.walks.pace import Pace
from distro_conformance.walks.result import FoundFailure, WalkOptions, WalkResult, beside_nodes
from distro_conformance.walks.walk import draw
from distro_conformance.wire.transports import steps_over
from distro_model.actions import Action, Restart
from distro_model.rules.owners import is_ip_client, place
from distro_model.rules.watching import Taken, counting

STEPS = 60
RUNS: Mapping[bool, int] = {False: 16, True: 8}
"""The runs without and with clients of the HTTP API."""
MISSED_MAX = 50
"""Actions that a stopped member could not do; more of them mean that the node does not answer."""
AGAIN = 2
"""The number of repetitions of a failing run."""
ROUND_LEAST_S = 30.0
"""A further round begins only if it has so much time, of which the start of a node takes a part."""

_NAMES = re.compile(r"^[cf]\d+$")
_ADDRESS = re.compile(r"10\.0\.1\.\d+:80\b")
"""Of a client of the HTTP API."""


class _Draft(WalkDriver):
    """The walk only records the actions."""

    def can(self, action: Action) -> bool:
        return in_real_time(action) is not None

    def adapted(self, action: Action) -> Action | None:
        return in_real_time(action)


def drawn(seed: int) -> list[tuple[Action, ...]]:
    """Runs with and without clients of the HTTP API, the same for the same seed; none ends with the wait for leases."""
    found: list[tuple[Action, ...]] = []
    for http, runs in RUNS.items():
        ended: list[tuple[Action, ...]] = []
        members = {"start": staticmethod(_Draft), "on_end": staticmethod(partial(_note, ended)), "http": http}
        draw(Machine, seed, runs, STEPS, {**members, "nodes": NODES[:1], "played": PEERS})
        found += ended[:runs]
    return found


def _note(ended: list[tuple[Action, ...]], actions: list[Action], _: BaseException | None) -> None:
    ended.append(tuple(actions))


@dataclass(frozen=True, slots=True)
class Failed:
    """A run that failed: its own actions until then, its attempts, and the failures of the repetitions."""

    actions: tuple[Action, ...]
    error: DivergedError
    seed: int
    steps: int
    seconds: float
    logs: Path | None = None
    attempts: int = 1
    again: tuple[str, ...] = ()

    def found(self, options: WalkOptions) -> FoundFailure:
        """Its own actions are kept, and not shrunk."""
        failures = 1 + len(self.again)
        rate = f"it failed {failures} of {self.attempts} times"
        rate += f", then as {' and '.join(f'({each})' for each in self.again)}" if self.again else ""
        found = f"Found by the machine on {options.target}, seed {self.seed}; {rate}: {self.error}"
        comment = "\n".join((found, *self.error.history))
        steps = [*self.actions, ExpectModel()]
        return FoundFailure(
            build(steps, nodes=options.nodes, comment=comment, played=options.nodes[1:]),
            f"flaky, {rate}: {self.error}" if failures < self.attempts else str(self.error),
            len(self.actions),
            self.steps,
            self.seconds,
            self.error,
            target=options.target,
            logs=self.logs,
        )


class SideBySide:
    """Rounds of runs, each on a new node, until `options.seconds` are used. The time of the first round begins when its
    node serves; later rounds have the next seeds. Raises UsageError, TargetError."""

    def __init__(self, options: WalkOptions, on_progress: Callable[[str], None] = lambda _: None) -> None:
        self.result = WalkResult(options)
        self.on_progress = on_progress
        self.missed = 0
        self._taken = Taken()
        self._pace = Pace()
        self._done: dict[int, list[Action]] = {}

    def run(self) -> WalkResult:
        began_s, result = time.monotonic(), self.result
        failed, seed, left_s = None, result.options.seed, result.options.seconds
        while failed is None:
            failed = event_loop().run_until_complete(self._round(seed, left_s))
            seed, left_s = seed + 1, began_s + result.options.seconds - time.monotonic()
            if left_s < ROUND_LEAST_S:
                break
        result.failure = None if failed is None else failed.found(result.options)
        result.steps_over, result.coverage = steps_over({"grpc": result.steps}), beside_nodes(self._taken)
        result.seconds = time.monotonic() - began_s
        return result

    async def _round(self, seed: int, seconds: float) -> Failed | None:
        options = self.result.options
        node = resolve_target(options.target, credentials=options.credentials)
        self.result.options = replace(options, profile=node.profile)
        cluster = PeersCluster(node, on_progress=self.on_progress, watch=lambda profile: counting(profile, self._taken))
        self._done.clear()
        try:
            await cluster.start(options.nodes, node.profile)
            async with self._pace.measured(cluster.answering):
                return await self._search(cluster, seed, seconds)
        finally:
            await cluster.stop()

    async def _search(self, cluster: PeersCluster, seed: int, seconds: float) -> Failed | None:
        began_s = time.monotonic()
        until_s = began_s + seconds
        lanes = [asyncio.create_task(self._lane(cluster, run, until_s)) for run in drawn(seed)]
        failed: tuple[tuple[Action, ...], DivergedError] | None = None
        for ended in asyncio.as_completed(lanes):
            failed = await ended
            if failed is not None:
                break
        for lane in lanes:
            lane.cancel()
        await asyncio.gather(*lanes, return_exceptions=True)
        outside = cluster.oracle.outside
        counts = {f"clients_{reason.name.lower()}": count for reason, count in outside.undecided.items()}
        counts |= {"node_late": outside.late, "views_in_parts": outside.in_parts}
        self.result.not_judged.update(counts)  # adds to the counts of earlier rounds
        if failed is None:
            return None
        logs = cluster.save_logs(self.result.options.failure_logs)
        found = Failed(*failed, seed, self.result.steps, time.monotonic() - began_s, logs)
        return await self._again(cluster, found, until_s + seconds)

    async def _lane(
        self, cluster: PeersCluster, run: Sequence[Action], until_s: float
    ) -> tuple[tuple[Action, ...], DivergedError] | None:
        """Skip actions that are not possible in the state that the other runs have led to."""
        self.result.runs += 1
        number = len(self._done) + 1
        done = self._done[number] = []
        for action in run:
            await self._pace.until_in_time(until_s)
            if time.monotonic() > until_s:
                break
            named = _of_lane(action, number)
            if cluster.forbidden(named) is not None:
                continue
            done.append(action)
            self.result.steps += 1
            self.on_progress(f"machine: {self.result.runs} runs side by side, {self.result.steps} steps")
            try:
                await cluster.perform(named)
            except DivergedError as error:
                return tuple(self._done[_lane_of(error) or number]), error
            except (TargetError, asyncio.CancelledError):  # another run has just stopped the sending member
                task = asyncio.current_task()
                self.missed += 1
                if self.missed > MISSED_MAX or (task is not None and task.cancelling()):
                    raise
        return None

    async def _again(self, cluster: PeersCluster, found: Failed, until_s: float) -> Failed:
        """Repeat the run by itself, on the same node, until then."""
        for _ in range(AGAIN):
            if time.monotonic() > until_s:
                break
            await self._rest(cluster)
            failed = await self._lane(cluster, found.actions, until_s)
            again = found.again if failed is None else (*found.again, str(failed[1]))
            found = replace(found, attempts=found.attempts + 1, again=again)
        return found

    async def _rest(self, cluster: PeersCluster) -> None:
        """Repair all faults, and forget the failures."""
        cluster.clear_faults()
        await cluster.forget_clients()
        cluster.oracle.discard_findings()
        for peer in sorted(set(PEERS) - set(cluster.up)):
            with suppress(DivergedError):  # the node may still owe messages to the run that has ended
                await cluster.perform(Restart(peer))
        await asyncio.sleep(WAIT_MAX_MS / 1000)
        cluster.oracle.discard_findings()


def _lane_of(error: DivergedError) -> int | None:
    """The run whose client the error is about; any run may raise it."""
    client = getattr(error.__cause__, "client", None) or ""
    number = client.split(".")[2] if is_ip_client(client) else client.rpartition("-")[2]
    return int(number) if number.isdecimal() else None


def _of_lane(action: Action, number: int) -> Action:
    """The same action about clients of this run, whose names, addresses and services no other run has."""

    def here(text: str) -> str:
        named = f"{text}-{number}" if _NAMES.match(text) else text
        return _ADDRESS.sub(lambda found: _address_of_lane(found[0], number), named)

    changes: dict[str, Any] = {}
    for each in fields(cast("Any", action)):
        value = getattr(action, each.name)
        if each.name in ("client", "instance") and value is not None:
            changes[each.name] = here(value)
        elif each.name == "service":
            changes["service"] = f"{value}-{number}"
        elif each.name == "content":
            changes["content"] = tuple((f"{service}-{number}", here(instance)) for service, instance in value)
    return cast("Action", replace(cast("Any", action), **changes)) if changes else action


@cache
def _address_of_lane(address: str, number: int) -> str:
    """The address with the number of the run in its third part, and with the same owner."""
    last, nodes = address.rpartition(".")[2], 1 + len(PEERS)
    candidates = (f"10.{each}.{number}.{last}" for each in range(1, 256))
    return next(each for each in candidates if place(each, nodes) == place(address, nodes))
