"""Real clusters under drawn faults, recorded and checked: a job of `make nightly`. Nothing unexplained may be found.

A recording is a season of clients and faults as a simulation draws it (`distro_model.simulation`), played in real time
on three servers with a recording link between each pair. A known defect is excused by its symptom only, so each other
violation is a false alarm of an invariant or a failure that is not listed. Recordings are kept below
`distrocheck-out/nightly/recordings` and are not made again; all of them are checked each time, since invariants change.
Exit codes: 1 for a violation that is not known, 3 if recordings are left or could not be made, 0 otherwise.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from ledger import Line

from distro_conformance.drivers.cluster import CannotError, Cluster
from distro_conformance.drivers.real_time import RealTimeCluster
from distro_conformance.node.player import RefusedError
from distro_conformance.targets.nacos import NacosTarget
from distro_conformance.verdict import TargetError
from distro_conformance.waiting import eventually
from distro_model.actions import Action, Connect
from distro_model.clock.board import Handled
from distro_model.cluster.values import Call
from distro_model.profiles import profile_named
from distro_model.simulation.faults import FAULTS
from distro_model.simulation.seasons import Run
from distro_spark.check import check
from distro_spark.local import Local
from distro_spark.result import CheckResult
from distro_traces.ndjson import SUFFIX, Recorder
from distro_traces.observed import INFERRED

PLACE = Path("distrocheck-out/nightly/recordings")
RELEASES = ("2.0.4", "2.2.4", "2.3.2")
RUNS = 34
"""Of each release."""

NODES, CLIENTS, LASTS_MS = ("a", "b", "c"), 6, 40_000
"""One season, of which the calm alone lasts longer than what is left."""

OF_A_CLUSTER = 5
"""So many are recorded on one, which takes most of a minute of processors to start."""

EMPTY_WITHIN_MS = 30_000
OUTLASTS_LEASES_EVERY = 4
"""After a crash or a lost DELETE a lease has to be waited for, and that in real time: in one of so many recordings."""


@dataclass
class Noted:
    """A watch of a simulation that remembers what its environment does, and when."""

    actions: list[tuple[int, Action]] = field(default_factory=list)
    ended_ms: int = 0

    def acted(self, at_ms: int, action: Action) -> None:
        self.actions.append((at_ms, action))

    def checkpoint(self, at_ms: int, _node: str, _number: int) -> None:
        self.ended_ms = at_ms

    def sent(self, _at_ms: int, _source: int, _target: int, _call: Call) -> None:
        """No matter of the environment."""

    def handled(self, _at_ms: int, _handled: Handled) -> None:
        """Nor is this."""


@dataclass(frozen=True, slots=True)
class Season:
    """What is done when, in ms since the nodes are loaded, and how long the calm after it lasts."""

    actions: Sequence[tuple[int, Action]]
    calm_ms: int


def drawn(release: str, seed: int) -> Season:
    """What a simulation of that release would do with its clients and faults, for servers to live through."""
    outlasting = seed % OUTLASTS_LEASES_EVERY == 0
    faults = [fault for fault in FAULTS.values() if outlasting or not fault.outlived_by_lease]
    noted, profile = Noted(), profile_named(f"nacos-{release}")
    run = Run(NODES, CLIENTS, faults, profile, Random(f"{release}/{seed}"), noted)
    run.live(LASTS_MS, lambda: False)
    begins_ms = noted.ended_ms - run.lived_ms  # before that its nodes start, and so do those of a recording
    actions = [(at_ms - begins_ms, action) for at_ms, action in noted.actions if at_ms >= begins_ms]
    return Season(actions, run.lived_ms - max((at_ms for at_ms, _ in actions), default=0))


async def live(cluster: Cluster, season: Season) -> None:
    """What takes servers longer than the model puts off what follows; what they refuse is left out."""
    absent: set[str] = set()
    for at_ms, action in season.actions:
        await cluster.clock.pass_ms(max(0, at_ms - cluster.clock.now_ms()))
        client = getattr(action, "client", None)
        if client in absent:
            continue
        try:
            await cluster.perform(action)
        except (RefusedError, CannotError):
            absent |= {client} if isinstance(action, Connect) and client else set()
    await cluster.clock.pass_ms(season.calm_ms)
    await cluster.checkpoint()


async def emptied(cluster: RealTimeCluster) -> bool:
    """All clients leave. False where a node keeps one, as known bugs have it, so that its lease has to end."""
    await cluster.forget_clients()

    async def nothing() -> bool | None:
        held = await asyncio.gather(*(cluster.reader.replicas(name) for name in cluster.up))
        return None if any(held) else True

    return await eventually(nothing, cluster.clock, EMPTY_WITHIN_MS, step_ms=500) is not None


def name_of(release: str, seed: int) -> str:
    return f"nacos-{release}-{seed:03d}"


async def recorded(release: str, seeds: Sequence[int], place: Path) -> list[str]:
    """What is said of each; `place` has those that were recorded. One cluster lives through all of them, as long as
    nobody's client is left behind on it."""
    said: list[str] = []
    profile, cluster = f"nacos-{release}", None
    try:
        for seed in seeds:
            began, recorder = time.monotonic(), recorder_of(release, seed, place)
            with recorder:
                if cluster is None:
                    cluster = RealTimeCluster(NacosTarget(release), recorder)
                    await cluster.start(NODES, profile)
                else:
                    await cluster.record_anew(recorder, profile)
                await live(cluster, drawn(release, seed))
                cluster.record_no_more()
            for file in recorder.path.parent.iterdir():
                file.rename(place / file.name)
            recorder.path.parent.rmdir()
            said.append(f"{name_of(release, seed)}: recorded, {time.monotonic() - began:.0f} s")
            if not await emptied(cluster):
                await cluster.stop()
                cluster = None
    except TargetError as error:
        said.append(f"{release}: {error}")
    finally:
        if cluster is not None:
            cluster.record_no_more()
            await cluster.stop()
    return said


def recorder_of(release: str, seed: int, place: Path) -> Recorder:
    name = name_of(release, seed)
    part = place / ".part" / f"{name}-{time.time_ns()}"
    target, profile = f"nacos:{release}", f"nacos-{release}"
    return Recorder(part, name, profile=profile, target=target, clock="wall", nodes=NODES, observed=INFERRED)


def record(release: str, seeds: Sequence[int], place: Path) -> list[str]:
    return asyncio.run(recorded(release, seeds, place))


def is_there(place: Path, name: str) -> bool:
    return (place / f"{name}{SUFFIX}").exists()


def wanted(place: Path, releases: Sequence[str], seeds: range) -> list[tuple[str, int]]:
    """Recordings that are missing; each release gets its first before one gets its second."""
    every = ((release, seed) for seed in seeds for release in releases)
    return [each for each in every if not is_there(place, name_of(*each))]


def record_all(work: Sequence[tuple[str, int]], place: Path, jobs: int, seconds: float | None) -> Iterator[str]:
    """So many clusters side by side: most of the time they wait. Yields what is said of each recording."""
    began = time.monotonic()
    by_release = {release: [seed for of, seed in work if of == release] for release, _ in work}
    parts = [
        (release, seeds[first : first + OF_A_CLUSTER])
        for first in range(0, len(work), OF_A_CLUSTER)
        for release, seeds in by_release.items()
        if first < len(seeds)
    ]
    running: set[Future[list[str]]] = set()
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        while running or parts:
            is_late = seconds is not None and time.monotonic() - began > seconds
            while parts and len(running) < jobs and not is_late:
                running.add(pool.submit(record, *parts.pop(0), place))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for each in done:
                yield from each.result()


def lines_of(found: CheckResult, runs: Sequence[str]) -> Iterator[Line]:
    for run in runs:
        own = [each for each in found.violations if each.run == run]
        known = Counter(f"{each.invariant} {each.known}" for each in own if each.known)
        news = [f"{each.invariant}: {each.message}" for each in own if each.known is None]
        rejected = () if found.replay is None else found.replay.rejections
        news += [f"model: no transition is {each.event}" for each in rejected if each.run == run]
        yield {"run": run, "news": news, "known": dict(sorted(known.items()))}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=RUNS, help="of each release")
    parser.add_argument("--release", action="append", help="may be given several times")
    parser.add_argument("--jobs", type=int, default=3, help="clusters side by side, some 1.5 GB each")
    parser.add_argument("--seconds", type=float, help="begin no further recording after so long; the next run goes on")
    parser.add_argument("--place", type=Path, default=PLACE)
    parser.add_argument("--json", action="store_true", help="one document on stdout")
    options = parser.parse_args(arguments)
    options.place.mkdir(parents=True, exist_ok=True)
    releases, seeds = options.release or RELEASES, range(options.runs)
    work = wanted(options.place, releases, seeds)
    for said in record_all(work, options.place, options.jobs, options.seconds):
        print(said, file=sys.stderr, flush=True)
    names = [name_of(release, seed) for release in releases for seed in seeds]
    lines = checked(options.place, [name for name in names if is_there(options.place, name)])
    return report(lines, len(names) - len(lines), as_json=options.json)


def checked(place: Path, runs: Sequence[str]) -> list[Line]:
    """What `check` finds in each."""
    if not runs:
        return []
    paths = [path for run in runs for path in sorted(place.glob(f"{run}.*"))]
    return list(lines_of(check(Local(paths), replay=True), runs)) if paths else []


def report(lines: Sequence[Line], left: int, *, as_json: bool) -> int:
    news = [f"{line['run']}: {each}" for line in lines for each in line["news"]]
    known = Counter(each for line in lines for each in line["known"])
    of_bugs = ", ".join(f"{each} in {runs}" for each, runs in sorted(known.items()))
    headline = f"{len(lines)} recordings: {len(news)} news; known: {of_bugs or 'nothing'}; {left} left"
    print(json.dumps({"headline": headline, "news": news}) if as_json else "\n".join([headline, *news]))
    return 1 if news else 3 if left else 0


if __name__ == "__main__":
    sys.exit(main())
