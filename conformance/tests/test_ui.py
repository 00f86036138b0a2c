"""The explorer in the browser: the display of a walk, the access control, and the way from a click to a bug."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import pytest
from aiohttp import web
from browsing import expect, expect_accessible

from distro_conformance.diagrams.sequence import Delivery, Fault, Message, Note, Sequence
from distro_conformance.diagrams.svg import svg
from distro_conformance.language.text import parse
from distro_conformance.ui import walk as walks
from distro_conformance.ui.app import COOKIE, Explorer, setting_of
from distro_conformance.ui.recorded import FAULTS, opened, played
from distro_conformance.ui.stories import MEANINGS, STORIES, begin, meaning, next_story
from distro_conformance.ui.walk import PropertyStatus, Setting, Walk
from distro_conformance.verdict import UsageError, Verdict
from distro_model.bounded.bounds import Bounds
from distro_traces.errors import TraceError

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SCENARIOS = Path(__file__).parents[2] / "scenarios"
RECORDED = Path(__file__).parent / "data" / "real-cluster-2.2.4"
RELEASE = Setting("nacos-2.0.4")


def choice_called(walk: Walk, text: str) -> int:
    return [str(choice.label) for choice in walk.choices()].index(text)


class TestWalk:
    def test_a_step_can_be_undone_and_repeated(self) -> None:
        begun = Walk.begin(Setting())
        connected = begun.take(choice_called(begun, "connect c1 a"))
        assert [part.lines for part in connected.nodes() if part.name == "a"] == [
            (("loaded", False), ("c1 native, revision 0, nothing", True))
        ]
        assert connected.move(-1).row == begun.row
        assert connected.move(-1).move(1).row == connected.row
        assert connected.move(-5).at == 0

    def test_a_choice_that_is_not_there_is_refused(self) -> None:
        with pytest.raises(UsageError, match="no choice 99 here; load the page again"):
            Walk.begin(Setting()).take(99)

    def test_a_counterexample_is_a_walk_that_breaks_its_property_at_its_end_only(self) -> None:
        found = Walk.begin(RELEASE).find("INV-CONV")
        assert (found.at, len(found.path)) == (0, 7)
        assert all(standing is not PropertyStatus.BROKEN for standing, _ in found.move(6).standings().values())
        standing, what = found.move(7).standings()["INV-CONV"]
        assert standing is PropertyStatus.BROKEN
        assert what == "c1: a shows web 10.0.0.1:80 v=2, b shows web 10.0.0.1:80 v=1"
        assert found.move(7).diagram().items[-1].bad

    def test_nothing_found_is_reported_with_the_states_seen(self) -> None:
        with pytest.raises(UsageError, match=r"^INV-CONV: nothing found in all [\d,]+ states$"):
            Walk.begin(Setting(bounds=Bounds(changes=1))).find("INV-CONV")

    def test_a_search_that_ends_at_its_limit_says_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The limit is a number of states: a busy machine finds the same."""
        monkeypatch.setattr(walks, "SEARCH_STATES_MAX", 50)
        with pytest.raises(UsageError, match=r"^INV-CONV: nothing found in the first \d+ states$"):
            Walk.begin(Setting()).find("INV-CONV")

    def test_a_walk_is_a_scenario(self) -> None:
        found = Walk.begin(RELEASE).find("INV-CONV")
        scenario = parse(found.move(7).scenario())
        assert scenario.profile == "nacos-2.0.4"
        assert "swallow a->b CHANGE" in scenario.render()


class TestStories:
    @pytest.mark.parametrize("name", STORIES)
    def test_every_step_of_a_story_says_what_it_means_and_its_end_shows_its_bug(self, name: str) -> None:
        story = begin(name)
        assert meaning(story) == ""
        assert all(meaning(story.move(step)) for step in range(1, len(story.path) + 1))
        standing, _ = story.move(len(story.path)).standings()[STORIES[name].property_id]
        assert standing is (PropertyStatus.REACHED if name == "healthy-change" else PropertyStatus.BROKEN)

    def test_the_stories_follow_each_other(self) -> None:
        assert [next_story(name) for name in STORIES] == ["lost-change", "swallowed-delete", None]

    def test_there_is_a_meaning_for_every_kind_of_step_within_the_default_bounds(self) -> None:
        assert {chain.kind for chain in Walk.begin(Setting()).system.chains} <= MEANINGS.keys()


class TestRecorded:
    def test_a_scenario_is_played_and_stepped_through(self) -> None:
        with ExitStack() as kept:
            run = opened(SCENARIOS / "b02-lost-change-2.0.4.scenario", kept)
            assert "on embedded, profile nacos-2.0.4: violates" in run.title
            assert run.steps[-1].verdict is Verdict.VIOLATES
            last = run.go(run.total)
            assert last.at == run.total - 1
            contents = {line.rpartition(" ")[2] for part in last.nodes() for line, _ in part.lines}
            assert len(contents) == 2  # the lost message makes the copies differ
            assert all(not part.lines for part in run.go(0).nodes())

    def test_a_trace_is_opened_where_it_lies_and_its_faults_are_found(self) -> None:
        with ExitStack() as kept:
            run = opened(RECORDED, kept)
            at_fault = run.to_next_fault()
            assert at_fault.event.kind in FAULTS
            assert at_fault.event.node in at_fault.sentence
            with pytest.raises(UsageError, match="no link is cut"):
                run.go(run.total).to_next_fault()

    def test_a_walk_runs_on_nodes_as_it_was_clicked(self) -> None:
        found = Walk.begin(RELEASE).find("INV-CONV")
        with ExitStack() as kept:
            run = played(found.move(7).scenario(), "embedded", kept)
            assert "profile nacos-2.0.4: violates" in run.title

    def test_a_file_that_is_no_trace_is_refused_in_a_sentence(self, tmp_path: Path) -> None:
        with ExitStack() as kept, pytest.raises(TraceError):
            opened(tmp_path / "nowhere.ndjson", kept)


class TestPicture:
    def test_every_text_is_escaped_and_every_fate_is_said_in_words(self) -> None:
        drawn = svg(
            Sequence(
                ("a", "b"),
                (
                    Message("a", "b", "<CHANGE> & more", Delivery.LOST),
                    Message("b", "a", "VERIFY", Delivery.FAILED, "answer: fail", bad=True),
                    Note("a", "executes"),
                    Fault("crash b"),
                ),
            )
        )
        assert "&lt;CHANGE&gt; &amp; more (lost)" in drawn
        assert "<CHANGE>" not in drawn
        assert "b to a: VERIFY (answer: fail)" in drawn
        assert drawn.count('class="bad"') == 1


def test_bounds_that_make_no_sense_are_refused_in_a_sentence() -> None:
    form = dict.fromkeys(("nodes", "clients", "changes", "crashes", "drops", "swallows", "in_flight"), "1")
    assert setting_of({**form, "nodes": "3", "profile": "nacos-2.2.4"}, Setting()).bounds.nodes == 3
    with pytest.raises(UsageError, match="nodes takes a number from 0 to 9, not 'many'"):
        setting_of({**form, "nodes": "many"}, Setting())


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Explorer, str]]:
    """The explorer on a free port, in a loop of its own."""
    explorer = Explorer(replace(RELEASE))
    loop, ready = asyncio.new_event_loop(), threading.Event()
    runner = web.AppRunner(explorer.application(), access_log=None)
    address = ""

    async def start() -> None:
        nonlocal address
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        address = f"http://127.0.0.1:{runner.addresses[0][1]}"
        ready.set()

    def run() -> None:
        loop.run_until_complete(start())
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(20)
    yield explorer, address
    loop.call_soon_threadsafe(loop.stop)
    thread.join()


@pytest.mark.wire
@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/", {}),
        ("/?token=wrong", {}),
        ("/", {"Cookie": f"{COOKIE}=wrong"}),
        ("/?token={token}", {"Host": "evil.example:80"}),
    ],
)
async def test_a_request_without_the_token_or_under_a_foreign_name_is_refused(
    served: tuple[Explorer, str], path: str, headers: dict[str, str]
) -> None:
    explorer, address = served
    url = address + path.format(token=explorer.token)
    async with aiohttp.ClientSession() as client, client.get(url, headers=headers) as answer:
        assert answer.status == 403


@pytest.mark.wire
@pytest.mark.parametrize(
    ("form", "origin"),
    [
        ({}, "{address}"),
        ({"token": "wrong"}, "{address}"),
        ({"token": "{token}"}, "http://127.0.0.1:1"),  # a page of another port on this machine sends the cookie too
    ],
)
async def test_a_form_of_another_page_changes_nothing(
    served: tuple[Explorer, str], form: dict[str, str], origin: str
) -> None:
    explorer, address = served
    before = explorer.walk
    sent = {name: value.format(token=explorer.token) for name, value in form.items()}
    headers = {"Cookie": f"{COOKIE}={explorer.token}", "Origin": origin.format(address=address)}
    async with (
        aiohttp.ClientSession() as client,
        client.post(f"{address}/take/0", data=sent, headers=headers, allow_redirects=False) as answer,
    ):
        assert answer.status == 403
    assert explorer.walk is before


@pytest.mark.wire
@pytest.mark.parametrize("target", ["process:touch /tmp/never", "process:my.toml", "attach:127.0.0.1:8848", "nacos:/a"])
async def test_the_browser_names_no_command_and_no_path_to_run(served: tuple[Explorer, str], target: str) -> None:
    explorer, address = served
    headers = {"Cookie": f"{COOKIE}={explorer.token}", "HX-Request": "true"}
    form = {"token": explorer.token, "target": target}
    async with (
        aiohttp.ClientSession() as client,
        client.post(f"{address}/play", data=form, headers=headers) as answer,
    ):
        assert "distrocheck replay FILE --target" in await answer.text()
    assert explorer.recorded is None


@pytest.fixture
def page(browser: Browser, served: tuple[Explorer, str]) -> Iterator[Page]:
    explorer, address = served
    page = browser.new_page()
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    explorer.walk, explorer.story, explorer.recorded = Walk.begin(RELEASE), "", None
    page.goto(f"{address}/?token={explorer.token}")
    expect(page.get_by_text("0 of 0 transitions")).to_be_visible()
    yield page
    page.close()
    assert errors == []


@pytest.mark.wire
@pytest.mark.slow  # needs a browser, which .ci/run installs
@pytest.mark.xdist_group("browser")
class TestPage:
    def test_a_person_clicks_through_a_change_and_back(self, page: Page) -> None:
        page.get_by_role("button", name="connect c1 a").click()
        expect(page.get_by_text("c1 native, revision 0, nothing")).to_be_visible()
        page.get_by_role("button", name="register c1 web 10.0.0.1:80 v=1").click()
        expect(page.get_by_text("CHANGE task of c1 for b", exact=True)).to_be_visible()
        expect(page.get_by_text("2 of 2 transitions")).to_be_visible()
        page.get_by_role("button", name="undo").click()
        expect(page.get_by_text("1 of 2 transitions")).to_be_visible()

    def test_a_bug_of_a_release_is_found_stepped_through_and_kept(self, page: Page) -> None:
        row = page.get_by_role("listitem").filter(has_text="INV-CONV")
        row.get_by_role("button", name="find a run").first.click()
        expect(page.get_by_text("0 of 7 transitions")).to_be_visible(timeout=60_000)
        for taken in range(1, 8):
            page.get_by_role("button", name="go on").click()
            expect(page.get_by_text(f"{taken} of 7 transitions")).to_be_visible()
        expect(page.get_by_text("INV-CONV: broken")).to_be_visible()
        page.get_by_role("button", name="as a scenario").click()
        expect(page.get_by_text("swallow a->b CHANGE")).to_be_visible()

    def test_a_story_is_shown_step_by_step_and_run_on_nodes(self, page: Page) -> None:
        page.get_by_role("button", name="lost change").click()
        expect(page.get_by_text("0 of 7 transitions")).to_be_visible(timeout=60_000)
        expect(page.get_by_text("a handler that swallows an exception is enough")).to_be_visible()
        for taken in range(1, 8):
            page.get_by_role("button", name="go on").click()
            expect(page.get_by_text(f"{taken} of 7 transitions")).to_be_visible()
        expect(page.get_by_text("the wrong copy stays for ever")).to_be_visible()
        expect(page.get_by_role("button", name="next story: swallowed delete")).to_be_visible()
        page.get_by_role("button", name="run", exact=True).click()
        expect(page.get_by_text("the scenario on embedded, profile nacos-2.0.4: violates")).to_be_visible(
            timeout=60_000
        )
        page.get_by_role("button", name="next row").click()
        expect(page.get_by_text("row 1 of")).to_be_visible()
        page.get_by_role("button", name="back to the model").click()
        expect(page.get_by_text("7 of 7 transitions")).to_be_visible()

    def test_a_story_that_was_left_is_shown_no_more(self, page: Page) -> None:
        page.get_by_role("button", name="lost change").click()
        section = page.get_by_role("region", name="The story")
        expect(section).to_be_visible(timeout=60_000)
        page.get_by_role("button", name="go on").click()
        page.get_by_text("Choose yourself").click()
        page.get_by_role("button", name="disconnect c1").click()
        expect(section).not_to_be_visible()
        expect(page.get_by_text("2 of 2 transitions")).to_be_visible()

    def test_a_recorded_run_is_opened_by_its_path(self, page: Page) -> None:
        page.get_by_placeholder("path of a file").fill(str(RECORDED))
        page.get_by_role("button", name="open").click()
        expect(page.get_by_text("row 0 of")).to_be_visible(timeout=60_000)
        page.get_by_role("button", name="next fault").click()
        expect(page.get_by_text("row 0 of")).not_to_be_visible()
        expect_accessible(page)
        page.get_by_placeholder("path of a file").fill("/nowhere")
        page.get_by_role("button", name="open").click()
        expect(page.get_by_role("alert")).to_contain_text("/nowhere")

    def test_a_mistake_in_the_form_is_shown_where_it_was_made(self, page: Page) -> None:
        page.get_by_label("nodes").evaluate("field => { field.type = 'text'; field.value = 'many' }")
        page.get_by_role("button", name="Start over").click()
        expect(page.get_by_role("alert")).to_have_text("nodes takes a number from 0 to 9, not 'many'")

    @pytest.mark.parametrize("theme", ["light", "dark"])
    @pytest.mark.parametrize("width", [390, 1280])
    def test_the_page_is_accessible_in_each_theme_and_width(self, page: Page, theme: str, width: int) -> None:
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 900})
        page.get_by_role("button", name="connect c1 a").click()
        expect(page.get_by_text("c1 native, revision 0, nothing")).to_be_visible()
        expect_accessible(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width

    def test_it_works_without_javascript(self, browser: Browser, served: tuple[Explorer, str]) -> None:
        explorer, address = served
        page = browser.new_context(java_script_enabled=False).new_page()
        page.goto(f"{address}/?token={explorer.token}")
        page.get_by_role("button", name="Start over").click()
        page.get_by_role("button", name="connect c1 a").click()
        expect(page.get_by_text("c1 native, revision 0, nothing")).to_be_visible()
