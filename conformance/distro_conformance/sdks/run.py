"""The table: each SDK against each scenario, on one cluster of nodes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

import grpc.aio

from distro_conformance.sdks.build import SdkMissingError, built
from distro_conformance.sdks.nodes import EMBEDDED, guard, started_nodes
from distro_conformance.sdks.registry import SDKS, Sdk, sdk_named
from distro_conformance.sdks.scenarios import SCENARIOS
from distro_conformance.sdks.stage import FailedError, Scenario, Stage
from distro_conformance.targets.target import OnProgress
from distro_conformance.verdict import KitError, UsageError, Verdict, worst


class Outcome(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    NOT_OFFERED = "not offered"
    MISSING = "missing"
    """The SDK cannot be had on this machine: nothing was tried."""


_VERDICTS = {Outcome.PASS: Verdict.CONFORMS, Outcome.FAIL: Verdict.VIOLATES, Outcome.MISSING: Verdict.INCONCLUSIVE}


@dataclass(frozen=True, slots=True)
class Cell:
    sdk: str
    scenario: str
    outcome: Outcome
    seconds: float = 0.0
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "sdk": self.sdk,
            "scenario": self.scenario,
            "outcome": self.outcome,
            "seconds": round(self.seconds, 3),
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class SdkReport:
    cells: tuple[Cell, ...]
    seconds: float

    @property
    def verdict(self) -> Verdict:
        return worst(_VERDICTS[cell.outcome] for cell in self.cells if cell.outcome in _VERDICTS)


async def run_sdks(
    target: str,
    profile: str | None,
    sdks: Sequence[str] | None,
    scenarios: Sequence[str] | None,
    on_progress: OnProgress,
    *,
    settings: Sequence[str] = (),
    jobs: int = 1,
) -> SdkReport:
    """All SDKs and all scenarios unless some are named, on so many clusters side by side.

    Raises UsageError for unknown names, TargetError when the nodes cannot be started.
    """
    chosen = [sdk_named(name) for name in sdks or SDKS]
    wanted = [_scenario_named(name) for name in scenarios or SCENARIOS]
    started = time.monotonic()

    # A real server's login is not part of its naming module.
    guarded = (
        partial(started_nodes, target, profile, (*settings, *guard(profile)), on_progress, size=1)
        if target == EMBEDDED
        else None
    )

    async def on_one_cluster(of_job: Sequence[Sdk]) -> list[Cell]:
        cells: list[Cell] = []
        there: list[tuple[Sdk, Path]] = []
        for sdk in of_job:
            try:
                there.append((sdk, await built(sdk, on_progress)))
            except SdkMissingError as error:
                cells += [Cell(sdk.name, each.name, Outcome.MISSING, reason=str(error)) for each in wanted]
        if there:
            async with started_nodes(target, profile, settings, on_progress) as nodes:
                for sdk, place in there:
                    cells += await _run_sdk(Stage(sdk, place, nodes, guarded), wanted, on_progress)
        return cells

    shares = [chosen[job::jobs] for job in range(min(jobs, len(chosen)))]
    tasks = [asyncio.create_task(on_one_cluster(share)) for share in shares]
    try:
        cells = [cell for done in await asyncio.gather(*tasks) for cell in done]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    cells.sort(key=lambda cell: list(SDKS).index(cell.sdk))
    return SdkReport(tuple(cells), time.monotonic() - started)


async def _run_sdk(stage: Stage, scenarios: Sequence[Scenario], on_progress: OnProgress) -> list[Cell]:
    cells = []
    try:
        for scenario in scenarios:
            on_progress(f"{stage.sdk.name}: {scenario.text}")
            cells.append(await _run_scenario(scenario, stage))
    finally:
        await stage.kill_programs()
    return cells


async def _run_scenario(scenario: Scenario, stage: Stage) -> Cell:
    if not scenario.is_offered(stage):
        return Cell(stage.sdk.name, scenario.name, Outcome.NOT_OFFERED)
    await stage.nodes.repair()
    started = time.monotonic()
    try:
        await scenario.run(stage)
    except (FailedError, KitError, grpc.aio.AioRpcError, OSError) as error:
        return Cell(stage.sdk.name, scenario.name, Outcome.FAIL, time.monotonic() - started, str(error) or repr(error))
    return Cell(stage.sdk.name, scenario.name, Outcome.PASS, time.monotonic() - started)


def _scenario_named(name: str) -> Scenario:
    try:
        return SCENARIOS[name]
    except KeyError:
        raise UsageError(f"no scenario {name!r}; known: {', '.join(SCENARIOS)}") from None
