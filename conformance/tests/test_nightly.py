"""Jobs of `make nightly`: the due ones, their reports, and the growth that a soak reports."""

from __future__ import annotations

import gc
import json
import os
import runpy
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import alarms
import nightly
import pytest
import results
import soak
import track_record
from programs import Call, executed

from distro_conformance.verdict import UsageError
from distro_spark.result import CheckResult, EventReference, Rejected, Replay

DATED = {"date": "2026-01-02", "source": "abc1234"}
DONE = {**DATED, "code": 1, "seconds": 61.2, "headline": "embedded: 7 met | 1 violated"}


def test_a_job_that_has_ended_on_this_commit_is_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "results.json"
    ran: list[str] = []
    monkeypatch.setattr(nightly, "TABLE", table)

    def run(job: nightly.Job) -> results.Row:
        ran.append(job.name)
        return {**DONE, "code": 0}

    monkeypatch.setattr(nightly, "run", run)
    monkeypatch.setattr(results, "commit", lambda: "abc1234")
    results.keep(table, "sdks", DONE)

    def called(*options: str) -> int:
        monkeypatch.setattr("sys.argv", ["nightly", "--only", "sdks", "--only", "tours", *options])
        return nightly.main()

    assert (called(), ran) == (1, ["tours"])
    assert (called("--again", "sdks"), ran) == (0, ["tours", "sdks"])
    monkeypatch.setattr(results, "commit", lambda: "def5678")
    assert (called(), ran) == (0, ["tours", "sdks", "tours", "sdks"])
    assert "| sdks | the official SDKs on reference nodes | conforms |" in capsys.readouterr().out


def test_the_report_has_a_row_for_every_job_also_for_those_that_never_ran() -> None:
    report = nightly.report({"sdks": DONE})
    row = "| violates | embedded: 7 met / 1 violated | 61 s | 2026-01-02 | abc1234 |"
    assert f"| sdks | the official SDKs on reference nodes {row}" in report
    assert report.count("| not run |") == len(nightly.JOBS) - 1


def test_a_kept_row_is_read_back_and_replaced_by_name(tmp_path: Path) -> None:
    table = tmp_path / "new" / "results.json"
    assert results.kept(table) == {}
    results.keep(table, "tours", DONE)
    results.keep(table, "sdks", DONE)
    results.keep(table, "tours", DATED)
    assert results.kept(table) == {"sdks": DONE, "tours": DATED}


@pytest.mark.parametrize("job", {job.words[:2]: job for job in nightly.JOBS}.values(), ids=lambda job: job.name)
def test_a_job_can_be_run_as_it_stands(job: nightly.Job, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--help` comes last, so an argument before it that is refused is reported first."""
    program, *arguments = job.words
    if program == "make":
        assert executed(program, "--dry-run", *arguments, cwd=results.ROOT).returncode == 0
    elif program.endswith(".py"):
        monkeypatch.setattr("sys.argv", [*job.words, "--help"])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(results.ROOT / program), run_name="__main__")
        assert ended.value.code == 0
    else:
        ran = call(*job.words, "--help")
        assert ran.returncode == 0, ran.stderr


def test_a_job_that_exceeds_its_budget_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow.py").write_text("import time; time.sleep(60)")
    monkeypatch.setattr(results, "ROOT", tmp_path)
    found = nightly.run(nightly.Job("slow", "", ("slow.py",), 0.01))
    assert (nightly.verdict(found), found["headline"]) == ("over its budget", "not done after 0 min")


def test_a_job_without_a_document_is_reported_by_its_last_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "breaks.py").write_text("raise SystemExit('no such thing')")
    monkeypatch.setattr(results, "ROOT", tmp_path)
    found = nightly.run(nightly.Job("breaks", "", ("breaks.py",), 1))
    assert (nightly.verdict(found), found["headline"]) == ("violates", "no such thing")


@pytest.mark.parametrize(
    ("document", "line"),
    [
        ({"headline": "embedded: 58 met, 0 not judged"}, "embedded: 58 met, 0 not judged"),
        (
            {"score": 0.5, "mutants": [{"id": "B01", "killed": True}, {"id": "B02", "killed": False}]},
            "50% of 2 killed; alive: B02",
        ),
        ({"error": "no Java found", "exit_code": 4}, "no Java found"),
        (
            {"bench": "soak", "figures": {"rounds": 3, "conform": 3, "grows": {}}},
            "3 of 3 rounds conform; growing: nothing",
        ),
    ],
)
def test_one_line_sums_up_a_job(document: dict[str, object], line: str) -> None:
    assert nightly.headline_of(json.dumps(document)).startswith(line)


def samples(*descriptors: int) -> list[dict[str, float]]:
    return [{**dict.fromkeys(soak.ROOM, 10.0), "descriptors": float(count)} for count in descriptors]


def test_growth_in_each_round_is_reported_and_fluctuation_is_not() -> None:
    assert soak.growing(samples(50, 60, 70, 80, 90, 100, 110)) == {"descriptors": 30.0}
    assert soak.growing(samples(50, *range(60, 90))) == {"descriptors": 15.0}, "little by little"
    assert soak.growing(samples(50, 90, 91, 90, 99, 91, 90)) == {}
    assert soak.growing(samples(50, 500, 501, 502, 501, 500, 502)) == {}, "the first round loads what stays"
    assert soak.growing(samples(50, 90, 91, 92, 90, 300, 91)) == {}, "one large round is no growth"
    assert soak.growing(samples(50, 90, 200)) == {}, "three rounds say nothing"


LEAKS: dict[str, Callable[[ExitStack], object]] = {
    "rss_mb": lambda _: bytearray(os.urandom(1 << 20) * 20),
    "descriptors": lambda kept: [kept.callback(os.close, os.open(os.devnull, os.O_RDONLY)) for _ in range(5)],
    "threads": lambda kept: [idle(kept) for _ in range(3)],
    "children": lambda kept: kept.enter_context(killed(subprocess.Popen(["sleep", "60"]))),
    "temporary_files": lambda _: tempfile.mkdtemp(),
}


def idle(kept: ExitStack) -> None:
    over = threading.Event()
    threading.Thread(target=over.wait, daemon=True).start()
    kept.callback(over.set)


@contextmanager
def killed(program: subprocess.Popen[bytes]) -> Iterator[None]:
    with program:
        yield
        program.kill()


@pytest.mark.parametrize("what", soak.ROOM)
def test_a_soak_notices_what_each_round_leaves_behind(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as kept:
        held = []

        def leaves(*_: object) -> tuple[str, float, list[str]]:
            held.append(LEAKS[what](kept))
            return "conforms", 0.0, []

        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        monkeypatch.setattr(soak, "one_round", leaves)
        monkeypatch.setattr(gc, "collect", list)  # what else there is in this process takes long to look through
        _, seen = soak.soak("embedded", 60, 7)
        assert set(soak.growing(seen)) == {what}


def test_profiles_take_turns_with_seeds_of_their_own() -> None:
    """Those of equal rules would have the same runs."""
    of_profiles, seeds = zip(*alarms.batches(100, ["strict", "nacos-2.2.4"], 7), strict=True)
    assert of_profiles == ("strict", "nacos-2.2.4", "strict", "nacos-2.2.4")
    assert len({*seeds}) == 4
    assert seeds[2] - seeds[0] == alarms.BATCH_RUNS
    assert next(alarms.batches(100, ["strict"], 7)) == ("strict", seeds[0])


def test_kept_rows_of_the_same_source_are_not_found_again_and_nothing_starts_after_the_time(tmp_path: Path) -> None:
    table = tmp_path / "kept" / "table.json"
    work = [(name, lambda name=name: {"name": name}) for name in "ab"]
    one, other = ({"source": "new", "name": name} for name in "ab")
    results.keep(table, "a", {"source": "old", "name": "before"})
    assert results.carried_out(table, work, "new", str, seconds=-1) == ([], 2)
    results.keep(table, "a", one)
    assert results.carried_out(table, work, "new", str, seconds=-1) == ([one], 1)
    assert results.carried_out(table, work, "new", str) == ([one, other], 0)
    assert results.kept(table) == {"a": one, "b": other}


@pytest.mark.parametrize(
    ("news", "not_reported", "left", "code"), [(["a says so"], 0, 0, 1), ([], 0, 2, 3), ([], 4, 0, 3), ([], 0, 0, 0)]
)
def test_news_are_a_violation_and_batches_that_are_left_leave_it_open(
    news: list[str], not_reported: int, left: int, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    line = {"profile": "strict", "runs": 50, "events": 7, "news": news, "not_reported": not_reported, "known": {}}
    assert alarms.report([line], left, as_json=True) == code
    headline = json.loads(capsys.readouterr().out)["headline"]
    counts = f"{len(news)} news, {not_reported} not reported; {left} batches left"
    assert headline == f"at least 50 runs of each of 1 profiles: {counts}"


def test_unknown_findings_and_those_that_the_model_rejects_are_news() -> None:
    violations = [
        SimpleNamespace(run="r", invariant="INV-REV", message="two contents", known=known) for known in (None, "B10")
    ]
    event = EventReference("b", 7, 100, "replica_applied", "m1")
    replay = Replay(rejected=3, undecided=0, rejections=(Rejected("r", "c1", event, ()),), rejections_left_out=2)
    found = SimpleNamespace(violations=violations, invariants=[SimpleNamespace(violations=4)], replay=replay)
    rejected = "r: model: no transition is replica_applied of b at 100 ms (seq 7)"
    assert alarms.unknown_violations(cast(CheckResult, found)) == (["r: INV-REV: two contents", rejected], 3 + 2)


@pytest.mark.parametrize(
    ("by", "release", "answer", "is_surprising"),
    [
        ("DISTRO-REVISION-001", "2.2.4", "seen", False),
        ("DISTRO-REVISION-001", "2.2.4", "not seen", True),
        ("DISTRO-REVISION-001", "2.3.2", "not seen", False),
        ("DISTRO-REVISION-001", "2.3.2", "fails otherwise", True),
        ("DISTRO-RETRY-006", "2.2.4", "not seen", False),  # it needs a race
        ("scenarios/b24-delete-swallowed-2.2.4.scenario", "2.2.4", "not seen", True),
        ("scenarios/b24-delete-swallowed-2.2.4.scenario", "2.1.1", "not seen", False),
        ("DISTRO-REVISION-001", "2.2.4", "not judged", False),
    ],
)
def test_an_answer_of_a_real_server_is_held_against_the_list(
    by: str, release: str, answer: str, is_surprising: bool
) -> None:
    assert track_record.surprise(by, release, answer) is is_surprising


def test_a_distribution_is_asked_as_the_release_of_its_jars(tmp_path: Path) -> None:
    (tmp_path / "nacos-naming-3.1.0-SNAPSHOT.jar").touch()
    assert track_record.targets(None, [str(tmp_path)]) == {"3.1.0": f"nacos:{tmp_path}"}
    assert list(track_record.targets(["2.2.4"], [str(tmp_path)])) == ["2.2.4", "3.1.0"]
    assert track_record.targets(None, None)["2.0.4"] == "nacos:2.0.4"
    with pytest.raises(UsageError, match="no directory with the jars of one Nacos release"):
        track_record.targets(None, [str(tmp_path / "nothing")])
