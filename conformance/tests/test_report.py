"""The page: what failed stands first and in one sentence, the run is drawn, and nobody is shut out by how it looks."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, sync_playwright

from distro_conformance.findings import Finding, Judgement
from distro_conformance.report import Failure, Report, Stage, write_report
from distro_conformance.report.page import HISTORY, earlier_reports, page_of, sentence
from distro_conformance.verdict import Verdict
from distro_traces.event import Kind
from distro_traces.reading import read_run

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
RECORDED = Path(__file__).parent / "data" / "real-cluster-2.2.4"
PAGE_BYTES_MAX = 2_000_000


def diverged() -> Finding:
    """As `check` would say it, about a row of the recording."""
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
        changes=tuple({"node": "a", "what": f"change {number}", "ms": 500 + 40 * number} for number in range(40)),
        traces=str(RECORDED),
    )


FAILING = (diverged(), requirement(Judgement.KNOWN, known="B10", link="https://example.org/B10"))


def page(directory: Path, *findings: Finding, verdict: Verdict) -> str:
    failure = Failure(
        "The nodes left the model", "nodes a b\nconnect c1 a\n", "distrocheck replay x.scenario", "pytest x"
    )
    failures = (failure,) if verdict is Verdict.VIOLATES else ()
    return write_report(report(*findings, verdict=verdict, failures=failures), directory, schema="s").read_text()


def test_the_first_sentence_answers_what_a_colleague_asks(tmp_path: Path) -> None:
    found = diverged()
    told = sentence(found)
    for part in (found.node, found.client, found.since, "after m12 (CHANGE, success)", "both show web 10.0.0.1:80"):
        assert part is not None
        assert part in told
    text = page(tmp_path, *FAILING, verdict=Verdict.VIOLATES)
    assert text.index("a &lt;shows&gt; web &amp; b does not") < text.index("What was run")


def test_the_run_is_drawn_around_its_first_bad_event(tmp_path: Path) -> None:
    (section,) = page_of(report(diverged(), verdict=Verdict.VIOLATES), tmp_path).sections
    assert section.picture.count('class="bad"') == 1


def test_what_was_not_recorded_is_not_drawn(tmp_path: Path) -> None:
    (section,) = page_of(report(requirement(Judgement.VIOLATES), verdict=Verdict.VIOLATES), tmp_path).sections
    assert section.picture == ""


def test_a_page_needs_nothing_from_elsewhere_and_is_small(tmp_path: Path) -> None:
    many = [requirement(Judgement.VIOLATES, message=f"number {number}") for number in range(5_000)]
    text = page(tmp_path, *many, verdict=Verdict.VIOLATES)
    HTMLParser().feed(text)
    assert len(text.encode()) < PAGE_BYTES_MAX
    assert "4800 more are in <code>report.json</code>" in text
    assert "src=" not in text
    assert "<link" not in text


def test_earlier_reports_are_shown_and_a_spoiled_line_costs_its_mark_only(tmp_path: Path) -> None:
    page(tmp_path, requirement(Judgement.CONFORMS), verdict=Verdict.CONFORMS)
    with (tmp_path / HISTORY).open("a") as file:
        file.write("{not json\n")
    text = page(tmp_path, *FAILING, verdict=Verdict.VIOLATES)
    assert "Earlier reports here" in text
    assert [each.verdict for each in earlier_reports(tmp_path)] == ["conforms", "violates"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert CHROMIUM, "these tests need Chromium on the path; on Debian: apt-get install chromium"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("verdict", [Verdict.CONFORMS, Verdict.VIOLATES])
def test_a_browser_and_a_screen_reader_can_read_it(
    tmp_path: Path, browser: Browser, theme: str, width: int, verdict: Verdict
) -> None:
    findings = FAILING if verdict is Verdict.VIOLATES else (requirement(Judgement.CONFORMS),)
    page(tmp_path, *findings, verdict=verdict)
    opened = browser.new_page(color_scheme=theme, viewport={"width": width, "height": 900})  # type: ignore[arg-type]
    errors: list[str] = []
    opened.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.goto((tmp_path / "report.html").as_uri())
    found = Axe().run(opened)
    assert found.violations_count == 0, found.generate_report()
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    opened.get_by_label("verdict").select_option("violates")
    assert not opened.locator("#requirements tbody tr").first.is_visible()
    assert opened.pdf().startswith(b"%PDF")
    assert errors == []
    opened.close()
