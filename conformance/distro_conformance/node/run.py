"""Node conformance: one node under test, played members, every requirement, all at once.

The node and the members are started once and live through the run, since a real server takes seconds to start; each
check plays clients and services of its own, so checks do not affect each other. A run takes as long as the longest
wait, not as the sum of the waits. Checks of the start of a node, and those that would change the node's view of the
members, get a node of their own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import grpc.aio

from distro_conformance.findings import Finding, Judged, Judgement
from distro_conformance.findings.finding import command
from distro_conformance.findings.known import against_the_list
from distro_conformance.node.errors import BeyondError, LacksError, NotJudgedError, ViolationError
from distro_conformance.node.held import client_of, held_by_each
from distro_conformance.node.kit import Kit
from distro_conformance.node.peer import PlayedPeer
from distro_conformance.release import release_of
from distro_conformance.requirements import Requirement
from distro_conformance.requirements.requirement import requirements_named
from distro_conformance.targets.ports import free_base_ports
from distro_conformance.targets.target import OnProgress, Target
from distro_conformance.verdict import KitError
from distro_conformance.waiting import poll_local
from distro_conformance.wire.messages import distro_request
from distro_model.defects import link_of
from distro_protos.addresses import parse_address

_SHORT_S = 60
"""A check that takes less is short: a lease lasts three minutes."""
_KEEP_ALIVE_S = 3
"""The others may all have nodes of their own: the members of this one stay meanwhile."""
OWN_NODES = 6
"""The number of concurrent checks with a node of their own; a real server takes some 300 MB, and 4 s of a core to
start."""
_FORBIDDEN = 403
_JOINED_WITHIN_MS = 60_000
_CHECK_TIMEOUT_S = 1200.0
PLAYED = 2
"""Members that the kit plays: so a check can distinguish what one member gets from what all get."""
BY = "node"


OnFinding = Callable[[Finding], None]


def run_node_conformance(
    target: Target,
    requirement_ids: Sequence[str] | None = None,
    *,
    skip: Sequence[str] | None = None,
    on_progress: OnProgress = lambda _: None,
    on_finding: OnFinding = lambda _: None,
) -> Judged:
    """Start the target, run the requirements (default: all), stop it.

    Raises UsageError for unknown names and TargetError when the target cannot be started. Ctrl-C stops the target.
    """
    chosen, begun = requirements_named(requirement_ids, skip), time.monotonic()
    figures: dict[str, float] = {}

    async def run() -> list[Finding]:
        async with members_beside(target, on_progress) as peers:
            figures["start_seconds"] = round(time.monotonic() - begun, 3)
            return await check_requirements(target, peers, chosen, on_finding, requirement_ids or ())

    findings = asyncio.run(run())
    if why := target.unaltered():
        findings = [_without_mutant(each, f"{target.mutant}: {why}") for each in findings]
    return Judged(target.spec, target.profile, tuple(findings), time.monotonic() - begun, figures)


def _without_mutant(finding: Finding, why: str) -> Finding:
    """A requirement that is met says nothing about a mutant that never took part."""
    is_met = finding.judgement is Judgement.CONFORMS
    return replace(finding, judgement=Judgement.NOT_JUDGED, message=why) if is_met else finding


async def run_requirements(target: Target, ids: Sequence[str] | None = None) -> list[Finding]:
    """The same within an event loop, without the distinction of requirements that were asked for by their ids."""
    async with members_beside(target, lambda _: None) as peers:
        return await check_requirements(target, peers, requirements_named(ids), lambda _: None)


async def check_requirements(
    target: Target,
    peers: tuple[PlayedPeer, ...],
    requirements: Sequence[Requirement],
    on_finding: OnFinding,
    asked: Sequence[str] = (),
) -> list[Finding]:
    """One finding for each requirement, in their order, also for those that do not apply. A requirement that cannot be
    observed on this server does not apply either, unless its id is `asked` for: then it is not judged.

    All checks begin together and share the waiting; those that want a node of their own, a few at a time. In real
    time a check that is not judged is repeated once: the machine may have been too busy, so a short check is repeated
    when all others have been carried out. A violation counts at once.
    """

    nodes = asyncio.Semaphore(OWN_NODES)

    async def first_try(requirement: Requirement) -> _Try:
        judged = _unjudged(requirement, target)
        if target.profile not in requirement.releases:
            why = f"applies {requirement.releases}; the target behaves as {target.profile}"
            return _Try(replace(judged, judgement=Judgement.NOT_APPLICABLE, message=why))
        if missing is not None:
            return _Try(replace(judged, judgement=Judgement.NOT_JUDGED, message=missing))
        if requirement.own_node and not target.limits.counts_members:
            why = f"it takes a node of its own, and the kit did not start {target.address}"
            return _Try(replace(judged, judgement=_beyond(requirement, asked), message=why))
        try:
            return _Try(await carried_out(requirement), may_repeat=target.clock.is_real)
        except LacksError as reason:
            return _Try(replace(judged, judgement=Judgement.NOT_APPLICABLE, message=str(reason)))
        except BeyondError as reason:
            return _Try(replace(judged, judgement=_beyond(requirement, asked), message=str(reason)))

    async def carried_out(requirement: Requirement) -> Finding:
        judged = _unjudged(requirement, target)
        if requirement.own_node:
            async with nodes:
                return await _check_on_own_node(target.fresh(), requirement, judged)
        return await _check(Kit(target, peers), requirement, judged)

    async def checked(requirement: Requirement, trying: asyncio.Task[_Try]) -> Finding:
        first = await trying
        if not first.may_repeat or first.finding.judgement is not Judgement.NOT_JUDGED:
            return first.finding
        if first.finding.seconds < _SHORT_S:
            while (await asyncio.wait(first_tries, timeout=_KEEP_ALIVE_S))[1]:
                await asyncio.gather(*(peer.keep_alive() for peer in peers), return_exceptions=True)
        return both(first.finding, await carried_out(requirement))

    async with target.clock.measured():
        applies = any(target.profile in each.releases for each in requirements)
        missing = await _missing(target, peers) if applies else None
        first_tries = [asyncio.create_task(first_try(each), name=each.id) for each in requirements]
        tasks = [asyncio.create_task(checked(*each)) for each in zip(requirements, first_tries, strict=True)]
        findings: list[Finding] = []
        try:
            for task in tasks:
                findings.append(await task)
                on_finding(findings[-1])
        finally:
            for each in (*tasks, *first_tries):
                each.cancel()
            await asyncio.gather(*tasks, *first_tries, return_exceptions=True)
    return findings


@dataclass(frozen=True, slots=True)
class _Try:
    finding: Finding
    may_repeat: bool = False


def _beyond(requirement: Requirement, asked: Sequence[str]) -> Judgement:
    return Judgement.NOT_JUDGED if requirement.id in asked else Judgement.NOT_APPLICABLE


def both(first: Finding, second: Finding) -> Finding:
    """The finding of a repeated check, with both results."""
    evidence = (*first.evidence, f"not judged: {first.message}; asked once more", *second.evidence)
    message = second.message
    if second.violates:
        message = f"{message} (1 of 2 tries; the other one was not judged: {first.message})"
    return replace(second, message=message, evidence=evidence, seconds=first.seconds + second.seconds)


def _unjudged(requirement: Requirement, target: Target) -> Finding:
    return Finding(
        about=requirement.id,
        by=BY,
        judgement=Judgement.CONFORMS,
        text=requirement.text,
        level=requirement.level,
        node=target.address,
        link=link_of(requirement.bug),
        details={"source": requirement.source, "releases": str(requirement.releases)},
        again=command(
            "test node", *_spec(target), "--requirement", requirement.id, profile=target.profile, mutant=target.mutant
        ),
    )


def _spec(target: Target) -> tuple[str, ...]:
    disrupts = target.limits.takes_syncs and not target.limits.counts_members
    return ("--target", target.spec, *(("--allow-disruption",) if disrupts else ()))


async def _missing(target: Target, peers: tuple[PlayedPeer, ...]) -> str | None:
    """The reason why no check can be carried out, if any."""
    kit = Kit(target, peers)
    try:
        if target.limits.counts_members:
            joined = poll_local(lambda: all(peer.is_connected for peer in peers))
            await kit.arrange(joined, within_ms=_JOINED_WITHIN_MS, what="the node's cluster connection")
        await kit.arrange_service()
        reply = await kit.peer.send(distro_request("QUERY", kit.foreign_client(), target=target.address))
        is_refused = reply.body.get("errorCode") == _FORBIDDEN
        kit.assume(not is_refused, "a node that takes requests of this member", reply.body)
    except (NotJudgedError, KitError) as reason:
        return str(reason)
    except grpc.aio.AioRpcError as error:
        return _call_failed(error)
    finally:
        await kit.close()
    return None


async def _check_on_own_node(target: Target, requirement: Requirement, judged: Finding) -> Finding:
    """The check starts the node itself, once it has configured the answers of the members."""
    judged = replace(judged, node=target.address)
    try:
        async with played_members(target) as peers:
            return await _check(Kit(target, peers), requirement, judged)
    except KitError as error:
        return replace(judged, judgement=Judgement.NOT_JUDGED, message=str(error))


async def _check(kit: Kit, requirement: Requirement, judged: Finding) -> Finding:
    begun = time.monotonic()
    with kit.target.clock.participating():
        try:
            judged = await _outcome(kit, requirement, judged)
        finally:
            await kit.close()
    judged = replace(judged, seconds=time.monotonic() - begun, evidence=tuple(kit.evidence))
    return against_the_list(judged, kit.target.profile, kit.target.kind)


async def _outcome(kit: Kit, requirement: Requirement, judged: Finding) -> Finding:
    """Only a ViolationError is the node's fault; a check that any other error ends is not judged."""

    def open_question(why: str) -> Finding:
        return replace(judged, judgement=Judgement.NOT_JUDGED, message=why)

    try:
        async with asyncio.timeout(_CHECK_TIMEOUT_S):
            await requirement.check(kit)
            await kit.assume_serving()
    except ViolationError as violation:
        if (reason := kit.client_without_keep_alive) is not None:  # its connection may have ended for that
            return open_question(f"{reason}; {violation}")
        client = client_of(str(violation), kit.evidence)
        return replace(
            judged,
            judgement=Judgement.VIOLATES,
            message=str(violation),
            expected=violation.expected,
            client=client,
            observed=violation.observed,
            since=f"{kit.target.clock.now_ms()} ms",
            after=kit.evidence[-1] if kit.evidence else None,
            held=await held_by_each(kit, client) if client else (),
        )
    except BeyondError:
        raise
    except (NotJudgedError, KitError) as reason:
        return open_question(str(reason))
    except TimeoutError:
        return open_question(f"the check was not done after {_CHECK_TIMEOUT_S:.0f} s")
    except grpc.aio.AioRpcError as error:
        return open_question(_call_failed(error))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        return open_question(f"an answer of the node cannot be read: {error!r}")
    return judged


def _call_failed(error: grpc.aio.AioRpcError) -> str:
    return f"a call to the node failed: {error.code().name} {error.details()}"


@asynccontextmanager
async def members_beside(
    target: Target, on_progress: OnProgress, count: int = PLAYED, *, higher: bool = False, listed: bool = True
) -> AsyncIterator[tuple[PlayedPeer, ...]]:
    """The target running, and played members on its list that have been dialled in both directions, if possible.

    `higher`: the members' addresses are higher. Who owns which ip:port client depends on the order
    (docs/protocol #owner-place). `listed`: if false they are on no list of the node, and only send to it.
    """
    async with played_members(target, count, higher=higher) as peers:
        await target.start([peer.address for peer in peers] if listed else [], on_progress)
        for peer in peers:
            await (peer.join if listed and target.limits.counts_members else peer.dial)(target.address)
        yield peers


@asynccontextmanager
async def played_members(
    target: Target, count: int = PLAYED, *, higher: bool = False
) -> AsyncIterator[tuple[PlayedPeer, ...]]:
    """Members that listen; the target has not been started yet. It is stopped before they are."""
    release, own = release_of(target.profile), parse_address(target.address).port
    # Its features are those of a member of this release; `strict` is based on the latest 2.x.
    version = "2.5.1" if release is None else ".".join(map(str, release))
    peers: list[PlayedPeer] = []
    try:
        for _ in range(count):
            (port,) = free_base_ports(beside=(own, *(peer.port for peer in peers)), above=own if higher else 0)
            peer = PlayedPeer(
                port,
                target.clock.now_ms,
                version=version,
                headers=target.member_headers,
                in_virtual_time=not target.clock.is_real,
                only_reads=not target.limits.takes_syncs,
            )
            peers.append(peer)
            await peer.start()
        yield tuple(peers)
    finally:
        for peer in peers:
            await peer.disconnect_from_node()
        await target.stop()
        for peer in peers:
            await peer.stop()
