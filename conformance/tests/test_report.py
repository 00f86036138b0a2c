"""The page: failures stand first and in one sentence, the run is drawn, and the page is accessible."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browsing import expect_accessible
from charts import charts_of, write_benches
from programs import Call, Document

from distro_conformance.diagrams import charts
from distro_conformance.diagrams.sequence import Note, Sequence
from distro_conformance.diagrams.svg import svg
from distro_conformance.diagrams.transitions import sequence_of_actions
from distro_conformance.exploration.explored import SearchOptions, diagram_of, explore_profile
from distro_conformance.findings.finding import Finding, Held, Judged, Judgement
from distro_conformance.mutation.kill import kill
from distro_conformance.mutation.page import report_of
from distro_conformance.report import Failure, Report, Stage, write_page, write_report
from distro_conformance.report.history import HISTORY, earlier_reports
from distro_conformance.report.page import Page, page_of, sentence
from distro_conformance.verdict import Verdict
from distro_model.actions import Connect, Cut, Register
from distro_model.bounded.bounds import Bounds
from distro_traces.event import Kind
from distro_traces.ndjson import Recorder
from distro_traces.reading import read_run
from distro_traces.windows import Windows

if TYPE_CHECKING:
    from playwright.sync_api import Browser

RECORDED = Path(__file__).parent / "data" / "real-cluster-2.2.4"
PAGE_BYTES_MAX = 2_000_000
WITH_CHARTS = "test_a_page_needs_nothing_from_elsewhere_and_is_small"


def diverged() -> Finding:
    """A finding of `check` about a row of the recording."""
    run = read_run(RECORDED)
    row = next(event for event in run.events if event.kind is Kind.REPLICA_APPLIED)
    return Finding(
        about="INV-CONV",
        by="trace",
        judgement=Judgement.VIOLATES,
        text="At rest every member's view of every service is the same set of instances.",
        message="a <shows> web & b does not",
        expected="both show web 10.0.0.1:80",
        run=run.header.run,
        node=row.node,
        client=row.client,
        since=f"{row.kind} of {row.node} at {row.at_ms} ms (seq {row.seq})",
        after="m12 (CHANGE, success)",
        again="distrocheck check traces --invariant INV-CONV",
    )


def requirement(judgement: Judgement, **fields: str) -> Finding:
    return Finding(
        about="DISTRO-SYNC-001", by="node", judgement=judgement, text="A registration reaches all.", **fields
    )


def report(*findings: Finding, verdict: Verdict, failures: tuple[Failure, ...] = ()) -> Report:
    return Report(
        target="embedded",
        profile="strict",
        mutant=None,
        budget="quick",
        seed=7,
        scope="on our nodes as strict: node, lockstep",
        verdict=verdict,
        seconds=12.5,
        stages=(Stage("node", verdict, 2.5, "22 met"),),
        findings=findings,
        failures=failures,
        coverage={"transitions": {"deliver": 3, "lose": 0}, "guards beside nodes": {"has_loaded: no": 0}},
        changes=tuple({"node": "a", "what": f"change {number}", "ms": 500 + 40 * number} for number in range(40)),
        traces=str(RECORDED),
    )


FAILING = (diverged(), requirement(Judgement.KNOWN, known="B10", link="https://example.org/B10"))


@pytest.fixture(autouse=True)
def _without_charts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing them takes most of the time of a page; test_diagrams is about them."""
    if request.node.get_closest_marker("slow") is None and request.node.name != WITH_CHARTS:
        for name in ("histogram", "busy", "bars"):
            monkeypatch.setattr(charts, name, lambda *_, **__: "")


def page(directory: Path, *findings: Finding, verdict: Verdict) -> str:
    failure = Failure(
        "INV-CONV", "The nodes left the model", "nodes a b\nconnect c1 a\n", "distrocheck replay x.scenario", "pytest x"
    )
    failures = (failure,) if verdict is Verdict.VIOLATES else ()
    return write_report(report(*findings, verdict=verdict, failures=failures), directory, schema="s").read_text()


def test_the_first_sentence_answers_what_a_colleague_asks(tmp_path: Path) -> None:
    found = diverged()
    shown = sentence(found)
    for part in (found.node, found.client, found.since, "after m12 (CHANGE, success)", "both show web 10.0.0.1:80"):
        assert part is not None
        assert part in shown
    text = page(tmp_path, *FAILING, verdict=Verdict.VIOLATES)
    assert text.index("a &lt;shows&gt; web &amp; b does not") < text.index("What was run")


def test_the_run_is_drawn_around_its_first_bad_event(tmp_path: Path) -> None:
    (section,) = page_of(report(diverged(), verdict=Verdict.VIOLATES), tmp_path).sections
    assert section.picture.count('class="bad"') == 1


def test_the_nodes_stand_side_by_side_and_the_one_that_differs_is_marked(tmp_path: Path) -> None:
    with Windows(RECORDED) as run:
        place = next(
            number
            for number, event in enumerate(run.at(0, run.total))
            if event.kind is Kind.CLIENT_CHANGED and event.revision == 2
        )
        row = run.at(place, 1)[0]
    found = replace(
        diverged(), node=row.node, client=row.client, since=f"{row.kind} of {row.node} at 0 ms (seq {row.seq})"
    )
    (section,) = page_of(report(found, verdict=Verdict.VIOLATES), tmp_path).sections
    by_node = {held.node: held for held in section.held}
    assert by_node[row.node].owned
    assert by_node[row.node].content == f"revision 2, content {row.digest}"
    assert not by_node[row.node].differs
    assert [held.differs for held in section.held].count(True) == 2


def test_a_finding_has_its_failing_run_with_it(tmp_path: Path) -> None:
    """Picture, what the nodes held, scenario, steps, and the commands for model, nodes and a real server."""
    with Windows(RECORDED) as run:
        row = next(each for each in reversed(run.at(0, run.total)) if each.client is not None and each.owned)
    found = replace(diverged(), about="LOCKSTEP", by="lockstep", run=None, client=row.client, message="b lags behind")
    failure = Failure(
        "LOCKSTEP",
        "The nodes left the model",
        "nodes a b\nconnect c1 a\n",
        "distrocheck replay x.scenario",
        "pytest x",
        recording=str(RECORDED),
        shrunk="Found after 90 steps; of the run that failed 2 are left after shrinking",
    )
    shown = replace(report(found, verdict=Verdict.VIOLATES, failures=(failure,)), traces="")
    (section,) = page_of(shown, tmp_path).sections
    assert section.failure is failure
    assert "b lags behind" in section.picture
    assert len(section.held) == 3
    assert section.again.splitlines() == [
        "distrocheck replay x.scenario --target model",
        "distrocheck replay x.scenario --target embedded",
        "distrocheck replay x.scenario --target nacos:2.2.4",
    ]
    text = write_report(shown, tmp_path, schema="s").read_text()
    finding = text[text.index('<section class="finding"') :]
    for part in ("nodes a b\nconnect c1 a", "2 are left after shrinking", "pytest x"):
        assert part in finding[: finding.index("</section>")]


def test_a_recorded_run_in_real_time_is_drawn_and_is_about_the_client_that_its_message_names(tmp_path: Path) -> None:
    with Windows(RECORDED) as run:
        rows = run.at(0, run.total)
    client = next(each.client for each in rows if each.kind is Kind.CLIENT_CONNECTED)
    message = f"the nodes differ: {client}: a shows web 10.0.0.1:80, b shows nothing"
    found = replace(diverged(), about="LOCKSTEP", by="lockstep", client=None, run=None, since=None, message=message)
    failure = Failure("LOCKSTEP", "x", f"nodes a b\nconnect {client} a\n", "replay", "pytest", str(RECORDED))
    shown = replace(report(found, verdict=Verdict.VIOLATES, failures=(failure,)), traces="")
    (section,) = page_of(shown, tmp_path).sections
    assert section.finding.client == client
    assert len(section.held) == 3
    assert "CHANGE" in section.picture
    assert "earlier" not in section.picture, "of a long run its client alone"
    about_all = replace(shown, findings=(replace(found, message="the nodes differ"),))
    (section,) = page_of(about_all, tmp_path).sections
    assert 0 < int(re.findall(r"… (\d+) earlier", section.picture)[0]) < 100, "more than is drawn of a long trace"


def test_a_copy_without_an_observed_revision_is_compared_by_its_content(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run", "r", profile="strict", target="test", nodes=("a", "b", "c")) as recorder:
        recorder.record("a", Kind.CLIENT_CHANGED, at_ms=1, client="c1", owned=True, revision=2, digest="x")
        recorder.record("b", Kind.REPLICA_APPLIED, at_ms=2, client="c1", digest="x")
        bad = recorder.record("c", Kind.REPLICA_APPLIED, at_ms=3, client="c1", digest="y")
    since = f"{bad.kind} of c at 3 ms (seq {bad.seq})"
    found = replace(diverged(), run="r", node="c", client="c1", since=since)
    shown = replace(report(found, verdict=Verdict.VIOLATES), traces=str(tmp_path / "run"))
    (section,) = page_of(shown, tmp_path).sections
    assert {held.node: held.differs for held in section.held} == {"a": False, "b": False, "c": True}


def test_actions_are_drawn_where_nothing_was_recorded(tmp_path: Path) -> None:
    drawn = sequence_of_actions(("a", "b"), [Connect("c1", "a"), Register("c1", "web", "10.0.0.1:80"), Cut("a", "b")])
    failure = Failure("MACHINE", "The nodes left the model", "nodes a b\n", "distrocheck replay x", "", diagram=drawn)
    found = replace(diverged(), about="MACHINE", by="machine", run=None)
    shown = replace(report(found, verdict=Verdict.VIOLATES, failures=(failure,)), traces="")
    (section,) = page_of(shown, tmp_path).sections
    for part in ("c1 to a: connect", "c1 to a: register web", "cut a-&gt;b"):
        assert part in section.picture
    assert "diagram" not in shown.to_json()["failures"][0]


def test_a_counterexample_of_the_model_is_drawn_and_says_who_holds_what(tmp_path: Path) -> None:
    search = SearchOptions(properties=("INV-CONV",))
    explored = explore_profile("nacos-2.0.4", Bounds(), search=search)
    (found,) = explored.findings
    counterexample = explored.result(found).counterexample
    assert counterexample is not None
    failure = Failure("INV-CONV", "", "nodes a b\n", "distrocheck replay x", "", diagram=diagram_of(counterexample))
    shown = replace(report(found, verdict=Verdict.VIOLATES, failures=(failure,)), traces="")
    (section,) = page_of(shown, tmp_path).sections
    assert "swallowed" in section.picture
    assert [(each.node, each.owned, each.differs) for each in section.held] == [("a", True, False), ("b", False, True)]
    assert section.missing == ("Not shrunk: the search is breadth-first, so there is no shorter run.",)


def test_a_section_states_what_it_cannot_show(tmp_path: Path) -> None:
    text = page(tmp_path, requirement(Judgement.VIOLATES), verdict=Verdict.VIOLATES)
    for what in (
        "No picture",
        "No states side by side",
        "No scenario",
        "Not shrunk",
        "No upstream link",
        "No command for the",
    ):
        assert f"{what}: " in text or f"{what} model: " in text


@pytest.mark.slow
def test_the_failing_run_of_a_search_is_on_its_page(call: Call, tmp_path: Path) -> None:
    html = tmp_path / "walks.html"
    out = ("--html", str(html), "--out", str(tmp_path))
    assert call("test", "cluster", "--mutant", "B02", "--seed", "2", "--jobs", "1", *out).returncode == 1
    section = html.read_text().partition('<section class="finding"')[2].partition("</section>")[0]
    shown = ("<svg", "differs from the owner", "left after shrinking", "The run as a scenario", "--target model")
    for part in (*shown, 'href="https://github.com/alibaba/nacos/issues/9210"'):
        assert part in section
    assert "No picture" not in section
    assert section.count('class="bad"') == 2, "the answer that should not have been, and what is wrong with it"
    times = [int(found) for found in re.findall(r">[a-z ]*connect[^<]*, (\d+)", section)]
    assert times == [1_100], "times are those of the scenario"


def test_a_finding_of_a_trace_comes_with_its_scenario(tmp_path: Path) -> None:
    (section,) = page_of(report(diverged(), verdict=Verdict.VIOLATES), tmp_path).sections
    assert section.scenario.startswith("# Run ")
    lines = section.again.splitlines()
    assert lines[0] == diverged().again
    assert lines[1].startswith(f"distrocheck export {RECORDED} --run ")
    assert [line.rpartition(" ")[2] for line in lines[2:]] == ["model", "embedded", "nacos:2.2.4"]


def test_the_last_report_is_shown_where_the_finding_lacks_it(tmp_path: Path) -> None:
    (section,) = page_of(report(replace(diverged(), after=None), verdict=Verdict.VIOLATES), tmp_path).sections
    assert section.finding.after is not None
    assert section.finding.after.startswith("CHANGE from ")


def test_open_findings_with_one_reason_are_listed_once(tmp_path: Path) -> None:
    names = ("INV-A", "INV-B", "INV-C")
    stopped = [Finding(about=name, by="model", judgement=Judgement.NOT_JUDGED, message="stopped") for name in names]
    text = page(tmp_path, *stopped, verdict=Verdict.INCONCLUSIVE)
    (shown,) = text.partition("<h2>Not judged</h2>")[2].partition("<h2>What was run</h2>")[:1]
    assert shown.count("stopped") == 1
    assert all(f"<code>{name}</code>" in shown for name in names)


def test_the_events_of_a_check_are_drawn_up_to_its_finding(tmp_path: Path) -> None:
    node, member, client = "127.0.0.1:8848", "127.0.0.1:9100", "1700000000008_127.0.0.1_25587"
    lines = (
        f"100 ms: client {client} connects to the node",
        f"1100 ms: {node} -> {member}: CHANGE of {client} revision 1, answered with failure",
        f"7000 ms: {member} sends VERIFY of {client} revision 2: success (DistroDataResponse)",
    )
    found = replace(requirement(Judgement.VIOLATES, node=node, message=f"no failure of {client}"), evidence=lines)
    (section,) = page_of(report(found, verdict=Verdict.VIOLATES), tmp_path).sections
    picture = section.picture
    for part in (
        "client c1 connects",
        "CHANGE of c1 revision 1<",
        "1100 ms, answered with failure",
        "7000 ms, answered with success<",
        member,
    ):
        assert part in picture
    assert picture.index("answered with success<") < picture.index('class="bad"') < picture.index("no failure of c1")


def test_the_findings_for_services_are_what_sarif_knows(tmp_path: Path) -> None:
    """By models of SARIF 2.1.0 that refuse a wrong value and keep what they do not know. These two they lack."""
    from pydantic import ValidationError  # noqa: PLC0415 - this test alone needs it
    from sarif_pydantic import Sarif  # noqa: PLC0415

    judged = [requirement(each, node="a", client="c1", known="B10", link="https://example.org") for each in Judgement]
    page(tmp_path, *judged, verdict=Verdict.VIOLATES)
    text = (tmp_path / "report.sarif").read_text()
    assert {name for name, _ in unknown(Sarif.model_validate_json(text))} == {"occurrenceCount", "suppressions"}
    with pytest.raises(ValidationError, match="level"):
        Sarif.model_validate_json(text.replace('"level": "error"', '"level": "fatal"'))
    misspelt = Sarif.model_validate_json(text.replace('"ruleIndex"', '"ruleNumber"'))
    assert "ruleNumber" in dict(unknown(misspelt))


def unknown(value: object) -> Iterator[tuple[str, object]]:
    """Fields that the models have no place for; what a service may put into `properties` is free."""
    from pydantic import BaseModel  # noqa: PLC0415

    if isinstance(value, BaseModel):
        yield from (value.model_extra or {}).items()
        for name in type(value).model_fields:
            yield from () if name == "properties" else unknown(getattr(value, name))
    elif isinstance(value, list):
        for each in value:
            yield from unknown(each)


def test_a_sentence_names_the_expectation_once() -> None:
    found = replace(diverged(), message="expected both show web 10.0.0.1:80; seen: nothing")
    assert sentence(found).count("both show web 10.0.0.1:80") == 1


def test_unrecorded_rows_are_not_drawn(tmp_path: Path) -> None:
    (section,) = page_of(report(requirement(Judgement.VIOLATES), verdict=Verdict.VIOLATES), tmp_path).sections
    assert section.picture == ""


def test_a_page_needs_nothing_from_elsewhere_and_is_small(tmp_path: Path) -> None:
    many = [requirement(Judgement.VIOLATES, message=f"number {number}") for number in range(5_000)]
    text = page(tmp_path, *many, verdict=Verdict.VIOLATES)
    HTMLParser().feed(text)
    assert len(text.encode()) < PAGE_BYTES_MAX
    assert "How long a change took" in text
    assert "When the nodes were busy" in text
    assert "4800 more are in <code>report.json</code>" in text
    assert "src=" not in text
    assert re.findall("<link[^>]*>", text) == ['<link rel="icon" href="data:,">'], "and asks no server for an icon"


def test_earlier_reports_are_shown_and_a_spoiled_line_costs_its_mark_only(tmp_path: Path) -> None:
    page(tmp_path, requirement(Judgement.CONFORMS), verdict=Verdict.CONFORMS)
    with (tmp_path / HISTORY).open("a") as file:
        file.write("{not json\n")
    text = page(tmp_path, *FAILING, verdict=Verdict.VIOLATES)
    assert "Earlier reports in this folder" in text
    assert [each.verdict for each in earlier_reports(tmp_path)] == ["conforms", "violates"]


def test_states_that_the_model_met_are_merged_over_the_reports_of_a_folder(tmp_path: Path) -> None:
    def covering(**taken: int) -> Page:
        shown = replace(
            report(requirement(Judgement.CONFORMS), verdict=Verdict.CONFORMS), coverage={"transitions": taken}
        )
        found = page_of(shown, tmp_path)
        write_page(shown, tmp_path / "report.html")
        return found

    covering(deliver=3, lose=0, crash=0)
    (merged,) = covering(deliver=0, lose=2, crash=0).covered
    assert (merged.here, merged.merged, merged.every, merged.reports) == (1, 2, 3, 2)
    assert merged.missing == ("crash",)


def test_walks_on_nodes_are_merged_with_those_of_played_members(document: Document, tmp_path: Path) -> None:
    """A walk of three nodes answers no malformed request; the machine of played members makes some."""
    short, html = ("--examples", "1", "--steps", "20", "--seed", "1", "--transport", "memory"), str(tmp_path / "w.html")
    _, nodes = document("test", "cluster", *short, "--html", html, "--out", str(tmp_path))
    _, among = document("test", "node", "--machine", *short, "--html", html, "--out", str(tmp_path))
    rules = [found["coverage"]["rules beside nodes"] for found in (nodes, among)]
    only_once = [name for name in rules[0] if bool(rules[0][name]) != bool(rules[1][name])]
    assert only_once
    merged = sum(bool(rules[0][name] or rules[1][name]) for name in rules[0])
    text = (tmp_path / "w.html").read_text()
    assert f'<td>rules beside nodes<td class="n">{sum(map(bool, rules[1].values()))}<td class="n">{merged}' in text
    assert "all 2 reports here" in text


def test_a_kill_matrix_is_a_map_and_a_list_with_those_that_live_first(tmp_path: Path) -> None:
    kills = (kill("B02", "model", ("INV-CONV",), 1.0, 5), kill("B24", "model", (), 2.0, None, "nothing breaks"))
    write_page(report_of(Judged("model", None, kills, 3.0)), tmp_path / "mutants.html", score=0.5)
    text = (tmp_path / "mutants.html").read_text()
    assert text.index("B24: nothing breaks") < text.index("1 of 2 killed, by 1 checks")
    assert "INV-CONV in 5 steps" in text
    assert "50 % of the mutants" in page(tmp_path, requirement(Judgement.CONFORMS), verdict=Verdict.CONFORMS)


def test_requirements_are_folded_by_area_and_open_where_something_is_wrong(tmp_path: Path) -> None:
    good = replace(requirement(Judgement.CONFORMS), about="DISTRO-LEASE-001")
    text = page(tmp_path, good, requirement(Judgement.VIOLATES), verdict=Verdict.VIOLATES)
    assert "<details><summary>LEASE: 1 conforms</summary>" in text
    assert "<details open><summary>SYNC: 1 violates</summary>" in text


def test_rows_left_out_of_a_long_run_are_counted(tmp_path: Path) -> None:
    items = tuple(Note("a", f"number {number}") for number in range(100))
    drawn = svg(Sequence(("a",), items).window(40, 5))
    assert [f"number {number}<" in drawn for number in (39, 40, 44, 45)] == [False, True, True, False]
    assert "… 40 earlier" in drawn
    assert "… 55 later" in drawn


def test_figures_of_benches_are_charts_by_unit(tmp_path: Path) -> None:
    bench = {
        "bench": "page",
        "figures": {"open_s": 0.9, "rows": 10, "server": {"open_s": 2.0, "name": "<x>"}},
        "ratios": {"reference/real": 0.5},
    }
    write_benches([bench], tmp_path / "bench" / "index.html")
    text = (tmp_path / "bench" / "index.html").read_text()
    assert [chart.title for chart in charts_of(bench)] == ["page: s", "page: counts", "page: ratio"]
    assert "server open_s 2" in text
    assert "<x>" not in text


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
class TestInTheBrowser:
    @pytest.mark.parametrize("theme", ["light", "dark"])
    @pytest.mark.parametrize("width", [390, 1280])
    @pytest.mark.parametrize("verdict", [Verdict.CONFORMS, Verdict.VIOLATES])
    def test_a_browser_and_a_screen_reader_can_read_it(
        self, tmp_path: Path, browser: Browser, theme: str, width: int, verdict: Verdict
    ) -> None:
        held = tuple(
            Held(f"127.0.0.1:2518{at}", at == 0, "revision 1, svc-3 at 10.0.0.1:80", at > 0) for at in range(3)
        )
        wide = replace(requirement(Judgement.VIOLATES, client="1700000007002_127.0.0.1_41130"), held=held)
        findings = (*FAILING, wide) if verdict is Verdict.VIOLATES else (requirement(Judgement.CONFORMS),)
        page(tmp_path, *findings, verdict=verdict)
        opened = browser.new_page(color_scheme=theme, viewport={"width": width, "height": 900})  # type: ignore[arg-type]
        errors: list[str] = []
        opened.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        opened.on("pageerror", lambda error: errors.append(str(error)))
        opened.goto((tmp_path / "report.html").as_uri())
        expect_accessible(opened)
        assert opened.evaluate("document.documentElement.scrollWidth") <= width
        opened.emulate_media(media="print")
        assert opened.locator("#requirements .row").first.is_visible(), "paper opens nothing"
        opened.emulate_media(media="screen")
        opened.get_by_label("verdict").select_option("violates")
        assert not opened.locator('#requirements .row[data-verdict="conforms"]').first.is_visible()
        assert opened.pdf().startswith(b"%PDF")
        assert errors == []
        opened.close()
