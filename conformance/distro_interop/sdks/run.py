"""The table: each SDK against each scenario, on one cluster of nodes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import grpc.aio

from distro_conformance.findings import Finding, Judged, Judgement
from distro_conformance.findings.finding import command
from distro_conformance.targets.target import OnProgress
from distro_conformance.verdict import KitError, all_named
from distro_conformance.waiting import gather_all
from distro_interop.sdks.build import SdkMissingError, built
from distro_interop.sdks.environment import Environment, FailedError, Scenario
from distro_interop.sdks.nodes import EMBEDDED, guard, require_usable, started_nodes
from distro_interop.sdks.program import ProgramError
from distro_interop.sdks.registry import SDKS, Sdk
from distro_interop.sdks.scenarios import SCENARIOS

BY = "sdk"
Asked = Callable[[Sdk, Scenario], Finding]


async def run_sdks(
    target: str,
    profile: str | None,
    sdks: Sequence[str] | None,
    scenarios: Sequence[str] | None,
    on_progress: OnProgress,
    *,
    settings: Sequence[str] = (),
    jobs: int = 1,
) -> Judged:
    """All SDKs and all scenarios unless some are named, on so many clusters side by side.

    Raises UsageError for unknown names before anything is built, TargetError when the nodes cannot be started.
    """
    require_usable(target, profile, settings)
    chosen = all_named("SDK", SDKS, sdks)
    wanted = all_named("scenario", SCENARIOS, scenarios)
    asked = partial(_asked, target, profile, settings)
    started = time.monotonic()

    # A real server's login is not part of its naming module.
    guarded = (
        partial(started_nodes, target, profile, (*settings, *guard(profile)), on_progress, size=1)
        if target == EMBEDDED
        else None
    )

    async def on_one_cluster(of_job: Sequence[Sdk]) -> list[Finding]:
        cells: list[Finding] = []
        there: list[tuple[Sdk, Path]] = []
        for sdk in of_job:
            try:
                there.append((sdk, await built(sdk, on_progress)))
            except SdkMissingError as error:
                cells += [
                    replace(asked(sdk, each), judgement=Judgement.NOT_JUDGED, message=str(error)) for each in wanted
                ]
        if there:
            async with started_nodes(target, profile, settings, on_progress) as nodes:
                for sdk, place in there:
                    cells += await _run_sdk(Environment(sdk, place, nodes, guarded), wanted, asked, on_progress)
        return cells

    shares = [chosen[job::jobs] for job in range(min(jobs, len(chosen)))]
    cells = [cell for done in await gather_all(map(on_one_cluster, shares)) for cell in done]
    cells.sort(key=lambda cell: list(SDKS).index(str(cell.client)))
    return Judged(target, profile, tuple(cells), time.monotonic() - started)


async def _run_sdk(
    env: Environment, scenarios: Sequence[Scenario], asked: Asked, on_progress: OnProgress
) -> list[Finding]:
    cells = []
    try:
        for scenario in scenarios:
            on_progress(f"{env.sdk.name}: {scenario.text}")
            began = time.monotonic()
            cell = await _run_scenario(scenario, env, asked(env.sdk, scenario))
            cells.append(replace(cell, seconds=time.monotonic() - began))
    finally:
        await env.kill_programs()
    return cells


async def _run_scenario(scenario: Scenario, env: Environment, asked: Finding) -> Finding:
    """A failure or an error of the SDK is a violation; trouble of the kit with the nodes leaves the cell not judged."""
    if not scenario.is_offered(env):
        return replace(asked, judgement=Judgement.NOT_APPLICABLE)
    try:
        await env.nodes.repair()
        await scenario.run(env)
    except (FailedError, ProgramError) as error:
        return replace(asked, judgement=Judgement.VIOLATES, message=str(error))
    except (KitError, grpc.aio.AioRpcError, OSError) as error:
        return replace(asked, judgement=Judgement.NOT_JUDGED, message=str(error) or repr(error))
    return asked


def _asked(target: str, profile: str | None, settings: Sequence[str], sdk: Sdk, scenario: Scenario) -> Finding:
    """The finding when nothing goes wrong."""
    nodes = ("--target", target, *(word for each in settings for word in ("--set", each)))
    return Finding(
        about=scenario.name,
        by=BY,
        judgement=Judgement.CONFORMS,
        text=scenario.text,
        client=sdk.name,
        again=command("test sdks", *nodes, "--sdk", sdk.name, "--scenario", scenario.name, profile=profile),
    )
