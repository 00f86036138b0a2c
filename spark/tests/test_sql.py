"""INV-CONV and INV-OWNER as SQL (docs/explanation/invariants-in-sql.md): the same rows as `check` finds."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from blocks import block
from engines import in_process
from test_invariants import CASES, NODES
from test_invariants import RunRecorder as CaseRecorder
from test_responsibility import LASTS_MS, OF_C, RunRecorder, registered, round_of

from distro_conformance.simulation.run import SimulationOptions, simulate
from distro_model.simulation.faults import faults_named
from distro_spark import tally
from distro_traces.event import Kind
from distro_traces.ndjson import Recorder
from distro_traces.query import query

PAGE = "docs/explanation/invariants-in-sql.md"
CONV = block(PAGE, "/* INV-CONV")
BY_CONNECTION = block(PAGE, "/* INV-OWNER of connections")
BY_HASH = block(PAGE, "/* INV-OWNER of clients by ip:port")
LINES_MAX = 40


def of_the_tests(place: Path) -> None:
    for name, (record, profile, _) in CASES.items():
        with Recorder(place, name, profile=profile, target="test", nodes=NODES) as recorder:
            record(CaseRecorder(recorder))


def of_hashed_clients(place: Path) -> None:
    """Runs in which these members verify a client of c, each from and until a time, and a has these faults."""
    second = {"a": (100_000, LASTS_MS), "c": (5000, LASTS_MS)}
    runs: dict[str, tuple[dict[str, tuple[int, int]], Kind | None, str]] = {
        "one": ({"c": (5000, LASTS_MS)}, None, ""),
        "none": ({}, None, ""),
        "several": (second, None, ""),
        "two lists": (second, Kind.MEMBERS_CHANGED, "a,b"),
        "a cut link": (second, Kind.LINK_FAULT, "cut"),
        "a black hole": (second, Kind.LINK_FAULT, "black hole"),
        "late": ({"a": (100_000, 120_000), "c": (125_000, LASTS_MS)}, None, ""),
        "stopped": ({"a": (5000, LASTS_MS), "b": (5000, LASTS_MS)}, Kind.NODE_STOPPED, "crash"),
    }
    for name, (verifiers, kind, detail) in runs.items():
        for profile in ("strict", "nacos-2.2.4"):
            run = RunRecorder(place / name, run=f"{name} of {profile}", profile=profile)
            registered(run, "c", OF_C)
            if kind is not None:
                peer = "b" if kind is Kind.LINK_FAULT else None
                run.row("c" if kind is Kind.NODE_STOPPED else "a", kind, 20_000, peer=peer, detail=detail)
            for node, (from_ms, until_ms) in verifiers.items():
                round_of(run, node, OF_C, from_ms, until_ms)
            run.ends(LASTS_MS)


def of_random_runs(place: Path, simulated: Callable[[Recorder, Random], None]) -> None:
    for seed in range(60):
        with Recorder(place, f"random {seed}", profile="strict", target="test", nodes=NODES) as recorder:
            simulated(recorder, Random(seed))


def of_the_model(place: Path) -> None:
    for number, (profile, mutant) in enumerate((("strict", None), ("nacos-2.0.4", None), ("strict", "B07"))):
        faults = faults_named("all" if mutant is None else "none")
        options = {"profile": profile, "mutant": mutant, "faults": faults}
        simulate(SimulationOptions(out=place / str(number), clients=3, duration_s=200, seed=3, **options))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, simulate: Callable[[Recorder, Random], None]) -> Path:
    place = tmp_path_factory.mktemp("corpus")
    of_the_tests(place / "cases")
    of_hashed_clients(place / "hashed")
    of_random_runs(place / "random", simulate)
    of_the_model(place / "model")
    return place


def test_convergence_is_the_same_in_sql(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "LISTED_MAX", 10**6)
    found = in_process(corpus, invariants=["INV-CONV"])
    rows = sorted(
        (each.run, each.client, each.node, number)
        for each in found.violations
        for number in each.evidence["checkpoints"].split(", ")
    )
    assert len(rows) > 100
    assert query(CONV, corpus).rows == rows


@pytest.mark.slow
def test_responsibility_is_the_same_in_sql(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "LISTED_MAX", 10**6)
    found = in_process(corpus, invariants=["INV-OWNER"])
    rows = {(each.run, each.client, each.node) for each in found.violations}
    hashed = {(run.partition(" of ")[0], node) for run, client, node in rows if client == OF_C}
    assert hashed == {("none", "c"), ("several", "a"), ("two lists", "a"), ("late", "a"), ("stopped", "b")}
    assert len(rows) > 30
    assert query(BY_CONNECTION, corpus).rows == sorted(row for row in rows if "#" not in row[1])
    assert query(BY_HASH, corpus).rows == sorted(row for row in rows if "#" in row[1])


@pytest.mark.parametrize("statement", [CONV, BY_CONNECTION, BY_HASH])
def test_a_statement_fits_on_a_screen(statement: str) -> None:
    assert len(statement.splitlines()) <= LINES_MAX
