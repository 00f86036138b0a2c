"""One differential run: the scripts on the real server and on the reference node, and what is left between them."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace

from distro_conformance.differential.compare import Difference, differences
from distro_conformance.differential.deviation import Deviation
from distro_conformance.differential.deviations import DEVIATIONS
from distro_conformance.differential.exchange import Exchange, ScriptLog
from distro_conformance.differential.normalise import normalised
from distro_conformance.differential.scripts import scripts_named
from distro_conformance.differential.scripts.registry import Script, Setting
from distro_conformance.differential.secured import SecuredNacos, secured_reference
from distro_conformance.differential.stage import Stage, ready
from distro_conformance.node.peer import PlayedPeer
from distro_conformance.node.run import members_beside, port_beside, version_of
from distro_conformance.targets.embedded import EmbeddedTarget
from distro_conformance.targets.registry import resolve_target
from distro_conformance.targets.target import OnProgress, Target
from distro_conformance.verdict import TargetError, UsageError, Verdict
from distro_protos import Json

Log = Mapping[str, Sequence[Exchange]]
"""By script, normalised."""

Nodes = Mapping[Setting, Target]
Around = Callable[[Target, OnProgress], AbstractAsyncContextManager[PlayedPeer]]
"""What stands around a node while it plays: it starts the node, and gives the member that speaks to it."""

_READY_WITHIN_MS = 90_000
_SIDE_BY_SIDE = 8


@dataclass(frozen=True, slots=True)
class DifferentialReport:
    """`explained` are the differences that a deviation covers, `unused` the deviations that cover none any more.

    `unrepeated` are those that the target showed in one of two runs only: told, and no verdict; `played_again` the
    scripts of which there are two.
    """

    target: str
    profile: str
    exchanges: int
    unexplained: tuple[Difference, ...]
    explained: tuple[tuple[Deviation, Difference], ...]
    unused: tuple[Deviation, ...]
    seconds: float
    unrepeated: tuple[Difference, ...] = ()
    played_again: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        return Verdict.VIOLATES if self.unexplained or self.unused else Verdict.CONFORMS

    def to_json(self) -> Json:
        explained = Counter(deviation.id for deviation, _ in self.explained)
        return {
            "verdict": self.verdict,
            "target": self.target,
            "profile": self.profile,
            "exchanges": self.exchanges,
            "differences": [difference.to_json() for difference in self.unexplained],
            "unrepeated": [{**difference.to_json(), "seen": 1, "of": 2} for difference in self.unrepeated],
            "played_again": list(self.played_again),
            "deviations": [{"id": name, "differences": times} for name, times in sorted(explained.items())],
            "unused": [deviation.id for deviation in self.unused],
            "seconds": round(self.seconds, 3),
        }


def run_differential(
    target: str,
    profile: str | None = None,
    script_ids: Sequence[str] | None = None,
    *,
    mutant: str | None = None,
    on_progress: OnProgress = lambda _: None,
) -> DifferentialReport:
    """Play the scripts (default: all) on the target and on a reference node of the profile, default the target's own.

    Where the two differ, the scripts in question are played once more on the real server: which pushes it merges
    depends on when its threads run, and on a busy machine they run late. Ours is never played again, since that would
    hide its races. Raises UsageError for unknown names and TargetError when the target cannot be started.
    """
    begun = time.monotonic()
    real = resolve_target(target)
    own = profile or real.profile
    nodes = _nodes_of(real, own)
    named = scripts_named(script_ids)
    scripts = [each for each in named if each.setting in nodes and nodes[each.setting].profile in each.releases]
    if not scripts:
        raise UsageError(f"none of these scripts is for {target}, profile {own}")

    async def run() -> DifferentialReport:
        ours = await play(reference_nodes(own, mutant), scripts, on_progress)
        theirs = await play(nodes, scripts, on_progress)
        found = report(theirs, ours, target, real.profile, whole=script_ids is None)
        doubtful = [each for each in scripts if each.id in {difference.script for difference in found.unexplained}]
        if not doubtful or isinstance(real, EmbeddedTarget):
            return found
        again = await play(_nodes_of(resolve_target(target), own), doubtful, on_progress)
        second = report({**theirs, **again}, ours, target, real.profile, whole=script_ids is None)
        return replace(confirmed(found, second), played_again=tuple(each.id for each in doubtful))

    return replace(asyncio.run(run()), profile=own, seconds=time.monotonic() - begun)


def report(real: Log, ours: Log, target: str, profile: str, *, whole: bool = True) -> DifferentialReport:
    """What is left of two logs. A deviation that explains nothing is told only of a `whole` run."""
    found = [each for name in real for each in differences(name, real[name], ours.get(name, ()))]
    valid = [each for each in DEVIATIONS if profile in each.releases]
    explained = [(deviation, each) for each in found if (deviation := _of(each, valid)) is not None]
    covered = {_key(each) for _, each in explained}
    used = {deviation.id for deviation, _ in explained}
    return DifferentialReport(
        target,
        profile,
        sum(map(len, real.values())),
        tuple(each for each in found if _key(each) not in covered),
        tuple(explained),
        tuple(each for each in valid if whole and each.id not in used),
        seconds=0.0,
    )


def confirmed(first: DifferentialReport, second: DifferentialReport) -> DifferentialReport:
    """What both runs of the target found, and apart what one of them did."""
    both = {_key(each) for each in first.unexplained} & {_key(each) for each in second.unexplained}
    every = (*first.unexplained, *second.unexplained)
    return replace(
        second,
        unexplained=tuple(each for each in second.unexplained if _key(each) in both),
        unrepeated=tuple(each for each in every if _key(each) not in both),
        unused=tuple(each for each in second.unused if each in first.unused),
    )


def reference_nodes(profile: str, mutant: str | None = None) -> Nodes:
    return {
        Setting.MEMBER: EmbeddedTarget(profile, mutant, acquainted=False),
        Setting.SECURED: secured_reference(profile, mutant),
    }


def _nodes_of(real: Target, profile: str) -> Nodes:
    if isinstance(real, EmbeddedTarget):
        return reference_nodes(profile)
    secured: Nodes = {Setting.SECURED: SecuredNacos(real.profile)} if SecuredNacos.offers(real.profile) else {}
    return {Setting.MEMBER: real, **secured}


async def play(nodes: Nodes, scripts: Sequence[Script], on_progress: OnProgress) -> Log:
    """Each script on the node that is started as the script wants it, one node after the other."""
    logs: dict[str, Sequence[Exchange]] = {}
    for setting, target in nodes.items():
        if wanted := [script for script in scripts if script.setting is setting]:
            logs |= await _play_all(target, _AROUND[setting], wanted, on_progress)
    return {script.id: logs[script.id] for script in scripts}


async def _play_all(target: Target, around: Around, scripts: Sequence[Script], on_progress: OnProgress) -> Log:
    """Start the node, let it do the scripts, stop it.

    Where time is real, scripts run side by side: most of it is waiting, and they do not see each other. Those that
    would be seen come last, one by one.
    """
    logs: dict[str, Sequence[Exchange]] = {}

    async def in_lanes(count: int, played: Iterable[Script], peer: PlayedPeer) -> None:
        lanes = asyncio.Semaphore(count)

        async def on_a_lane(script: Script) -> None:
            async with lanes:
                on_progress(f"{target.spec}: {script.text}")
                logs[script.id] = normalised(await _play(script, target, peer))

        async with asyncio.TaskGroup() as group:
            for script in played:
                group.create_task(on_a_lane(script))

    async with around(target, on_progress) as peer:
        side_by_side = 1 if target.kind == "embedded" else _SIDE_BY_SIDE
        await in_lanes(side_by_side, (each for each in scripts if not each.alone), peer)
        await in_lanes(1, (each for each in scripts if each.alone), peer)
    return logs


async def _play(script: Script, target: Target, peer: PlayedPeer) -> ScriptLog:
    stage = Stage(script.id, target, peer)
    try:
        await script.play(stage)
    except TargetError as error:
        stage.log.note("the end, before the script's own", str(error).partition(":")[0])
    finally:
        await stage.close()
    return stage.log


@asynccontextmanager
async def _beside(target: Target, on_progress: OnProgress) -> AsyncIterator[PlayedPeer]:
    """The member's address is the higher one on every node: who owns what depends on the order
    (docs/protocol #owner-place)."""
    async with members_beside(target, on_progress, 1, higher=True) as (peer,):
        await ready(peer, target, _READY_WITHIN_MS)
        yield peer


@asynccontextmanager
async def _alone(target: Target, on_progress: OnProgress) -> AsyncIterator[PlayedPeer]:
    """The played member is none of the node's: it only speaks to it."""
    peer = PlayedPeer(port_beside(target, higher=True), target.clock.now_ms, version=version_of(target.profile))
    try:
        await target.start([], on_progress)
        await peer.dial(target.address)
        yield peer
    finally:
        await peer.hang_up()
        await target.stop()


_AROUND: Mapping[Setting, Around] = {Setting.MEMBER: _beside, Setting.SECURED: _alone}


def _of(difference: Difference, deviations: Sequence[Deviation]) -> Deviation | None:
    return next((each for each in deviations if each.explains(difference)), None)


def _key(difference: Difference) -> tuple[str, str, str]:
    return difference.script, difference.step, difference.path
