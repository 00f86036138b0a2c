"""One differential run: the scripts on the real server and on the reference node, and what is left between them."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from distro_conformance.differential.compare import Difference, differences
from distro_conformance.differential.deviation import Deviation
from distro_conformance.differential.deviations import DEVIATIONS
from distro_conformance.differential.exchange import Exchange, ScriptLog
from distro_conformance.differential.normalise import normalised
from distro_conformance.differential.scripts import scripts_named
from distro_conformance.differential.scripts.registry import Script
from distro_conformance.differential.stage import Stage, ready
from distro_conformance.node.peer import PlayedPeer
from distro_conformance.node.run import member_beside
from distro_conformance.targets.embedded import EmbeddedTarget
from distro_conformance.targets.registry import resolve_target
from distro_conformance.targets.target import OnProgress, Target
from distro_conformance.verdict import TargetError, UsageError, Verdict
from distro_protos import Json

Log = Mapping[str, Sequence[Exchange]]
"""By script, normalised."""

_READY_WITHIN_MS = 90_000
_SIDE_BY_SIDE = 8


@dataclass(frozen=True, slots=True)
class DifferentialReport:
    """`explained` are the differences that a deviation covers, `unused` the deviations that cover none any more."""

    target: str
    profile: str
    exchanges: int
    unexplained: tuple[Difference, ...]
    explained: tuple[tuple[Deviation, Difference], ...]
    unused: tuple[Deviation, ...]
    seconds: float

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

    Raises UsageError for unknown names and TargetError when the target cannot be started.
    """
    begun = time.monotonic()
    real = resolve_target(target)
    reference = EmbeddedTarget(profile or real.profile, mutant, acquainted=False)
    if isinstance(real, EmbeddedTarget):
        real = EmbeddedTarget(profile or real.profile, acquainted=False)
    scripts = [each for each in scripts_named(script_ids) if real.profile in each.releases]
    if not scripts:
        raise UsageError(f"none of these scripts is for {real.profile}")

    async def run() -> tuple[Log, Log]:
        return await play(reference, scripts, on_progress), await play(real, scripts, on_progress)

    ours, theirs = asyncio.run(run())
    whole = script_ids is None
    return report(theirs, ours, target, real.profile, whole=whole, seconds=time.monotonic() - begun)


def report(
    real: Log, ours: Log, target: str, profile: str, *, whole: bool = True, seconds: float = 0.0
) -> DifferentialReport:
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
        seconds,
    )


async def play(target: Target, scripts: Sequence[Script], on_progress: OnProgress) -> Log:
    """Start the node beside a played member, let it do the scripts, stop it.

    Where time is real, scripts run side by side: most of it is waiting, and they do not see each other.
    """
    logs: dict[str, Sequence[Exchange]] = {}
    lanes = asyncio.Semaphore(1 if target.kind == "embedded" else _SIDE_BY_SIDE)

    async def on_a_lane(script: Script, peer: PlayedPeer) -> None:
        async with lanes:
            on_progress(f"{target.spec}: {script.text}")
            logs[script.id] = normalised(await _play(script, target, peer))

    async with member_beside(target, on_progress, higher=True) as peer:
        await ready(peer, target, _READY_WITHIN_MS)
        async with asyncio.TaskGroup() as group:
            for script in scripts:
                group.create_task(on_a_lane(script, peer))
    return {script.id: logs[script.id] for script in scripts}


async def _play(script: Script, target: Target, peer: PlayedPeer) -> ScriptLog:
    stage = Stage(script.id, target, peer)
    try:
        await script.play(stage)
    except TargetError as error:
        stage.log.note("the end, before the script's own", str(error).partition(":")[0])
    finally:
        await stage.close()
    return stage.log


def _of(difference: Difference, deviations: Sequence[Deviation]) -> Deviation | None:
    return next((each for each in deviations if each.explains(difference)), None)


def _key(difference: Difference) -> tuple[str, str, str]:
    return difference.script, difference.step, difference.path
