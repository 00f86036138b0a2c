"""What is longer than CI allows: which jobs are due, what the table says of them, when a soak says that it grows."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import alarms
import hours
import matrix
import nightly
import pytest
import recordings
import repeats
import results
import soak
import track_record
from ledger import gone_on, lines_of
from programs import Call, executed

from distro_conformance.cli.verbs import COMMAND
from distro_model.actions import Connect
from distro_spark.result import CheckResult, EventReference, Rejected, Replay

DATED = {"date": "2026-01-02", "commit": "abc1234"}
DONE = {**DATED, "code": 1, "seconds": 61.2, "headline": "embedded: 7 met | 1 violated"}


@pytest.fixture(autouse=True)
def _kept_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What these tests keep, and its page."""
    monkeypatch.setattr(results, "PLACE", tmp_path / "results")
    monkeypatch.setattr(nightly, "PAGE", tmp_path / "nightly.md")


def test_a_job_that_has_ended_on_this_commit_is_not_run_again() -> None:
    jobs = [job for job in nightly.JOBS if job.name in ("sdks", "tours")]
    assert [job.name for job in nightly.due(jobs, {"sdks": DONE}, "abc1234", [])] == ["tours"]
    assert [job.name for job in nightly.due(jobs, {"sdks": DONE}, "def5678", [])] == ["tours", "sdks"]
    assert [job.name for job in nightly.due(jobs, {"sdks": DONE}, "abc1234", ["sdks"])] == ["tours", "sdks"]


def test_the_table_has_a_row_for_every_job_with_its_date_or_that_it_never_ran() -> None:
    nightly.keep("sdks", DONE)
    page = nightly.PAGE.read_text("utf-8")
    assert page == nightly.page()
    row = "| violates | embedded: 7 met / 1 violated | 61 s | 2026-01-02 | abc1234 |"
    assert f"| sdks | the official SDKs on reference nodes {row}" in page
    assert page.count("| not run |") == len(nightly.JOBS) - 1


@pytest.mark.parametrize("job", {job.words[:2]: job for job in nightly.JOBS}.values(), ids=lambda job: job.name)
def test_a_job_can_be_run_as_it_stands(job: nightly.Job, call: Call) -> None:
    """`--help` comes last: what is wrong before it is told first."""
    program, *arguments = job.command
    if Path(program).name == COMMAND:
        ran = call(*arguments, "--help")
    else:
        ran = executed(program, *arguments, "--help", cwd=results.ROOT)
    assert ran.returncode == 0, ran.stderr


def test_a_job_that_is_over_its_budget_is_ended_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow.py").write_text("import time; time.sleep(60)")
    monkeypatch.setattr(results, "ROOT", tmp_path)
    found = nightly.run(nightly.Job("slow", "", ("slow.py",), 0.01), "abc1234")
    assert (nightly.verdict(found), found["headline"]) == ("over its budget", "not done after 0 min")


def test_a_job_that_prints_no_document_is_told_by_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "breaks.py").write_text("raise SystemExit('no such thing')")
    monkeypatch.setattr(results, "ROOT", tmp_path)
    found = nightly.run(nightly.Job("breaks", "", ("breaks.py",), 1), "abc1234")
    assert (nightly.verdict(found), found["headline"]) == ("violates", "no such thing")


@pytest.mark.parametrize(
    ("document", "line"),
    [
        ({"headline": "embedded: 58 met, 0 not judged"}, "embedded: 58 met, 0 not judged"),
        ({"score": 0.5, "mutants": [{"id": "B01", "killed": True}, {"id": "B02", "killed": False}]}, "50% of 2 killed"),
        ({"error": "no Java found", "exit_code": 4}, "no Java found"),
        (
            {"bench": "soak", "figures": {"rounds": 3, "conform": 3, "grows": {}}},
            "3 of 3 rounds conform; growing: nothing",
        ),
    ],
)
def test_one_line_says_what_a_job_came_to(document: dict[str, object], line: str) -> None:
    assert nightly.headline_of(json.dumps(document)).startswith(line)


def samples(*descriptors: int) -> list[dict[str, float]]:
    return [{**dict.fromkeys(soak.ROOM, 10.0), "descriptors": float(count)} for count in descriptors]


def test_what_grows_round_by_round_is_told_and_what_moves_is_not() -> None:
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


def test_a_kill_matrix_has_a_row_for_every_mutant_and_says_who_lives_and_who_was_not_asked() -> None:
    dead = {
        "killed": True,
        "killed_by": ["DISTRO-HOLDER-001"],
        "seconds": 61.25,
        "steps": None,
        "fired": 30,
        "reason": "",
    }
    alive = {**dead, "killed": False, "killed_by": [], "seconds": 90.0, "fired": 0, "reason": "its rules never fired"}
    rows = {"B02": {**dead, **DATED}, "B07": {**alive, **DATED}}
    page = matrix.page("real", {"nacos:2.2.4": rows, "nacos:2.3.2": {}}, ("B02", "B07", "B31"))
    assert "2 of 3 judged, 1 killed; median 75.6 s, longest 90.0 s" in page
    assert "| B02 | DISTRO-HOLDER-001 | 61.2 | 30 | 2026-01-02 | abc1234 |" in page
    assert "| B07 | **its rules never fired** | 90.0 | 0 | 2026-01-02 | abc1234 |" in page
    assert page.count("| B31 | not run |") == 2
    assert "Not run; 3 mutants." in page


def test_what_was_found_is_kept_and_taken_up_again() -> None:
    results.keep(matrix.table_of("real", "nacos:2.2.4"), "B07", DONE)
    results.keep(matrix.table_of("real", "nacos:2.2.4"), "B02", DATED)
    assert results.kept(matrix.table_of("real", "nacos:2.2.4")) == {"B02": DATED, "B07": DONE}
    assert results.kept(matrix.table_of("real", "nacos:2.3.2")) == {}


def test_a_batch_of_runs_counts_for_the_sources_that_it_was_made_with_and_when_its_line_is_whole(
    tmp_path: Path,
) -> None:
    ledger = tmp_path / "alarms.ndjson"
    lines = [{"source": source, "profile": "strict", "seed": seed} for source, seed in (("old", 0), ("new", 50))]
    ledger.write_text("\n".join(map(json.dumps, lines)) + '\n{"source": "new", "prof')
    assert [(line["profile"], line["seed"]) for line in lines_of(ledger, "source", "new")] == [("strict", 50)]
    second = 7 + alarms.BATCH_RUNS
    assert list(alarms.batches(200, ["strict", "nacos-2.2.4"], 7))[1:3] == [("nacos-2.2.4", 7), ("strict", second)]


def test_what_is_in_the_ledger_is_not_found_again_and_nothing_is_begun_when_the_time_is_over(tmp_path: Path) -> None:
    ledger = tmp_path / "kept" / "ledger.ndjson"
    work = [(name, lambda name=name: {"source": "new", "name": name}) for name in "ab"]
    one, other = ({"source": "new", "name": name} for name in "ab")
    assert gone_on(ledger, {"a": one}, work, -1, str) == ([one], 1)
    assert gone_on(ledger, {"a": one}, work, None, str) == ([one, other], 0)
    assert list(lines_of(ledger, "source", "new")) == [other]


@pytest.mark.parametrize(
    ("news", "not_told", "left", "code"), [(["a says so"], 0, 0, 1), ([], 0, 2, 3), ([], 4, 0, 3), ([], 0, 0, 0)]
)
def test_news_are_a_violation_and_batches_that_are_left_leave_it_open(
    news: list[str], not_told: int, left: int, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    line = {"profile": "strict", "runs": 50, "events": 7, "news": news, "not_told": not_told, "known": {}}
    assert alarms.told([line], left, as_json=True) == code
    headline = json.loads(capsys.readouterr().out)["headline"]
    counts = f"{len(news)} news, {not_told} not told; {left} batches left"
    assert headline == f"at least 50 runs of each of 1 profiles: {counts}"


def test_what_is_not_known_and_what_the_model_rejects_is_news() -> None:
    violations = [
        SimpleNamespace(run="r", invariant="INV-REV", message="two contents", known=known) for known in (None, "B10")
    ]
    event = EventReference("b", 7, 100, "replica_applied", "m1")
    replay = Replay(rejected=3, undecided=0, rejections=(Rejected("r", "c1", event, ()),), rejections_left_out=2)
    found = SimpleNamespace(violations=violations, invariants=[SimpleNamespace(violations=4)], replay=replay)
    rejected = "r: model: no transition is replica_applied of b at 100 ms (seq 7)"
    assert alarms.news_of(cast(CheckResult, found)) == (["r: INV-REV: two contents", rejected], 3 + 2)


def test_a_recording_that_is_there_is_not_made_again_and_a_release_is_not_done_before_another_begins(
    tmp_path: Path,
) -> None:
    (tmp_path / "nacos-2.2.4-000.ndjson").touch()
    (tmp_path / "nacos-2.2.4-001.ndjson").touch()
    (tmp_path / ".part").mkdir()
    wanted = recordings.wanted(tmp_path, ["2.0.4", "2.2.4"], range(3))
    assert wanted == [("2.0.4", 0), ("2.0.4", 1), ("2.0.4", 2), ("2.2.4", 2)]
    left = recordings.wanted(tmp_path, ["2.0.4", "2.2.4"], range(3), {"nacos-2.0.4-000": {}, "nacos-2.2.4-000": {}})
    assert left == [("2.0.4", 1), ("2.0.4", 2), ("2.2.4", 2)]


def test_what_another_machine_has_judged_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results.keep("recordings", "nacos-2.2.4-000", {"news": [], "known": {"INV-REV B10": 2}})
    there, once = tmp_path / "there", ["--release", "2.2.4", "--runs", "1", "--place", str(tmp_path / "there")]
    assert recordings.main([*once, "--keep"]) == 0
    assert capsys.readouterr().out == "1 recordings: 0 news; known: INV-REV B10 in 1; 0 left\n"
    assert list(there.iterdir()) == []
    assert recordings.main([*once, "--seconds", "-1"]) == 3, "without --keep it is another count"


def test_what_servers_live_through_is_drawn_from_the_seed_and_only_some_wait_for_leases() -> None:
    one, other = recordings.drawn("2.2.4", 1), recordings.drawn("2.2.4", 2)
    assert one == recordings.drawn("2.2.4", 1) != other
    assert any(isinstance(action, Connect) for _, action in one.actions)
    assert one.actions[-1][0] + one.calm_ms < 90_000
    assert recordings.drawn("2.2.4", 0).calm_ms > 180_000


@pytest.mark.parametrize(("news", "left", "code"), [(["INV-ACK: a says so"], 0, 1), ([], 2, 3), ([], 0, 0)])
def test_news_of_a_recording_are_a_violation(
    news: list[str], left: int, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [{"run": "r1", "news": news, "known": {"INV-CONV B24": 7}}, {"run": "r2", "news": [], "known": {}}]
    assert recordings.told(lines, left, as_json=True) == code
    headline = json.loads(capsys.readouterr().out)["headline"]
    assert headline == f"2 recordings: {len(news)} news; known: INV-CONV B24 in 1; {left} left"


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


def a_run(target: str, seed: int, load: float, code: int = 0) -> dict[str, object]:
    dated = {"commit": "abc", "date": f"2026-11-{seed:02}", "seconds": 200, "headline": f"{target}: it says"}
    return {"target": target, "seed": seed, "load_per_core": load, "code": code, "why": [], **dated}


def test_half_of_the_repeated_runs_are_on_a_busy_machine_and_each_target_gets_its_first_first() -> None:
    rows = [a_run("nacos:2.2.4", 1, 0.4), a_run("nacos:2.2.4", 2, 2.5), a_run("nacos:2.2.4", 3, 3.0)]
    rows.append(a_run("nacos:2.2.4", 4, 0.4, code=repeats.OPEN))
    assert repeats.left(rows, {"nacos:2.2.4": 4, "nacos:2.0.4": 2}) == [
        ("nacos:2.0.4", False),
        ("nacos:2.0.4", True),
        ("nacos:2.2.4", False),
    ]


def test_a_run_beside_nothing_is_at_leisure_however_busy_its_own_servers_are() -> None:
    rows = [{**a_run("nacos:2.2.4", 1, 4.4), "busy": False}, {**a_run("nacos:2.2.4", 2, 1.9), "busy": True}]
    assert [repeats.is_busy(row) for row in rows] == [False, True]


def test_a_run_at_leisure_waits_until_the_one_before_no_longer_counts() -> None:
    loads = iter((1_000.0, 0.1))
    assert repeats.is_calm(1, lambda: next(loads), look_s=0)
    assert not repeats.is_calm(0, lambda: 1_000.0, look_s=0)


def test_the_table_of_repeated_runs_tells_of_each_that_does_not_conform() -> None:
    for row in (a_run("nacos:2.2.4", 1, 0.4), a_run("nacos:2.2.4", 2, 2.5, code=1), a_run("nacos:2.2.4", 3, 0.1)):
        results.keep(repeats.TABLE, f"{row['target']} {row['seed']}", row)
    page = repeats.page()
    assert "| nacos:2.2.4 | 2 of 2 | 0 of 1 | 2026-11-01 to 2026-11-03 |" in page
    assert "* nacos:2.2.4, seed 2, load 2.5, abc: nacos:2.2.4: it says" in page


def test_runs_before_the_kit_was_mended_do_not_count_and_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    results.keep(repeats.TABLE, "nacos:2.2.4 2", a_run("nacos:2.2.4", 2, 2.5, code=1))
    assert repeats.main(["--anew", "--json"]) == 3
    assert json.loads(capsys.readouterr().out) == {
        "headline": "0 of 0 runs conform, 0 stay open; 44 left",
        "wrong": [],
    }
    results.keep(repeats.TABLE, "nacos:2.2.4 3", a_run("nacos:2.2.4", 3, 0.1))
    now, before = repeats.page().split("## Before the kit was last mended")
    assert "| nacos:2.2.4 | 1 of 1 | 0 of 0 | 2026-11-03 to 2026-11-03 |" in now
    assert "| nacos:2.2.4 | 0 of 0 | 0 of 1 | 2026-11-02 to 2026-11-02 |" in before
    assert "* nacos:2.2.4, seed 2, load 2.5, abc: nacos:2.2.4: it says" in before


@pytest.mark.parametrize(("code", "left", "expected"), [(1, 0, 1), (0, 2, 3), (3, 2, 3), (0, 0, 0)])
def test_a_run_that_violates_fails_the_job(code: int, left: int, expected: int) -> None:
    assert repeats.told([a_run("nacos:2.2.4", 1, 0.4, code)], left, as_json=True) == expected


def test_one_run_is_kept_with_what_the_machine_had_to_do() -> None:
    row = repeats.once("no-such-target", "quick")
    assert (row["target"], row["code"]) == ("no-such-target", 2)
    assert "no-such-target" in row["headline"]
    assert row["load_per_core"] > 0


def a_part(kind: str, seed: int, seconds: float, code: int = 0, decided: str = "") -> dict[str, object]:
    found = "a: it sends `CHANGE`\n  nearest 1" if code else ""
    counted = {"seconds": seconds, "steps": 100, "runs": 24, "code": code, "found": found, "decided": decided}
    return {"kind": kind, "target": "nacos:2.2.4", "seed": seed, "commit": "abc", "date": "2026-11-24", **counted}


def test_what_was_searched_for_the_shortest_time_is_searched_next_and_nothing_twice_at_a_time() -> None:
    machine, walks = ("machine", "nacos:2.2.4"), ("walks", "nacos:2.2.4")
    rows = [a_part("machine", 1, 150), a_part("walks", 2, 300)]
    assert hours.due(rows, (walks, machine)) == machine
    assert hours.due(rows, (walks, machine), [machine]) == walks
    assert hours.due([*rows, a_part("machine", 3, 3_450)], (walks, machine), [walks]) is None


def test_the_hours_add_up_and_each_finding_says_what_it_was() -> None:
    for row in (a_part("machine", 1, 150), a_part("machine", 2, 90, code=1), a_part("walks", 2, 300)):
        results.keep(hours.TABLE, hours.key_of(row), row)
    page = hours.page()
    assert "| machine | nacos:2.2.4 | 4 | 2 | 48 | 200 | 1 | 2026-11-24 to 2026-11-24 |" in page
    assert "* machine nacos:2.2.4 2, abc: `a: it sends 'CHANGE' nearest 1`\n\n    **not decided yet**\n" in page
    results.keep(hours.TABLE, "walks nacos:2.2.4 4", {**a_part("walks", 4, 300), "known": ["B24"]})
    assert "* nacos:2.2.4: B24, which is listed, in 1 part\n" in hours.page()
    assert hours.main(["--decide", "machine nacos:2.2.4 2", "a false alarm, mended"]) == 3, "minutes are left"
    assert "    a false alarm, mended\n" in hours.page()
    with pytest.raises(SystemExit):
        hours.main(["--decide", "machine nacos:2.2.4 7", "nothing"])


@pytest.mark.parametrize(
    ("seconds", "code", "decided", "expected"),
    [(3_600, 0, "", 0), (60, 0, "", 3), (3_600, 1, "", 1), (3_600, 1, "open: not seen again", 1), (3_600, 1, "B05", 0)],
)
def test_a_finding_that_nobody_has_read_fails_the_job(seconds: float, code: int, decided: str, expected: int) -> None:
    rows = [a_part("machine", 1, seconds, code, decided)]
    assert hours.told(rows, [("machine", "nacos:2.2.4")], as_json=True) == expected


def test_a_part_that_cannot_be_searched_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(hours.WORDS, "machine", ("test", "node", "--no-such-option"))
    row = hours.once(("machine", "nacos:2.2.4"))
    assert (row["code"], row["seconds"]) == (2, 0)
    assert "no-such-option" in row["found"]


def test_what_the_parts_of_a_search_met_adds_up_and_what_none_met_is_named() -> None:
    hours.keep_coverage("walks", {"actions": {"cut": 2, "pause": 0, "gone": 1}})
    hours.keep_coverage("walks", {"actions": {"cut": 1, "pause": 0, "move": 1}})
    assert results.kept(hours.COVERAGE) == {"walks: actions": {"cut": 3, "pause": 0, "move": 1}}
    assert "* walks: actions: 2 of 3; never: pause\n" in hours.page()


def test_a_search_that_cannot_begin_is_tried_again_but_not_for_ever_and_kept_in_no_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hours, "once", lambda search: {**a_part(search[0], 7, 0, code=4), "coverage": {}})
    assert len(list(hours.run([], [("machine", "nacos:2.2.4")], 1, None))) == hours.REFUSED_MAX
    assert not results.PLACE.exists()


def test_a_gate_that_does_not_conform_is_kept_with_what_it_found() -> None:
    stage = {"name": "node", "verdict": "violates", "summary": "1 met, 1 violated"}
    findings = [
        {"id": f"DISTRO-SYNC-00{number}", "verdict": verdict, "message": "a CHANGE"}
        for number, verdict in enumerate(("conforms", "violates", "known", "not-judged"))
    ]
    document = {"stages": [stage, {**stage, "verdict": "conforms"}], "findings": findings}
    assert list(repeats._why(document)) == [
        "node violates: 1 met, 1 violated",
        "DISTRO-SYNC-001 violates: a CHANGE",
        "DISTRO-SYNC-003 not-judged: a CHANGE",
    ]
