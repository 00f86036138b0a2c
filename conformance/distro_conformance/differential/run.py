"""One differential run: the scripts on the real server and on the reference node, and what is left between them."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp

from distro_conformance.differential.compare import Difference, differences
from distro_conformance.differential.deviation import Deviation
from distro_conformance.differential.deviations import DEVIATIONS
from distro_conformance.differential.exchange import Exchange, ScriptLog
from distro_conformance.differential.http_member import REPORT_PATH, HttpMember
from distro_conformance.differential.normalise import normalised
from distro_conformance.differential.scripts import scripts_named
from distro_conformance.differential.scripts.registry import Script
from distro_conformance.differential.stage import Stage, ready
from distro_conformance.node.peer import PlayedPeer
from distro_conformance.release import Span, release_of
from distro_conformance.targets.embedded import EmbeddedTarget
from distro_conformance.targets.ports import family, free_base_ports
from distro_conformance.targets.registry import resolve_target
from distro_conformance.targets.target import OnProgress, Target
from distro_conformance.verdict import TargetError, UsageError, Verdict
from distro_protos import Json

Log = Mapping[str, Sequence[Exchange]]
"""By script, normalised."""

_READY_WITHIN_MS = 90_000
_SIDE_BY_SIDE = 8
_OVER_HTTP = Span(until="2.2.0")


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

    async def on_a_lane(script: Script, peer: PlayedPeer, member: HttpMember) -> None:
        async with lanes:
            on_progress(f"{target.spec}: {script.text}")
            logs[script.id] = normalised(await _play(script, target, peer, member))

    async with _beside(target, on_progress) as (peer, member), asyncio.TaskGroup() as group:
        for script in scripts:
            group.create_task(on_a_lane(script, peer, member))
    return {script.id: logs[script.id] for script in scripts}


async def _play(script: Script, target: Target, peer: PlayedPeer, member: HttpMember) -> ScriptLog:
    stage = Stage(script.id, target, peer, member)
    try:
        await script.play(stage)
    except TargetError as error:
        stage.log.note("the end, before the script's own", str(error).partition(":")[0])
    finally:
        await stage.close()
    return stage.log


@asynccontextmanager
async def _beside(target: Target, on_progress: OnProgress) -> AsyncIterator[tuple[PlayedPeer, HttpMember]]:
    """The member's address is the higher one on every node: who owns what depends on the order (section 6.6)."""
    peer = PlayedPeer(_higher_port(target), target.clock.now_ms, version=_version(target.profile))
    member = HttpMember(peer.port, peer.as_member)
    try:
        await peer.start()
        await member.start()
        await target.start([peer.address], on_progress)
        await _report_over_http(target, peer)
        await peer.dial(target.address)
        await ready(peer, target, _READY_WITHIN_MS)
        yield peer, member
    finally:
        await peer.hang_up()
        await target.stop()
        await member.stop()
        await peer.stop()


async def _report_over_http(target: Target, peer: PlayedPeer) -> None:
    """Up to 2.2.0 a node connects only to members that have reported themselves (section 4.2)."""
    if target.profile not in _OVER_HTTP:
        return
    headers = {"User-Agent": f"Nacos-Server:v{peer.version}", "Nacos-Server": peer.version}
    async with aiohttp.ClientSession(trust_env=False) as session:
        url = f"http://{target.address}{REPORT_PATH}"
        async with session.post(url, json=peer.as_member(), headers=headers) as reply:
            if reply.status != 200:
                raise TargetError(f"{target.spec} does not take a report: {reply.status} {await reply.text()}")


def _version(profile: str) -> str:
    """That a member of this profile has; `strict` stands on the latest 2.x."""
    release = release_of(profile)
    return "2.5.1" if release is None else ".".join(map(str, release))


def _higher_port(target: Target) -> int:
    own = int(target.address.rpartition(":")[2])
    for _ in range(1000):
        (port,) = free_base_ports()
        if port > own and not family(port) & family(own):
            return port
    raise TargetError(f"no port above {own} is free")


def _of(difference: Difference, deviations: Sequence[Deviation]) -> Deviation | None:
    return next((each for each in deviations if each.explains(difference)), None)


def _key(difference: Difference) -> tuple[str, str, str]:
    return difference.script, difference.step, difference.path
