"""The verbs over traces as others' scripts use them: the fields of docs/schemas, exit codes, one line for a mistake."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal

import pytest
from programs import Call, Document

from distro_conformance.cli import check as check_verb
from distro_conformance.findings import Judgement
from distro_conformance.findings.finding import verdict_of
from distro_conformance.findings.traces import findings_of
from distro_conformance.language.text import parse
from distro_conformance.verdict import Verdict
from distro_spark.result import CheckResult, InvariantResult, Replay

LOGS = Path(__file__).parents[2] / "traces" / "tests" / "data" / "nacos-2.2.4"


@pytest.fixture(scope="module")
def imported(document: Document, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("imported")
    code, answer = document("import", "nacos-logs", str(LOGS), "--out", str(out))
    assert code == 0
    return out, answer


def test_import_counts_events_and_skipped_lines(imported: tuple[Path, dict[str, Any]]) -> None:
    _, answer = imported
    assert answer["schema"] == "distrocheck/import-nacos-logs/1"
    assert answer["events"] == 96
    assert answer["skipped"] == {"says nothing of replication": 4}
    assert answer["nodes"]["n1"] == "127.0.0.1:12868"


def test_compact_and_query_agree_about_the_events(
    document: Document, imported: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    code, compacted = document("compact", str(imported[0]), "--out", str(tmp_path))
    assert (code, compacted["events"], compacted["files"]) == (0, 96, 1)
    assert compacted["seconds"] >= 0
    code, asked = document("query", "SELECT count(*) AS n, max(revision) FROM events", str(tmp_path))
    assert (code, asked["columns"], asked["rows"]) == (0, ["n", "max(revision)"], [[96, 1]])


def test_output_is_not_cut_without_a_terminal(call: Call, imported: tuple[Path, dict[str, Any]]) -> None:
    names = ", ".join(f"'{letter * 60}' AS {letter}" for letter in "abc")
    head, row = call(
        "query", f"SELECT {names}, 'last' AS end_of_row FROM events LIMIT 1", str(imported[0])
    ).stdout.splitlines()
    assert head.split() == ["a", "b", "c", "end_of_row"]
    assert row.split() == ["a" * 60, "b" * 60, "c" * 60, "last"]


def test_export_writes_a_file_and_says_which(
    call: Call, document: Document, imported: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    out = tmp_path / "run.json"
    code, exported = document("export", str(imported[0]), "--to", "perfetto", "--out", str(out))
    assert (code, exported["events"], exported["path"]) == (0, 96, str(out))
    assert json.loads(out.read_text())["traceEvents"]
    printed = call("export", str(imported[0]), "--to", "mermaid", "--client", "10.0.1.1:80#true", "--without-verify")
    assert printed.stdout.startswith("sequenceDiagram\n")
    assert "N1-)N0: CHANGE 10.0.1.1:80#35;true" in printed.stdout
    refused = call("export", str(imported[0]), "--to", "mermaid", "--client", "c99")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert re.search(r"no client c99 in the run nacos-logs; there are \S+, ", refused.stderr)


def test_a_scenario_calls_servers_and_clients_by_names_that_it_can_say(
    call: Call, imported: tuple[Path, dict[str, Any]]
) -> None:
    """Clients of the HTTP API are left out: they live by beats, which logs do not show."""
    text = call("export", str(imported[0]), "--to", "scenario").stdout
    scenario = parse(text)
    assert (scenario.profile, scenario.nodes) == ("nacos-2.2.4", ("a", "b", "c"))
    assert "a is 127.0.0.1:12848" in scenario.comment
    assert "#true" not in text


def test_validate_leaves_events_open_that_logs_do_not_show(
    document: Document, imported: tuple[Path, dict[str, Any]]
) -> None:
    code, judged = document("validate", str(imported[0]))
    assert (code, judged["accepted"], judged["events"], judged["rejection"]) == (3, True, 96, None)
    assert judged["undecided"] > 0
    assert judged["verdict"] == "inconclusive"


def test_validate_counts_why_it_leaves_rows_open(call: Call, imported: tuple[Path, dict[str, Any]]) -> None:
    printed = call("validate", str(imported[0])).stdout
    counts = [int(line.split()[0]) for line in printed.splitlines() if " not decided: " in line]
    assert f"{sum(counts)} not decided, " in printed
    assert "not decided: of a client by ip:port" in printed


def test_check_names_the_copy_of_logs_its_node_its_time_and_what_was_not_measured(
    call: Call, imported: tuple[Path, dict[str, Any]]
) -> None:
    found = call("check", str(imported[0]), "--invariant", "INV-REV", "--responsibility")
    assert found.returncode == 0
    place = r"127\.0\.0\.1:12848 at 47536 ms \(seq \d+\), 2026-11-21 02:52:07\.555\+00:00, after message m\d+\n"
    assert "INV-REV: 2 known, B10" in found.stdout
    assert re.search(rf"the earliest: run nacos-logs, 10\.0\.1\.1:80#true: replica_applied of {place}", found.stdout)
    assert "not measured: which members claimed 1 further clients" in found.stdout
    assert "10.0.1.1:80#true was claimed" not in found.stdout


def test_an_overwritten_log_row_is_no_known_failure(
    document: Document, imported: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    """Other content under a revision, by a message that came while no call was seen to end."""
    rows = [json.loads(line) for line in (imported[0] / "nacos-logs.ndjson").read_text().splitlines()]
    copies = [row for row in rows[1:] if (row["node"], row["kind"]) == ("127.0.0.1:12888", "replica_applied")]
    # the logs go on for more than a second after this copy, else it would not be judged
    last = [row for row in copies if row["client"] == "10.0.1.1:80#true" and row["at_ms"] < 48_000][-1]
    last["digest"] = "deadbeefdeadbeef"
    (tmp_path / "wrong.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, found = document("check", str(tmp_path), "--invariant", "INV-REV")
    [new] = [each for each in found["violations"] if each["known"] is None]
    assert (code, new["node"], new["after"]) == (1, "127.0.0.1:12888", last["message"])


@pytest.mark.parametrize(
    ("arguments", "exit_code", "problem"),
    [
        (("import", "nacos-logs", "nowhere"), 2, "there is no directory of logs at nowhere"),
        (("import", "nacos-logs", str(LOGS), "--zone", "Moon"), 2, "there is no time zone 'Moon'"),
        (("export", str(LOGS), "--to", "word"), 2, "no format 'word'; known: itf, shiviz"),
        (("compact", str(LOGS), "--out", "x"), 2, "no *.ndjson below"),
        (("query", "SELECT 1", str(LOGS)), 2, "no *.ndjson and no *.parquet below"),
        (("simulate", "--duration-s", "5", "--out", "/proc/x"), 2, "cannot be written"),
        (("audit", "--member", "127.0.0.1:1"), 2, "name at least two members"),
        (
            ("audit", "--member", "here", "--member", "there"),
            2,
            "--member here: 'here' has no usable port; write HOST:PORT",
        ),
        (("audit", "--member", "127.0.0.1:1", "--member", "127.0.0.1:2"), 4, "fewer than two members can be read"),
    ],
)
def test_a_mistake_is_one_line(
    call: Call, arguments: tuple[str, ...], exit_code: int, problem: str, tmp_path: Path
) -> None:
    ran = call(*arguments)
    assert ran.returncode == exit_code, ran.stderr
    assert problem in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1


def result_of(judged: InvariantResult, verdict: Literal["violates", "conforms", "inconclusive"]) -> CheckResult:
    """Of a check that lists none of its violations."""
    return CheckResult(
        verdict=verdict,
        reasons=(),
        runs=1,
        runs_with_checkpoint=1,
        events=9,
        quarantined=0,
        quarantine=(),
        cuts=(),
        missing=0,
        invariants=(judged,),
        violations=(),
        violations_left_out=judged.violations + judged.known + judged.unexplained,
        doubled=0,
        convergence=None,
        changes=(),
        changes_left_out=0,
        seconds=0.1,
    )


@pytest.mark.parametrize(
    ("judged", "expected", "verdict"),
    [
        (InvariantResult("INV-REV", "A sentence.", "known", 0, 87, 0.1), {Judgement.KNOWN: 87}, Verdict.CONFORMS),
        (
            InvariantResult("INV-REV", "A sentence.", "not-judged", 0, 1000, 0.1, unexplained=3),
            {Judgement.KNOWN: 1000, Judgement.NOT_JUDGED: 3},
            Verdict.INCONCLUSIVE,
        ),
        (
            InvariantResult("INV-REV", "A sentence.", "violates", 2, 998, 0.1, unexplained=5),
            {Judgement.VIOLATES: 2, Judgement.KNOWN: 998, Judgement.NOT_JUDGED: 5},
            Verdict.VIOLATES,
        ),
        (InvariantResult("INV-REV", "A sentence.", "not-judged", 0, 0, 0.1), {Judgement.NOT_JUDGED: 1}, "inconclusive"),
    ],
)
def test_a_finding_not_compared_with_the_known_failures_is_neither_new_nor_known(
    judged: InvariantResult, expected: dict[Judgement, int], verdict: Verdict
) -> None:
    """1,003 clients with a known defect, of which there was room to explain 1,000: no violation, and no pass."""
    findings = findings_of(result_of(judged, "inconclusive"), "traces")
    assert {each.judgement: each.times for each in findings} == expected
    assert verdict_of(findings) == verdict


def test_known_findings_that_are_not_listed_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    check_verb._print(result_of(InvariantResult("INV-REV", "A sentence.", "known", 0, 87, 0.1, 1, 0), "conforms"), [])
    assert "INV-REV: 87 more are known and only counted" in capsys.readouterr().out.replace("\n", " ")


def test_an_invariant_names_how_many_nodes_it_did_not_judge() -> None:
    (line,) = check_verb._lines(
        result_of(InvariantResult("INV-REV", "A sentence.", "conforms", 0, 0, 0.1, 0, 2), "conforms")
    )
    assert line.below == ["not judged of 2 nodes, of which not enough was recorded"]


def test_rows_that_the_model_could_not_decide_are_no_pass() -> None:
    (line,) = check_verb._lines_by_model(Replay(rejected=0, undecided=3, rejections=(), rejections_left_out=0))
    assert line.verdict == "not-judged"
