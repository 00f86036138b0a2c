"""Node conformance: one node under test, one played member, every requirement in turn.

The node and the member are started once and live through the run, since a real server takes seconds to start; each
check plays clients and services of its own, so it does not matter which ran before it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import grpc.aio

from distro_conformance.findings import Finding, Judgement, verdict_of
from distro_conformance.findings.known import against_the_list
from distro_conformance.node.kit import CannotTellError, Kit, ViolationError
from distro_conformance.node.peer import PlayedPeer
from distro_conformance.node.player import RefusedError
from distro_conformance.release import release_of
from distro_conformance.requirements import Requirement, all_requirements
from distro_conformance.targets.ports import family, free_base_ports
from distro_conformance.targets.registry import resolve_target
from distro_conformance.targets.target import OnProgress, Target
from distro_conformance.verdict import KitError, TargetError, UsageError, Verdict
from distro_conformance.waiting import Look

_JOINED_WITHIN_MS, _RECONNECTED_WITHIN_MS = 60_000, 3_000
_CHECK_TIMEOUT_S = 120.0
_ATTEMPTS = 1000
BY = "node"


@dataclass(frozen=True, slots=True)
class NodeReport:
    """One run. `seconds` includes `start_seconds`, the start of the target."""

    target: str
    profile: str
    findings: tuple[Finding, ...]
    start_seconds: float
    seconds: float

    @property
    def verdict(self) -> Verdict:
        return verdict_of(self.findings)


OnFinding = Callable[[Finding], None]


def run_node_conformance(
    target: str,
    profile: str | None = None,
    requirement_ids: Sequence[str] | None = None,
    *,
    mutant: str | None = None,
    on_progress: OnProgress = lambda _: None,
    on_finding: OnFinding = lambda _: None,
) -> NodeReport:
    """Start the target that the text names, run the requirements (default: all), stop it.

    Raises UsageError for unknown names and TargetError when the target cannot be started. Ctrl-C stops the target.
    """
    found = resolve_target(target, profile, mutant)
    chosen = _chosen(requirement_ids)

    async def run() -> NodeReport:
        begun = time.monotonic()
        async with member_beside(found, on_progress) as peer:
            started = time.monotonic()
            findings = await check_requirements(found, peer, chosen, on_finding)
        return NodeReport(found.spec, found.profile, tuple(findings), started - begun, time.monotonic() - begun)

    return asyncio.run(run())


async def run_requirements(
    target: Target, ids: Sequence[str] | None = None, on_finding: OnFinding = lambda _: None
) -> list[Finding]:
    """The same on a target object, which is started here and stopped at the end."""
    chosen = _chosen(ids)
    async with member_beside(target, lambda _: None) as peer:
        return await check_requirements(target, peer, chosen, on_finding)


@asynccontextmanager
async def member_beside(target: Target, on_progress: OnProgress, *, higher: bool = False) -> AsyncIterator[PlayedPeer]:
    """The target running, and a played member on its list that has been dialled in both directions, if possible.

    `higher`: the member's address is the higher one. Who owns which ip:port client depends on the order (section 6.6).
    """
    peer = PlayedPeer(port_beside(target, higher), target.clock.now_ms, version=version_of(target.profile))
    try:
        await peer.start()
        await target.start([peer.address], on_progress)
        await peer.join(target.address)
        yield peer
    finally:
        await peer.hang_up()
        await target.stop()
        await peer.stop()


async def check_requirements(
    target: Target, peer: PlayedPeer, requirements: Sequence[Requirement], on_finding: OnFinding
) -> list[Finding]:
    """One finding for each requirement, in their order, also for those that do not apply."""
    findings: list[Finding] = []
    for requirement in requirements:
        is_first = all(finding.judgement is Judgement.NOT_APPLICABLE for finding in findings)
        findings.append(await _check(target, peer, requirement, is_first=is_first))
        on_finding(findings[-1])
    return findings


async def _check(target: Target, peer: PlayedPeer, requirement: Requirement, *, is_first: bool) -> Finding:
    judged = Finding(
        about=requirement.id,
        by=BY,
        judgement=Judgement.CONFORMS,
        text=requirement.text,
        level=requirement.level,
        node=target.address,
        details={"source": requirement.source, "releases": str(requirement.releases)},
        again=f"distrocheck test node --target {target.spec} --profile {target.profile} --requirement {requirement.id}",
    )
    if target.profile not in requirement.releases:
        why = f"applies {requirement.releases}; the target behaves as {target.profile}"
        return replace(judged, judgement=Judgement.NOT_APPLICABLE, message=why)
    kit, begun = Kit(target, peer), time.monotonic()
    try:
        judged = await _outcome(kit, requirement, judged, is_first=is_first)
    finally:
        await kit.close()
    judged = replace(judged, seconds=time.monotonic() - begun, evidence=tuple(kit.evidence))
    return against_the_list(judged, target.profile, target.kind)


async def _outcome(kit: Kit, requirement: Requirement, judged: Finding, *, is_first: bool) -> Finding:
    """Only a ViolationError is the node's fault; whatever else ends a check leaves the question open."""

    def open_question(why: str) -> Finding:
        return replace(judged, judgement=Judgement.NOT_JUDGED, message=why)

    try:
        async with asyncio.timeout(_CHECK_TIMEOUT_S):
            wait_ms = _JOINED_WITHIN_MS if is_first else _RECONNECTED_WITHIN_MS
            await kit.arrange(_connected(kit.peer), within_ms=wait_ms, what="the node's cluster connection")
            if is_first:
                await kit.arrange(_serves(kit), within_ms=wait_ms, what="a node that serves naming")
            await requirement.check(kit)
    except ViolationError as violation:
        return replace(
            judged,
            judgement=Judgement.VIOLATES,
            message=str(violation),
            expected=violation.expected,
            observed=violation.observed,
            since=f"{kit.target.clock.now_ms()} ms",
            after=kit.evidence[-1] if kit.evidence else None,
        )
    except (CannotTellError, KitError) as reason:
        return open_question(str(reason))
    except TimeoutError:
        return open_question(f"the check was not done after {_CHECK_TIMEOUT_S:.0f} s")
    except grpc.aio.AioRpcError as error:
        return open_question(f"a call to the node failed: {error.code().name} {error.details()}")
    return judged


def _connected(peer: PlayedPeer) -> Look[bool]:
    async def look() -> bool | None:
        return peer.is_connected or None

    return look


def _serves(kit: Kit) -> Look[bool]:
    """A 2.0.x node takes clients only after it has seen what its members can."""

    async def look() -> bool | None:
        client = await kit.client()
        try:
            await client.query("nobody-publishes-here")
        except RefusedError:
            return None
        finally:
            await kit.leave(client)
        return True

    return look


def _chosen(ids: Sequence[str] | None) -> tuple[Requirement, ...]:
    known = {requirement.id: requirement for requirement in all_requirements()}
    unknown = [name for name in ids or () if name not in known]
    if unknown:
        raise UsageError(f"no requirement {', '.join(unknown)}; known: {', '.join(known)}")
    return tuple(known.values()) if ids is None else tuple(known[name] for name in ids)


def port_beside(target: Target, higher: bool) -> int:
    own = int(target.address.rpartition(":")[2])
    for _ in range(_ATTEMPTS):
        (port,) = free_base_ports()
        if (port > own or not higher) and not family(port) & family(own):
            return port
    raise TargetError(f"no port above {own} is free")


def version_of(profile: str) -> str:
    """That a member of this profile has; `strict` stands on the latest 2.x."""
    release = release_of(profile)
    return "2.5.1" if release is None else ".".join(map(str, release))
