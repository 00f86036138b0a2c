"""One differential run: the scripts on the real server and on the reference node, and their differences."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from distro_conformance.findings import Judged
from distro_conformance.node.peer import PlayedPeer
from distro_conformance.node.run import members_beside
from distro_conformance.targets.embedded import EmbeddedTarget
from distro_conformance.targets.nacos import listed_members
from distro_conformance.targets.ports import SDK_OFFSET, with_offset
from distro_conformance.targets.registry import require_own, resolve_target
from distro_conformance.targets.target import OnProgress, Target
from distro_conformance.verdict import TargetError, UsageError, all_named
from distro_conformance.waiting import eventually
from distro_conformance.wire.connection import SDK_LABELS, Connection
from distro_interop.differential.exchange import ScriptLog
from distro_interop.differential.judge import Compared, Exchanges, Log, compared, judged
from distro_interop.differential.listed import DEVIATIONS, accept, listing
from distro_interop.differential.normalise import normalised
from distro_interop.differential.script_run import GROUP, SERVICE, ScriptRun
from distro_interop.differential.scripts import SCRIPTS
from distro_interop.differential.scripts.registry import Script, Setting
from distro_interop.differential.secured import SecuredNacos, secured_reference

Nodes = Mapping[Setting, Target]

_READY_WITHIN_MS = 90_000
_SIDE_BY_SIDE = 8


def run_differential(
    target: str,
    profile: str | None = None,
    script_ids: Sequence[str] | None = None,
    *,
    mutant: str | None = None,
    accept_as: str | None = None,
    on_progress: OnProgress = lambda _: None,
) -> Judged:
    """Play the scripts (default: all) on the target and on a reference node of the profile, default the target's own.

    Scripts with differences that are not listed are played once more on the real server: which pushes it merges
    depends on when its threads run, and on a busy machine they run late. The reference node is never played again,
    since that would hide its races. `accept_as`: the deviation under which all these differences are listed.
    Raises UsageError for unknown names and TargetError when the target cannot be started.
    """
    begun = time.monotonic()
    if accept_as not in (None, *DEVIATIONS):
        raise UsageError(f"no deviation {accept_as}: first add its reason to differential/deviations.toml")
    real = require_own(resolve_target(target))
    own = profile or real.profile
    nodes = _nodes_of(real, own)
    wanted = all_named("script", SCRIPTS, script_ids)
    scripts = [each for each in wanted if each.setting in nodes and nodes[each.setting].profile in each.releases]
    if not scripts:
        raise UsageError(f"none of these scripts is for {target}, profile {own}")

    async def run() -> tuple[Compared, ...]:
        reference = await play(reference_nodes(own, mutant), scripts, on_progress)
        other = await play(nodes, scripts, on_progress)
        first = compared(other, reference, real.profile)
        if not (doubtful := [each for each in scripts if each.id in first.scripts]) or isinstance(real, EmbeddedTarget):
            return (first,)
        again = await play(_nodes_of(resolve_target(target), own), doubtful, on_progress)
        return first, compared({**other, **again}, reference, real.profile)

    runs = asyncio.run(run())
    if accept_as is not None:
        accept(real.profile, accept_as, runs[-1].unexplained, runs[-1].gone)
    figures = {
        "exchanges": runs[0].exchanges,
        "played_again": sorted(runs[0].scripts) if runs[1:] else [],
        "unused": sorted({listing(real.profile)[each.key].deviation for each in runs[-1].gone}),
    }
    return Judged(target, own, tuple(judged(runs, scripts, target, profile, mutant)), time.monotonic() - begun, figures)


def reference_nodes(profile: str, mutant: str | None = None) -> Nodes:
    return {
        Setting.MEMBER: EmbeddedTarget(profile, mutant, with_known_members=False),
        Setting.SECURED: secured_reference(profile, mutant),
    }


def _nodes_of(real: Target, profile: str) -> Nodes:
    if isinstance(real, EmbeddedTarget):
        return reference_nodes(profile)
    secured: Nodes = {Setting.SECURED: SecuredNacos(real.profile)} if SecuredNacos.offers(real.profile) else {}
    return {Setting.MEMBER: real, **secured}


async def play(nodes: Nodes, scripts: Sequence[Script], on_progress: OnProgress) -> Log:
    """Each script on the node that is started as the script wants it, one node after the other."""
    logs: dict[str, Exchanges] = {}
    for setting, target in nodes.items():
        if wanted := [script for script in scripts if script.setting is setting]:
            logs |= await _play_all(target, wanted, setting is Setting.MEMBER, on_progress)
    return {script.id: logs[script.id] for script in scripts}


async def _play_all(target: Target, scripts: Sequence[Script], among_members: bool, on_progress: OnProgress) -> Log:
    """Start the node, let it do the scripts, stop it.

    Where time is real, scripts run side by side: most of it is waiting, and they do not see each other. Those that
    would be seen come last, one by one.
    """
    logs: dict[str, Exchanges] = {}

    async def in_lanes(count: int, played: Iterable[Script], peer: PlayedPeer) -> None:
        lanes = asyncio.Semaphore(count)

        async def on_a_lane(script: Script) -> None:
            async with lanes:
                on_progress(f"{target.spec}: {script.text}")
                logs[script.id] = normalised(await _play(script, target, peer))

        async with asyncio.TaskGroup() as group:
            for script in played:
                group.create_task(on_a_lane(script))

    # The member's address is the higher one on every node: who owns what depends on the order (docs/protocol
    # #owner-place). Where the node is alone, it only speaks to it.
    beside = members_beside(target, on_progress, 1, higher=True, listed=among_members)
    async with target.clock.measured(), beside as (peer,):
        if among_members:
            await _ready(peer, target, _READY_WITHIN_MS)
        side_by_side = 1 if target.kind == "embedded" else _SIDE_BY_SIDE
        await in_lanes(side_by_side, (each for each in scripts if not each.alone), peer)
        await in_lanes(1, (each for each in scripts if each.alone), peer)
    return logs


async def _play(script: Script, target: Target, peer: PlayedPeer) -> ScriptLog:
    played = ScriptRun(script.id, target, peer)
    try:
        await script.play(played)
    except TargetError as error:
        played.log.note("the end, before the script's own", str(error).partition(":")[0])
    finally:
        await played.close()
    return played.log


async def _ready(peer: PlayedPeer, target: Target, within_ms: int) -> None:
    """Until the node has connected to the played member, serves naming, which a 2.0.x does only after it has seen what
    its members can, and lists the member as it describes itself. Raises TargetError."""
    query = {"namespace": "ready", "serviceName": SERVICE, "groupName": GROUP}
    async with await Connection.open(with_offset(target.address, SDK_OFFSET), labels=SDK_LABELS) as client:

        async def serves() -> bool:
            joined = peer.is_connected and (await client.ask("ServiceQueryRequest", query)).succeeded
            listed = await asyncio.to_thread(listed_members, target.address) if joined else ()
            return joined and _describes(peer.address, listed)

        if await eventually(serves, target.clock, within_ms, step_ms=50) is None:
            raise TargetError(f"{target.spec} did not join the played member and serve within {within_ms} ms")


def _describes(address: str, members: Sequence[Mapping[str, Any]]) -> bool:
    """Its answer to the first report has arrived; a node that shows no such list cannot be asked."""
    own = [member for member in members if member["address"] == address]
    return not own or "version" in (own[0].get("extendInfo") or ())
