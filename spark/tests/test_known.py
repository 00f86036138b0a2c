"""Excused violations: each symptom of a known defect, and a near miss of each of its clauses that is not excused.

The runs are in `known_cases`, and checked in one go. The tests of clauses are generated from the symptoms: one without
a run that shows it, and a clause without a near miss, fails.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

import polars as pl
import pytest
from engines import in_process, on_both
from known_cases import batches, leases, receiving, sending, stamps, torn, uncounted
from known_cases.run import CASES, Case, Run
from pyspark.sql import SparkSession

from distro_spark import frames, tally
from distro_spark.cluster import cluster_of
from distro_spark.doubts import CHECKPOINT
from distro_spark.history import Finding
from distro_spark.invariants import INVARIANTS, NEEDS
from distro_spark.local import Local
from distro_spark.responsibility import MEASURED
from distro_spark.result import CheckResult
from distro_spark.symptoms import SYMPTOMS
from distro_spark.symptoms.symptom import Clauses, Symptom
from distro_spark.timeline import SORTED, timeline
from distro_spark.violations import findings_of_clients, findings_of_nodes
from distro_traces.ndjson import Recorder

MODULES = (batches, leases, receiving, sending, stamps, torn, uncounted)
"""Importing them fills `CASES`."""

FOUND_BY = Mapping[str, Sequence[tuple[str, Finding]]]
EACH = [pytest.param(each, id=f"{each.bug}: {each.sentence}") for each in SYMPTOMS]


def write(directory: Path, name: str, case: Case, *, probed: bool = False) -> None:
    with Recorder(directory, name, profile=case.profile, target=case.target or name, nodes="abc") as recorder:
        run = Run(recorder, probed=probed)
        case.writes(run)
        if not run.is_over:
            run.after(20_000)
            run.checkpoint()


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory: Path = tmp_path_factory.mktemp("known")
    for name, case in CASES.items():
        write(directory, name, case)
    return directory


@pytest.fixture(scope="module")
def result(directory: Path) -> CheckResult:
    return every_violation(directory)


def every_violation(directory: Path) -> CheckResult:
    """A check lists a limited number for each invariant."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tally, "LISTED_MAX", 10 * len(CASES))
        found = in_process(directory)
    assert found.violations_left_out == 0
    return found


@pytest.fixture(scope="module")
def found(directory: Path) -> FOUND_BY:
    """By run the violated invariants, with the findings that the symptoms judge."""
    events, _ = frames.read([frames.headed(file) for file in frames.files_at([directory])])
    engine = Local(directory)
    cluster = cluster_of(*engine.measured(), engine.headers, {**NEEDS, **MEASURED}, {})
    rows = events.filter(pl.col("client").is_not_null()).sort(SORTED)
    of_clients, of_nodes = timeline(rows, cluster), timeline(rows.clear(), cluster)
    by_run = defaultdict[str, list[tuple[str, Finding]]](list)
    for name, invariant in INVARIANTS.items():
        for finding in (*findings_of_clients(of_clients, invariant), *findings_of_nodes(of_nodes, invariant)):
            by_run[finding.history.run].append((name, finding))
    return by_run


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> CheckResult:
    """The same runs, but a probe has read each node before its checkpoint."""
    directory: Path = tmp_path_factory.mktemp("probed")
    for name, case in CASES.items():
        write(directory, name, case, probed=True)
    return every_violation(directory)


@pytest.mark.parametrize("name", ["result", "probed"])
def test_only_what_has_the_symptom_is_excused(name: str, request: pytest.FixtureRequest) -> None:
    result: CheckResult = request.getfixturevalue(name)
    found: dict[tuple[str, str], list[str | None]] = {}
    for violation in result.violations:
        found.setdefault((violation.run, violation.invariant), []).append(violation.known)
    expected = {(name, invariant): bugs for name, case in CASES.items() for invariant, bugs in case.known.items()}
    assert {key: found.get(key, []) for key in expected} == expected


@pytest.mark.parametrize("symptom", EACH)
def test_each_symptom_is_seen(found: FOUND_BY, symptom: Symptom) -> None:
    """In each invariant that it explains."""
    seen = {
        name
        for run, findings in found.items()
        if symptom.is_of(CASES[run].profile)
        for name, finding in findings
        if name in symptom.about and not symptom.missing(finding)
    }
    assert seen == {*symptom.about}


@pytest.mark.parametrize("symptom", EACH)
def test_a_near_miss_of_each_clause_is_a_violation(found: FOUND_BY, result: CheckResult, symptom: Symptom) -> None:
    clauses, missed = set[str](), set[str]()
    for run, findings in found.items():
        about = [finding for name, finding in findings if name in symptom.about]
        clauses.update(*(symptom.clauses(finding) for finding in about if symptom.is_of(CASES[run].profile)))
        for words in (words for each, words in CASES[run].misses if each is symptom):
            assert symptom.is_of(CASES[run].profile)
            missing = [symptom.missing(finding) for finding in about]
            one = {each[0] for each in missing if len(each) == 1 and words in each[0]}
            assert len(one) == 1, (run, words, missing)
            missed |= one
            counted = [each for each in result.violations if each.run == run and each.invariant in symptom.about]
            assert any(each.known is None for each in counted)
    assert clauses == missed


@pytest.mark.slow
@pytest.mark.spark
def test_spark_excuses_the_same(spark: SparkSession, directory: Path) -> None:
    assert on_both(spark, directory).violations


def recorded(
    directory: Path, run: str, profile: str, writes: Callable[[Run], None], *, checkpoint: bool = True
) -> None:
    with Recorder(directory, run, profile=profile, target="one", nodes="abc") as recorder:
        written = Run(recorder)
        for node, source in zip("abc", "bca", strict=True):
            written.loads(node, source)
        writes(written)
        written.after(20_000)
        if checkpoint:
            written.checkpoint()


@pytest.fixture
def diverged_beside_healthy(tmp_path: Path) -> Path:
    def diverged(run: Run) -> None:
        run.registered()
        run.change(2, "B")
        run.apply("b", 2, "B")

    recorded(tmp_path, "healthy", "strict", Run.registered)
    recorded(tmp_path, "diverged", "strict", diverged, checkpoint=False)
    return tmp_path


def test_a_run_without_a_checkpoint_is_not_judged_by_its_neighbour(diverged_beside_healthy: Path) -> None:
    result = in_process(diverged_beside_healthy)
    assert result.verdict == "inconclusive"
    (reason,) = result.reasons
    assert reason.startswith("INV-CONV, ")
    assert reason.endswith(f" cannot be judged: 1 of 2 runs, diverged for one, have no checkpoint ({CHECKPOINT})")
    verdicts = {each.name: each.verdict for each in result.invariants}
    assert (verdicts["INV-CONV"], verdicts["INV-OWNER"]) == ("not-judged", "conforms")


def test_what_a_release_does_not_have_is_not_applicable_and_no_pass(tmp_path: Path) -> None:
    recorded(tmp_path, "old", "nacos-2.0.4", lambda run: run.registered(0))
    result = in_process(tmp_path)
    assert {each.name: each.verdict for each in result.invariants}["INV-REV"] == "not-applicable"
    assert result.verdict == "conforms"


def test_a_symptom_that_states_no_clause_about_a_violation_does_not_excuse_it() -> None:
    def look(_: Finding) -> Clauses:
        yield from ()

    silent = Symptom(bug="B02", about=("INV-CONV",), sentence="", look=look)
    assert silent.missing(cast("Finding", None)) == ("B02 has a clause about this",)
