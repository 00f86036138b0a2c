"""The failures that the owner of a described server expects: from a file, and from nothing else.

The server is the reference node as a process. It says that it behaves as nacos-2.2.4, which has B12 and B18.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from programs import ROOT
from typer.testing import CliRunner

from distro_conformance.cli import app
from distro_conformance.findings import Finding, Judged, Judgement
from distro_conformance.findings.expected import Expectations
from distro_conformance.findings.finding import MUST, SHOULD, Level
from distro_conformance.gate.options import BUDGETS, GateOptions
from distro_conformance.gate.stages import node_stage
from distro_conformance.verdict import UsageError, Verdict

SERVE = f"process:{ROOT / 'docs' / 'examples' / 'serve.toml'}"
IDS = ("DISTRO-NATIVE-001", "DISTRO-BATCH-002", "DISTRO-SYNC-001", "DISTRO-LOAD-008")
TIMELESS = ("DISTRO-REGISTER-005", "DISTRO-BATCH-002", "DISTRO-HOLDER-004")
"""Judged on a busy machine, too."""
OVERWRITTEN = {"acknowledged": True, "sent": ["other"], "published": ["other"]}
"""B01 as DISTRO-NATIVE-001 observes it."""


def found(*findings: Finding) -> Judged:
    return Judged("process:toy.toml", "nacos-2.2.4", findings, 1.0)


def violation(name: str, *, level: Level = MUST, **observed: object) -> Finding:
    message = f'expected "{name}"; not seen'
    return Finding(about=name, by="node", judgement=Judgement.VIOLATES, level=level, message=message, observed=observed)


def passed(each: Finding) -> Finding:
    return replace(each, judgement=Judgement.CONFORMS, message="")


@pytest.fixture
def reads(tmp_path: Path) -> Callable[[str], Expectations]:
    def read(text: str) -> Expectations:
        path = tmp_path / "expected.toml"
        path.write_text(text, "utf-8")
        return Expectations.of("process:toy.toml", path, None, IDS)

    return read


def test_without_a_file_every_failure_is_a_violation() -> None:
    judged = found(violation("DISTRO-NATIVE-001", **OVERWRITTEN))
    assert Expectations.of("process:toy.toml", None, None, IDS).judged(judged) == judged
    assert judged.verdict is Verdict.VIOLATES


def test_a_listed_failure_is_known_with_the_file(reads: Callable[[str], Expectations], tmp_path: Path) -> None:
    judged = reads("[DISTRO-SYNC-001]").judged(found(violation("DISTRO-SYNC-001"), violation("DISTRO-BATCH-002")))
    listed, other = judged.findings
    assert (listed.judgement, listed.known) == (Judgement.KNOWN, str(tmp_path / "expected.toml"))
    assert listed.message.startswith(f"expected by {tmp_path / 'expected.toml'}: ")
    assert other.judgement is Judgement.VIOLATES
    assert judged.headline == "process:toy.toml: 0 met, 1 violated, 1 fail as known, 0 not judged"


@pytest.mark.parametrize("level", Level)
def test_a_listed_requirement_that_passes_is_red(reads: Callable[[str], Expectations], level: Level) -> None:
    repaired = passed(violation("DISTRO-LOAD-008", level=level))
    judged = reads("[DISTRO-LOAD-008]").judged(found(repaired))
    assert judged.verdict is Verdict.VIOLATES
    assert judged.findings[0].message.endswith("expected.toml, and passes: remove the entry")


@pytest.mark.parametrize("judgement", [Judgement.NOT_JUDGED, Judgement.NOT_APPLICABLE])
def test_a_listed_requirement_that_was_not_judged_stays_so(
    reads: Callable[[str], Expectations], judgement: Judgement
) -> None:
    judged = found(replace(violation("DISTRO-SYNC-001"), judgement=judgement))
    assert reads("[DISTRO-SYNC-001]").judged(judged) == judged


@pytest.mark.parametrize(
    ("observed", "judgement"),
    [
        (OVERWRITTEN, Judgement.KNOWN),
        ({**OVERWRITTEN, "published": None}, Judgement.VIOLATES),
        ({}, Judgement.VIOLATES),
    ],
    ids=["as the defect", "the client is gone", "nothing observed"],
)
def test_an_entry_with_a_defect_expects_its_symptom(
    reads: Callable[[str], Expectations], observed: dict[str, object], judgement: Judgement
) -> None:
    expected = reads("[DISTRO-NATIVE-001]\nbug = 'B01'")
    (judged,) = expected.judged(found(violation("DISTRO-NATIVE-001", **observed))).findings
    assert judged.judgement is judgement
    if judgement is Judgement.KNOWN:
        assert (judged.known, judged.link) == ("B01", "https://github.com/alibaba/nacos/issues/15857")
    else:
        assert "with the symptom of B01, which is absent" in judged.message


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[DISTRO-SYNC-999]", "there is no requirement 'DISTRO-SYNC-999'"),
        ("DISTRO-SYNC-001 = true", "DISTRO-SYNC-001 must be a table of texts"),
        ("[DISTRO-SYNC-001]\nseen = 3", "DISTRO-SYNC-001 must be a table of texts"),
        ("[DISTRO-SYNC-001]\nbugs = 'B01'", "there is no key 'DISTRO-SYNC-001.bugs'; keys are bug, seen"),
        ("[DISTRO-SYNC-001]\nbug = 'B01'", "DISTRO-SYNC-001 shows no defect 'B01'; it may show none: leave bug out"),
        ("[DISTRO-NATIVE-001]\nbug = 'B10'", "DISTRO-NATIVE-001 shows no defect 'B10'; it may show B01"),
        ("[DISTRO-SYNC-001", "expected.toml: "),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(reads: Callable[[str], Expectations], text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=r"--expect-failures .*expected\.toml") as refused:
        reads(text)
    assert problem in str(refused.value)


@pytest.mark.parametrize("target", ["embedded", "nacos:2.2.4"])
@pytest.mark.parametrize("option", ["--expect-failures", "--write-expected"])
@pytest.mark.parametrize("verb", [("test", "node"), ("gate",)])
def test_where_the_kit_knows_the_release_no_file_is_taken(
    target: str, option: str, verb: tuple[str, ...], tmp_path: Path
) -> None:
    done = CliRunner().invoke(app, [*verb, "--target", target, option, str(tmp_path / "expected.toml")])
    assert isinstance(done.exception, UsageError)
    assert f"are for process: and attach:, not for {target}" in str(done.exception)


def test_the_written_file_expects_the_failures(tmp_path: Path) -> None:
    path = tmp_path / "expected.toml"
    path.write_text("[DISTRO-LOAD-008]\nseen = 'kept: it is not asked this time'\n[DISTRO-BATCH-002]\n")
    judged = found(
        violation("DISTRO-NATIVE-001", **OVERWRITTEN),
        violation("DISTRO-SYNC-001", level=SHOULD),
        passed(violation("DISTRO-BATCH-002")),
    )
    Expectations.of("process:toy.toml", path, path, IDS).judged(judged)
    assert path.read_text("utf-8") == (
        "# Expected failures of process:toy.toml, which speaks nacos-2.2.4. Read each before you keep it.\n"
        '\n[DISTRO-LOAD-008]\nseen = "kept: it is not asked this time"\n'
        '\n[DISTRO-NATIVE-001]\nbug = "B01"\nseen = "expected \\"DISTRO-NATIVE-001\\"; not seen"\n'
        '\n[DISTRO-SYNC-001]\nseen = "expected \\"DISTRO-SYNC-001\\"; not seen"\n'
    )
    again = Expectations.of("process:toy.toml", path, None, IDS).judged(judged)
    assert [each.judgement for each in again.findings] == [Judgement.KNOWN, Judgement.KNOWN, Judgement.CONFORMS]


@pytest.mark.slow
@pytest.mark.wire
@pytest.mark.usefixtures("_installed")
def test_the_gate_takes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "expected.toml"
    path.write_text("[DISTRO-BATCH-002]\nbug = 'B18'\n")
    options = GateOptions(target=SERVE, budget=BUDGETS["quick"], seed=1, out=tmp_path, requirements=[IDS[1]])
    expecting = replace(options, expectations=Expectations.of(SERVE, path, None, IDS))
    verdicts = [node_stage(each, "nacos-2.2.4", lambda _: None).stage.verdict for each in (options, expecting)]
    assert verdicts == [Verdict.VIOLATES, Verdict.CONFORMS]


@pytest.mark.slow
@pytest.mark.wire
@pytest.mark.usefixtures("_installed")
def test_a_server_that_speaks_a_release_is_not_excused_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once without a file, once with what that wrote, and once where one of the listed failures is repaired."""
    monkeypatch.setattr("distro_conformance.cli.options.require_free_machine", lambda: None)  # none depends on time
    path = tmp_path / "expected.toml"
    options = [word for name in TIMELESS for word in ("--requirement", name)]
    command = ["test", "node", "--target", SERVE, *options, "--json"]
    first = CliRunner().invoke(app, [*command, "--write-expected", str(path)])
    assert first.exit_code == 1, first.output
    verdicts = {row["id"]: row["verdict"] for row in json.loads(first.stdout)["requirements"]}
    assert verdicts == dict(zip(TIMELESS, ("violates", "violates", "conforms"), strict=True))
    assert 'bug = "B12"' in path.read_text("utf-8")
    second = CliRunner().invoke(app, [*command, "--expect-failures", str(path)])
    assert second.exit_code == 0, second.output
    assert [row["known"] for row in json.loads(second.stdout)["requirements"]] == ["B12", "B18", None]
    path.write_text(path.read_text("utf-8") + "[DISTRO-HOLDER-004]\n", "utf-8")
    third = CliRunner().invoke(app, [*command, "--expect-failures", str(path)])
    assert third.exit_code == 1, third.output
