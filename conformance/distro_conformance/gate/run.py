"""The pipeline and its report."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from distro_conformance.findings import Finding, Judgement
from distro_conformance.gate.options import GateOptions
from distro_conformance.gate.stages import (
    StageResult,
    check_stage,
    explore_stage,
    lockstep_stage,
    node_stage,
    real_cluster_stage,
)
from distro_conformance.release import judged_as
from distro_conformance.report import Report, Stage, remove_report
from distro_conformance.requirements.requirement import requirements_named
from distro_conformance.targets.registry import resolve_target
from distro_conformance.targets.target import OnProgress, Target
from distro_conformance.verdict import UsageError, Verdict, worst
from distro_traces import ndjson
from distro_traces.compact import MANIFEST

OnStage = Callable[[Stage], None]
PLAYED = {
    "explore": explore_stage,
    "node": node_stage,
    "lockstep": lockstep_stage,
    "cluster": real_cluster_stage,
}
"""The stages before `check`, by their names in `--stages`."""
CHECK = "check"
_REPORTED = {"cluster": "real cluster"}
"""Names in reports, where they differ."""
TRACES = "traces"
"""The directory of the recordings, in the directory of the report."""


class Gate:
    """One run of all stages. Raises UsageError before anything starts if the options cannot be run."""

    def __init__(self, options: GateOptions) -> None:
        self._options = options
        requirements_named(options.requirements, options.skip)
        target = resolve_target(options.target, options.profile, options.mutant, credentials=options.credentials)
        self._kind, self._profile = target.kind, target.profile
        self._chosen = chosen_stages(options.stages, target)
        if "node" not in self._chosen and options.selects_requirements:
            raise UsageError("--requirement, --skip and expected failures are for the stage 'node'; name it, too")
        self._traces = options.out / TRACES
        _require_recordings_only(self._traces)

    def run(
        self,
        on_progress: OnProgress = lambda _: None,
        on_stage: OnStage = lambda _: None,
    ) -> Report:
        """Run all stages in order; a violation in one stage does not stop the others.

        `on_stage` is called for each stage as it ends. Raises TargetError when the target cannot be started.
        """
        began = time.monotonic()
        remove_report(self._options.out)
        if self._traces.exists():
            shutil.rmtree(self._traces)
        self._traces.mkdir(parents=True)
        results: list[StageResult] = []
        for result in self._stages(on_progress):
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
            findings=tuple(finding for result in results for finding in (*result.findings, *_unsaid(result))),
            failures=tuple(failure for result in results for failure in result.failures),
            convergence={name: value for result in results for name, value in result.convergence.items()},
            changes=tuple(change for result in results for change in result.changes),
            coverage={name: counts for result in results for name, counts in result.coverage.items()},
            traces=str(self._traces),
        )

    def _stages(self, on_progress: OnProgress) -> Iterator[StageResult]:
        for name in self._chosen:
            if name == CHECK:
                yield check_stage(self._options, on_progress)
            else:
                yield PLAYED[name](self._options, self._profile, on_progress)

    @property
    def scope(self) -> str:
        """The first line of a run: the release that an unlisted target is judged as, the stages that run on the target
        itself, and those that run on the model and on reference nodes with its expected behaviour."""
        return "; ".join(filter(None, (judged_as(self._profile), self._stages_on())))

    def _stages_on(self) -> str:
        is_embedded = self._kind == "embedded"
        nodes = f"reference nodes that behave as {self._profile}" if is_embedded else f"{self._options.target} itself"
        where = {
            "node": f"on {nodes}",
            "cluster": f"on {nodes}",
            "explore": f"on the model of {self._profile}",
            "lockstep": "on reference nodes beside that model",
            CHECK: "on what was recorded",
        }
        text = ", ".join(f"{name} {where[name]}" for name in self._chosen)
        return f"{text}; nothing on a real server" if is_embedded else text

    def expected_seconds(self) -> dict[str, float]:
        """The estimated time of each stage: as in the last report of this directory, if that was the same run."""
        options = self._options
        seconds = {
            "explore": 10.0,
            "node": 5.0 if self._kind == "embedded" else 100.0,
            "lockstep": options.budget.lockstep_seconds,
            "cluster": 40.0,
            CHECK: 32.0 if options.budget.on_spark else 2.0,
        }
        expected = {_REPORTED.get(name, name): seconds[name] for name in self._chosen}
        try:
            last = json.loads((options.out / "report.json").read_text(encoding="utf-8"))
            if (last["target"], last["budget"]) == (options.target, options.budget.name):
                expected |= {stage["name"]: stage["seconds"] for stage in last["stages"] if stage["name"] in expected}
        except (OSError, ValueError, KeyError, TypeError):
            pass  # no report, or a truncated one: the estimate of the time left is less exact
        return expected


def _unsaid(result: StageResult) -> Iterator[Finding]:
    """A finding for a stage that fails or stays open without one that says so: JUnit and SARIF have findings only."""
    stage = result.stage
    judgements = {Verdict.VIOLATES: Judgement.VIOLATES, Verdict.INCONCLUSIVE: Judgement.NOT_JUDGED}
    if stage.verdict in judgements and all(each.counted is not stage.verdict for each in result.findings):
        yield Finding(
            about=stage.name.upper().replace(" ", "-"),
            by="stage",
            judgement=judgements[stage.verdict],
            text=f"The stage {stage.name} judges all of its input, and finds no violation.",
            message=stage.summary,
            seconds=stage.seconds,
        )


def chosen_stages(named: Sequence[str] | None, target: Target) -> tuple[str, ...]:
    """The stages in the order in which they run. Several nodes are recorded if the kit starts them and can put links
    between them; recordings are checked. The default are the stages that judge the target: the search and the lockstep
    test this project's model and nodes, so they do not judge a foreign server. Raises UsageError."""
    has_cluster = target.kind in ("nacos", "process") and target.takes_offset
    possible = tuple(name for name in (*PLAYED, CHECK) if has_cluster or name != "cluster")
    if named is None and target.kind == "embedded":
        return possible
    if named is None:
        return ("node", "cluster", CHECK) if has_cluster else ("node",)
    for name in named:
        if name not in (*PLAYED, CHECK):
            raise UsageError(f"there is no stage '{name}'; stages are {', '.join((*PLAYED, CHECK))}")
        if name not in possible:
            raise UsageError(f"the target {target.spec} has no stage '{name}'; it has {', '.join(possible)}")
    if CHECK in named and not {"lockstep", "cluster"} & set(named):
        raise UsageError(f"the stage '{CHECK}' reads what lockstep or cluster record; name one of these, too")
    if target.kind != "embedded" and not {"node", "cluster"} & set(named):
        raise UsageError(
            f"the stages {', '.join(named)} judge the model and reference nodes, and nothing of {target.spec}; "
            f"name node{' or cluster' if has_cluster else ''}, too, or leave --target out"
        )
    return tuple(name for name in (*PLAYED, CHECK) if name in named)


def _require_recordings_only(traces: Path) -> None:
    """The recordings of the last run will be removed. Raises UsageError when the directory has other files."""
    if traces.exists() and not traces.is_dir():
        raise UsageError(f"{traces} is no directory; choose another --out")
    foreign = [entry for entry in sorted(traces.glob("*")) if not _is_recording(entry)]
    if foreign:
        raise UsageError(f"{traces} holds something else than recordings ({foreign[0].name}); choose another --out")


def _is_recording(path: Path) -> bool:
    if path.is_file():
        return path.suffix == ndjson.SUFFIX or path.name == MANIFEST
    return path.name.startswith("run=")
