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
from distro_conformance.release import judged_as
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


class Gate:
    """One run of all stages. Raises UsageError for what cannot be run, before anything starts."""

    def __init__(self, options: GateOptions) -> None:
        self._options = options
        requirements_named(options.requirements)
        target = resolve_target(options.target, options.profile, options.mutant)
        self._kind, self._profile = target.kind, target.profile
        self._traces = options.out / TRACES
        _require_recordings_only(self._traces)

    def run(
        self,
        new_session: SessionFactory,
        on_progress: OnProgress = lambda _: None,
        on_stage: OnStage = lambda _: None,
    ) -> Report:
        """All stages in order; a stage that finds a violation does not keep the others from running.

        `on_stage` is told of each as it ends; `new_session` is called when the recordings are there. Raises TargetError
        when the target cannot be started.
        """
        began = time.monotonic()
        if self._traces.exists():
            shutil.rmtree(self._traces)
        self._traces.mkdir(parents=True)
        results: list[StageResult] = []
        for result in self._stages(new_session, on_progress):
            results.append(result)
            on_stage(result.stage)
        options = self._options
        return Report(
            target=options.target,
            profile=self._profile,
            mutant=options.mutant,
            scope=self.scope,
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
            traces=str(self._traces),
        )

    def _stages(self, new_session: SessionFactory, on_progress: OnProgress) -> Iterator[StageResult]:
        played = [explore_stage, node_stage, lockstep_stage, *([real_cluster_stage] if self._kind == "nacos" else [])]
        for stage in played:
            yield stage(self._options, self._profile, on_progress)
        yield check_stage(self._options, new_session, on_progress)

    @property
    def scope(self) -> str:
        """As which release the target is judged, where it is not listed; which stages run on the target itself, and
        which on the model and on reference nodes that behave as it should: the first line of a run."""
        return "; ".join(filter(None, (judged_as(self._profile), self._stages_on())))

    def _stages_on(self) -> str:
        target, profile = self._options.target, self._profile
        if self._kind == "embedded":
            return (
                f"node and lockstep on reference nodes that behave as {profile}, explore on the model of it, "
                "check on what the nodes recorded; nothing on a real server"
            )
        itself, recorded = ("node and real cluster", "both") if self._kind == "nacos" else ("node", "these")
        return (
            f"{itself} on {target} itself, explore on the model of {profile}, "
            f"lockstep on reference nodes beside that model, check on what {recorded} recorded"
        )

    def expected_seconds(self) -> dict[str, float]:
        """Each stage, and how long it may take: as in the last report of this directory, if that was the same run."""
        options = self._options
        real = {"node": 100.0, "real cluster": 40.0} if self._kind == "nacos" else {"node": 5.0}
        expected = {"explore": 10.0, "lockstep": options.budget.lockstep_seconds, "check": 20.0, **real}
        try:
            last = json.loads((options.out / "report.json").read_text(encoding="utf-8"))
            if (last["target"], last["budget"]) == (options.target, options.budget.name):
                expected |= {stage["name"]: stage["seconds"] for stage in last["stages"] if stage["name"] in expected}
        except (OSError, ValueError, KeyError, TypeError):
            pass  # none, or cut: only the time left is told less well
        return expected


def _require_recordings_only(traces: Path) -> None:
    """Those of the last run will go. Raises UsageError when anything else is in there."""
    if traces.exists() and not traces.is_dir():
        raise UsageError(f"{traces} is no directory; choose another --out")
    foreign = [entry for entry in sorted(traces.glob("*")) if not _is_recording(entry)]
    if foreign:
        raise UsageError(f"{traces} holds something else than recordings ({foreign[0].name}); choose another --out")


def _is_recording(path: Path) -> bool:
    if path.is_file():
        return path.suffix == ndjson.SUFFIX or path.name == MANIFEST
    return path.name.startswith("run=")
