"""The pipeline and its report."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pyspark.sql import SparkSession

from distro_conformance.gate.options import GateOptions
from distro_conformance.gate.stages import (
    StageResult,
    check_stage,
    explore_stage,
    lockstep_stage,
    node_stage,
    real_cluster_stage,
)
from distro_conformance.node.run import requirements_named
from distro_conformance.report import Report, Stage
from distro_conformance.targets.registry import resolve_target
from distro_conformance.targets.target import OnProgress
from distro_conformance.verdict import UsageError, worst
from distro_traces import ndjson
from distro_traces.compact import MANIFEST

SessionFactory = Callable[[], SparkSession]
OnStage = Callable[[Stage], None]
TRACES = "traces"
"""Where the recordings go, in the directory of the report."""


def run_gate(
    options: GateOptions,
    new_session: SessionFactory,
    on_progress: OnProgress = lambda _: None,
    on_stage: OnStage = lambda _: None,
) -> Report:
    """All stages in order; a stage that finds a violation does not keep the others from running.

    `on_stage` is told of each as it ends; `new_session` is called when the recordings are there. Raises UsageError
    before anything starts, TargetError when the target cannot be started.
    """
    began = time.monotonic()
    requirements_named(options.requirements)
    target = resolve_target(options.target, options.profile, options.mutant)
    traces = options.out / TRACES
    _make_room(traces)
    results: list[StageResult] = []
    for result in _stages(options, target.kind, target.profile, new_session, on_progress):
        results.append(result)
        on_stage(result.stage)
    return Report(
        target=options.target,
        profile=target.profile,
        mutant=options.mutant,
        scope=scope_of(options.target, target.kind, target.profile),
        budget=options.budget.name,
        seed=options.seed,
        verdict=worst(result.stage.verdict for result in results),
        seconds=time.monotonic() - began,
        stages=tuple(result.stage for result in results),
        findings=tuple(finding for result in results for finding in result.findings),
        failures=tuple(failure for result in results for failure in result.failures),
        convergence={name: value for result in results for name, value in result.convergence.items()},
        changes=tuple(change for result in results for change in result.changes),
        coverage={name: counts for result in results for name, counts in result.coverage.items()},
        traces=str(traces),
    )


def _require_recordings_only(traces: Path) -> None:
    """Those of the last run will go. Raises UsageError when anything else is in there."""
    foreign = [entry for entry in _entries(traces) if not _is_recording(entry)]
    if foreign:
        raise UsageError(f"{traces} holds something else than recordings ({foreign[0].name}); choose another --out")


def _make_room(traces: Path) -> None:
    """An empty directory for recordings."""
    _require_recordings_only(traces)
    if traces.exists():
        shutil.rmtree(traces)
    traces.mkdir(parents=True)


def _entries(directory: Path) -> list[Path]:
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"{directory} is no directory; choose another --out")
    return sorted(directory.iterdir()) if directory.exists() else []


def _is_recording(path: Path) -> bool:
    if path.is_file():
        return path.suffix == ndjson.SUFFIX or path.name == MANIFEST
    return path.name.startswith("run=")


def _stages(
    options: GateOptions, kind: str, profile: str, new_session: SessionFactory, on_progress: OnProgress
) -> Iterator[StageResult]:
    yield explore_stage(options, profile, on_progress)
    yield node_stage(options, profile, on_progress)
    yield lockstep_stage(options, profile, on_progress)
    if kind == "nacos":
        yield real_cluster_stage(options, profile, on_progress)
    yield check_stage(options, new_session, on_progress)


def expected_seconds(options: GateOptions) -> dict[str, float]:
    """Each stage, and how long it may take: as in the last report of this directory, if that was the same run."""
    kind = resolve_target(options.target, options.profile, options.mutant).kind
    real = {"node": 100.0, "real cluster": 40.0} if kind == "nacos" else {"node": 5.0}
    expected = {"explore": 10.0, "lockstep": options.budget.lockstep_seconds, "check": 20.0, **real}
    try:
        last = json.loads((options.out / "report.json").read_text(encoding="utf-8"))
        if (last["target"], last["budget"]) == (options.target, options.budget.name):
            expected |= {stage["name"]: stage["seconds"] for stage in last["stages"] if stage["name"] in expected}
    except (OSError, ValueError, KeyError, TypeError):
        pass  # none, or cut: only the time left is told less well
    return expected


def scope_of_gate(options: GateOptions) -> str:
    """The first line of a run. Raises UsageError for what `run_gate` would refuse."""
    requirements_named(options.requirements)
    target = resolve_target(options.target, options.profile, options.mutant)
    _require_recordings_only(options.out / TRACES)
    return scope_of(options.target, target.kind, target.profile)


def scope_of(target: str, kind: str, profile: str) -> str:
    """Which stages run on the target itself, and which on the model and on reference nodes that behave as it should."""
    if kind == "nacos":
        return (
            f"node and real cluster on {target} itself, explore on the model of {profile}, "
            "lockstep on reference nodes beside that model, check on what both recorded"
        )
    if kind != "embedded":
        return (
            f"node on {target} itself, explore on the model of {profile}, "
            "lockstep on reference nodes beside that model, check on what these recorded"
        )
    return (
        f"node and lockstep on reference nodes that behave as {profile}, explore on the model of it, "
        "check on what the nodes recorded; nothing on a real server"
    )
