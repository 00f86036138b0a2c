"""The differential test: it reports differences, reports none where there are none, and has the listed ones of 2.2.4.

Other releases are run by hand, with the same command. The run against a real server is reported as inconclusive,
with the reason, where there is no Java and where Maven cannot fetch the release.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from programs import COMMAND, executed

from distro_conformance.findings.finding import Judgement, verdict_of
from distro_conformance.targets.releases import nacos_release
from distro_conformance.verdict import UsageError, Verdict, all_named
from distro_conformance.wire.messages import pack
from distro_interop.differential import judge, listed
from distro_interop.differential import run as differential_run
from distro_interop.differential.compare import MISSING, Difference, differences
from distro_interop.differential.exchange import Exchange, ScriptLog, opened
from distro_interop.differential.judge import Log, compared, judged
from distro_interop.differential.listed import DEVIATIONS, VARIES, Listed, releases
from distro_interop.differential.normalise import normalised
from distro_interop.differential.run import play, reference_nodes, run_differential
from distro_interop.differential.scripts import SCRIPTS
from distro_interop.differential.secured import WHOLE_RELEASES

RELEASE = "2.2.4"
PROFILE = f"nacos-{RELEASE}"


def words(answer: Any, **names: str) -> Any:
    log = ScriptLog("a script", names)
    log.note("a step", answer)
    (exchange,) = normalised(log)
    return exchange.answer


def test_only_values_of_one_run_are_replaced() -> None:
    names = {"127.0.0.1:18848": "{node}", "18848": "{port of node}", "17_127.0.0.1_5": "{client}"}
    log = ScriptLog("a script", names)
    log.note("a step", {"at": "127.0.0.1:18848", "port": 18848, "id": "17_127.0.0.1_5", "other": 118848, "x": "118848"})
    (exchange,) = normalised(log)
    assert exchange.answer == {
        "at": "{node}",
        "port": "{port of node}",
        "id": "{client}",
        "other": 118848,
        "x": "118848",
    }
    assert words({"lastRefTime": 1_700_000_000_123, "port": 80}) == {"lastRefTime": "{time}", "port": 80}
    assert words({"token": "1700000000123", "odd": "²"}) == {"token": "{time}", "odd": "²"}
    assert words({"lastRefTime": 0}) == {"lastRefTime": 0}
    numbers = {"code": 20002, "raftPort": 20002, "grpcPort": "20002", "of": "weight 20002", "at": "10.0.0.1:20002"}
    named = {**numbers, "raftPort": "{port}", "grpcPort": "{port}", "at": "10.0.0.1:{port}"}
    assert words(numbers, **{"20002": "{port}"}) == named
    assert words({"requestId": "37"}) == {"requestId": "{count}"}
    assert words({"accessToken": "a.b.c", "tokenTtl": 17_999}) == words({"accessToken": "d.e.f", "tokenTtl": 18_000})
    assert words({"accessToken": "AUTH_DISABLED"}) != words({"accessToken": "d.e.f"})
    assert words({"data": '{"b":1,"a":2}'}) == words({"data": '{ "a": 2, "b": 1 }'})


def test_only_orders_that_are_not_guaranteed_are_taken_out() -> None:
    assert words({"hosts": [{"port": 2}, {"port": 1}]}) == words({"hosts": [{"port": 1}, {"port": 2}]})
    assert words({"steps": [2, 1]}) != words({"steps": [1, 2]})


def test_the_content_of_a_distro_message_is_read_as_rows() -> None:
    client = {
        "clientId": "c",
        "namespaces": ["n", "n"],
        "groupNames": ["g", "g"],
        "serviceNames": ["s2", "s1"],
        "instancePublishInfos": [{"port": 2}, {"port": 1}],
    }
    body = {"distroData": {"content": pack({"clientSyncDataList": [client]})}}
    (read,) = opened(body)["distroData"]["content"]["clientSyncDataList"]
    assert read == {"clientId": "c", "published": [["n", "g", "s2", {"port": 2}], ["n", "g", "s1", {"port": 1}]]}
    short = {**client, "groupNames": ["g"]}
    assert opened({"distroData": {"content": pack(short)}})["distroData"]["content"] == short
    assert opened({"distroData": {"content": "!"}}) == {"distroData": {"content": "!"}}


def test_a_difference_is_reported_down_to_the_field() -> None:
    real = [Exchange("s1", {"type": "R", "body": {"a": [1, {"b": 2}], "c": True}}), Exchange("only real", 1)]
    reference = [Exchange("s1", {"type": "R", "body": {"a": [1, {"b": 3}], "c": 1}}), Exchange("only reference", 1)]
    assert list(differences("s", real, reference)) == [
        Difference("s", "s1", "body.a[1].b", 2, 3),
        Difference("s", "s1", "body.c", True, 1),
        Difference("s", "only real", "", 1, MISSING),
        Difference("s", "only reference", "", MISSING, 1),
    ]


def test_an_answer_of_another_kind_is_one_difference() -> None:
    real, reference = {"status": 200, "type": "t", "body": {}}, {"status": 404, "type": "u", "body": "x"}
    assert [each.path for each in differences("s", [Exchange("s1", real)], [Exchange("s1", reference)])] == [""]


ROW = Difference("query", "s1", "body.a", 1, 2)


@pytest.fixture
def one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {ROW.key: Listed("DEV-MESSAGE", ROW)}
    monkeypatch.setattr(judge, "listing", lambda profile: rows if profile == PROFILE else {})


@pytest.mark.usefixtures("one_row")
@pytest.mark.parametrize(
    ("real", "reference", "profile", "unexplained", "gone"),
    [
        (1, 2, PROFILE, 0, 0),
        (3, 2, PROFILE, 1, 0),
        (1, 3, PROFILE, 1, 0),  # the answer of the reference node is part of the row
        (1, 2.0, PROFILE, 1, 0),
        (1, 1, PROFILE, 0, 1),
        (1, 2, "nacos-2.3.2", 1, 0),
    ],
)
def test_a_row_explains_what_both_sides_said_and_must_be_needed(
    real: Any, reference: Any, profile: str, unexplained: int, gone: int
) -> None:
    logs: list[Log] = [{"query": [Exchange("s1", {"body": {"a": value}})]} for value in (real, reference)]
    found = compared(*logs, profile)
    assert (len(found.unexplained), len(found.gone)) == (unexplained, gone)
    expected = Verdict.VIOLATES if unexplained or gone else Verdict.CONFORMS
    assert verdict_of(judged([found], [SCRIPTS["query"]], "t")) is expected


def test_a_varying_value_may_be_anything_and_its_surroundings_may_not() -> None:
    row = Listed("DEV-MESSAGE", Difference("query", "s1", "", {"status": 200, "body": {"total": VARIES}}, 501))
    assert row.explains(replace(row.difference, real={"status": 200, "body": {"total": 7}}))
    assert not row.explains(replace(row.difference, real={"status": 201, "body": {"total": 7}}))
    assert not row.explains(replace(row.difference, real={"status": 200, "body": {"total": 7, "more": 1}}))


def test_accepted_differences_are_listed_and_those_that_are_gone_are_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(listed, "_DIRECTORY", tmp_path)
    other = replace(ROW, step="s2", real={"ü": None})
    listed.accept(PROFILE, "DEV-MESSAGE", [ROW, other], [])
    assert listed.listing(PROFILE) == {each.key: Listed("DEV-MESSAGE", each) for each in (ROW, other)}
    listed.accept(PROFILE, "DEV-NO-IP", [replace(ROW, ours=3)], [other])  # codespell:ignore ours
    (kept,) = listed.listing(PROFILE).values()
    assert kept == Listed("DEV-MESSAGE", replace(ROW, ours=3))  # codespell:ignore ours


def test_a_difference_in_one_of_two_runs_is_reported_and_is_no_verdict() -> None:
    reference: Log = {"query": [Exchange("s1", 1), Exchange("s2", 1), Exchange("s3", 1)]}
    first: Log = {"query": [Exchange("s1", 2), Exchange("s2", 2), Exchange("s3", 1)]}
    second: Log = {"query": [Exchange("s1", 2), Exchange("s2", 1), Exchange("s3", 2)]}
    runs = [compared(real, reference, "strict") for real in (first, second)]
    scripts = [SCRIPTS["query"]]
    found = list(judged(runs, scripts, "t"))
    assert [(each.details["step"], each.judgement) for each in found] == [
        ("s1", Judgement.VIOLATES),
        ("s2", Judgement.NOT_JUDGED),
        ("s3", Judgement.NOT_JUDGED),
    ]
    assert verdict_of(found) is Verdict.VIOLATES
    assert verdict_of(judged([runs[0], compared(reference, reference, "strict")], scripts, "t")) is Verdict.CONFORMS


def test_only_the_real_server_is_played_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference node differs at the first request only: one race of the reference node is a violation."""
    played_on: list[str] = []

    async def play_once(nodes: Any, scripts: Any, _: Any) -> Log:
        (kind,) = {node.kind for node in nodes.values()}
        played_on.append(kind)
        races = kind == "embedded" and played_on.count("embedded") == 1
        return {script.id: [Exchange("a step", "late" if races else "in time")] for script in scripts}

    monkeypatch.setattr(differential_run, "play", play_once)
    monkeypatch.setattr(judge, "listing", lambda _: {})
    found = run_differential(f"nacos:{RELEASE}", script_ids=["distro-sync"])
    assert found.verdict is Verdict.VIOLATES
    assert played_on == ["embedded", "nacos", "nacos"]
    assert found.figures["played_again"] == ["distro-sync"]


def test_the_registry_of_deviations_is_in_order() -> None:
    rows = [row for release in releases() for row in listed.listing(release).values()]
    assert {row.deviation for row in rows} == DEVIATIONS.keys()
    assert {row.difference.script for row in rows} <= SCRIPTS.keys()
    for deviation, why in DEVIATIONS.items():
        assert deviation.startswith("DEV-")
        assert len(why) > 60, deviation


def test_a_step_has_one_name_in_its_script() -> None:
    log = ScriptLog("s", {})
    log.note("a step", 1)
    with pytest.raises(ValueError, match="two steps called 'a step'"):
        log.note("a step", 2)


def test_unknown_scripts_are_refused() -> None:
    with pytest.raises(UsageError, match="no script 'nonsense'; known: envelope-unregistered"):
        run_differential("embedded", script_ids=["nonsense"])


def played(profile: str, *ids: str, mutant: str | None = None) -> Log:
    scripts = [each for each in all_named("script", SCRIPTS, ids) if profile in each.releases]
    return asyncio.run(play(reference_nodes(profile, mutant), scripts, lambda _: None))


@pytest.mark.wire
@pytest.mark.slow  # other tests here hold one script each against a node that differs, and one that does not
@pytest.mark.parametrize("profile", ["strict", "nacos-2.0.4"])
def test_a_node_does_not_differ_from_itself(profile: str) -> None:
    found = run_differential("embedded", profile)
    assert [each.message for each in found.findings if each.judgement is not Judgement.CONFORMS] == []
    assert found.figures["exchanges"] > 1_100


@pytest.mark.wire
@pytest.mark.parametrize(
    ("script", "profile", "mutant", "step"),
    [
        ("distro-sync", PROFILE, "B02", "verify 2"),
        ("set-up", "nacos-2.3.2", None, "no module: register"),
        ("distro-native", "strict", None, "change"),
        ("batch", "nacos-2.3.2", None, "state with a batch and a single one"),
        ("member-report", "nacos-2.0.4", None, "report"),
        ("http-v2", "strict", None, "what the owner is asked"),
        ("secured-paths", "nacos-2.3.2", None, "GET /v1/core/cluster/nodes, reader"),
    ],
)
def test_a_node_that_behaves_otherwise_is_seen(script: str, profile: str, mutant: str | None, step: str) -> None:
    right, wrong = played(PROFILE, script), played(profile, script, mutant=mutant)
    assert step in {each.step for each in differences(script, right[script], wrong[script])}


@pytest.mark.wire
@pytest.mark.slow
def test_a_real_server_and_a_reference_node_differ_in_what_is_listed_only(
    need_release: Callable[..., None],
) -> None:
    need_release(nacos_release(RELEASE), WHOLE_RELEASES[RELEASE])
    ran = executed(*COMMAND, "test", "differential", "--target", f"nacos:{RELEASE}", "--json")
    assert ran.stdout, ran.stderr
    found = json.loads(ran.stdout)
    assert (found["differences"], found["unused"]) == ([], [])
    assert (ran.returncode, found["verdict"]) == (0, "conforms")
    assert found["exchanges"] > 1_250
