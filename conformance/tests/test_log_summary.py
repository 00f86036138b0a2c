"""The output after `import nacos-logs`: the summary, its page, what `check` and `validate` say of the trace."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from programs import Call, Document

if TYPE_CHECKING:
    from playwright.sync_api import Browser

DATA = Path(__file__).parents[2] / "traces" / "tests" / "data"
CASES = DATA / "cases"
NEVER = (
    "1716170760000_10.0.0.2_40002's change at 10.9.0.1:8848, 360100 ms, never reached 10.9.0.3:8848; 40 calls failed, "
    "the last after 3000 ms"
)


def log_summary(call: Call, logs: Path, out: Path, *more: str) -> str:
    found = call("import", "nacos-logs", str(logs), "--out", str(out), *more)
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_a_first_look_is_a_screen_that_ends_in_the_command_for_more(call: Call, tmp_path: Path) -> None:
    lines = log_summary(call, CASES / "23", tmp_path).splitlines()
    assert len(lines) <= 24
    assert lines[0] == "n0: 10.9.0.1:8848"
    assert re.search(r"2024-05-20 10:00:00\.000 to 2024-05-20 10:10:05\.100: .*protocol-distro \(INFO\)", lines[1])
    [line_of_it] = [line for line in lines if NEVER in line]
    assert line_of_it.endswith("(protocol-distro.log:23)")
    assert lines[-1] == f"distrocheck check {tmp_path / 'nacos-logs.ndjson'}"


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        ("05", "never loaded: waits for a member list (28 times), sends no verify (5 times)  (protocol-distro.log:1)"),
        ("08", "pushes to the subscriber 10.0.5.6 failed: svc-b after 20000 ms, svc-c after 20000 ms"),
        ("10", "closed the connection of 1779700000000_10.0.6.6_50111: nothing came from it, and it did not answer"),
        ("19", "runs as 1.x: what it replicates does not go by the rules of 2.x: upgrade check result false"),
        ("10f", "No record reports a problem."),
        ("02", "no record has its address (--node a=HOST:PORT)"),
        ("02", "the release is not logged, so nothing can be judged; name it with --profile nacos-X.Y.Z"),
    ],
)
def test_the_story_says(call: Call, tmp_path: Path, case: str, sentence: str) -> None:
    assert sentence in log_summary(call, CASES / case, tmp_path)


def test_the_document_has_the_story_too(document: Document, tmp_path: Path) -> None:
    code, found = document("import", "nacos-logs", str(CASES / "23"), "--out", str(tmp_path))
    assert code == 0
    assert [each["kind"] for each in found["troubles"]] == ["unreached", "link"]
    assert found["spans"][0]["node"] == "10.9.0.1:8848"


def test_the_page_draws_a_lane_for_each_node_and_stands_alone(call: Call, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert f"Page: {page}" in log_summary(call, CASES / "23", tmp_path / "out", "--html", str(page))
    text = page.read_text()
    assert NEVER.replace("'", "&#39;") in text
    assert len(re.findall(r'class="bar read"', text)) == 3
    assert re.findall(r"""(?:src|href)=["']""", text) == []


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
class TestInTheBrowser:
    def test_the_page_zooms_by_its_slider_and_by_a_click_on_a_bar(
        self, call: Call, tmp_path: Path, browser: Browser
    ) -> None:
        log_summary(call, CASES / "23", tmp_path / "out", "--html", str(tmp_path / "page.html"))
        page = browser.new_page(viewport={"width": 1200, "height": 800})
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto((tmp_path / "page.html").as_uri())
        bar, scroll, labels = (
            page.locator(".drawn .bar.link").first,
            page.locator(".scroll").first,
            page.locator(".axis span"),
        )

        def width() -> float:
            box = bar.bounding_box()
            assert box is not None
            return box["width"]

        before = width()
        assert labels.first.text_content() == "10:00:00.0"
        page.locator(".zoom").fill("2")
        assert width() == pytest.approx(2 * before, rel=0.01)
        assert scroll.evaluate("one => Math.abs(one.scrollLeft + one.clientWidth / 2 - one.scrollWidth / 2) < 5")
        page.locator(".zoom").fill("1")
        bar.click()
        shown = scroll.evaluate("one => one.clientWidth")
        assert width() == pytest.approx(0.6 * shown, rel=0.05)
        assert bar.is_visible()
        assert labels.count() > 8
        rejected = page.locator(".drawn .bar.unreached").first.get_attribute("title")
        assert rejected is not None
        assert NEVER in rejected
        assert errors == []
        page.close()


def test_check_says_which_change_never_arrived(call: Call, document: Document, tmp_path: Path) -> None:
    log_summary(call, CASES / "23", tmp_path)
    code, found = document("check", str(tmp_path), "--invariant", "INV-OWNER")
    assert code == 0
    [each] = found["unreached"]
    assert (each["member"], each["failed"], each["last_ms"], each["open_since_ms"]) == (
        "10.9.0.3:8848",
        40,
        3000,
        605100,
    )


@pytest.mark.parametrize(("case", "vacuous"), [("05", True), ("10f", False)])
def test_validate_of_a_release_that_is_not_named_proves_nothing(
    call: Call, tmp_path: Path, case: str, vacuous: bool
) -> None:
    log_summary(call, CASES / case, tmp_path)
    found = call("validate", str(tmp_path))
    assert found.returncode == 3
    assert "the trace does not name its release; it was compared with nacos-2.3.2, which proves nothing" in found.stdout
    assert ("vacuous: no row is about a client" in found.stdout) == vacuous
    named = call("validate", str(tmp_path), "--profile", "nacos-2.1.2")
    assert ("does not name its release" in named.stdout, named.returncode) == (False, 3)


def test_the_page_of_a_check_draws_the_nodes_and_the_holders_of_its_clients(call: Call, tmp_path: Path) -> None:
    log_summary(call, CASES / "23", tmp_path)
    page = tmp_path / "check.html"
    assert call("check", str(tmp_path), "--html", str(page)).returncode == 3
    text = page.read_text()
    up = re.findall(r'class="bar up" title="([^"]*)" style="left: ([\d.]+)%; width: ([\d.]+)%', text)
    assert [(left, width) for _, left, width in up] == [("0.0", "100.0"), ("0.0", "59.677"), ("0.0", "80.978")]
    held = re.findall(r'class="bar (form\d)" title="([^"]*)"', text)
    assert sorted(form for form, _ in held) == ["form0", "form1", "form1"]  # connected, then registered; the copy
    assert len(re.findall(r"<small>10\.9\.0\.3:8848</small>", text)) == 1
    assert text.count('class="bar unreached" title=') == 2  # at the node and in the client's lane
    assert re.findall(r"""(?:src|href)=["'](?!#|data:)""", text) == []


@pytest.mark.slow
def test_a_recording_with_violations_is_drawn_with_its_faults(call: Call, tmp_path: Path) -> None:
    call("simulate", "--mutant", "B02", "--faults", "all", "--duration-s", "60", "--seed", "5", "--out", str(tmp_path))
    page = tmp_path / "check.html"
    assert call("check", str(tmp_path), "--html", str(page)).returncode == 1
    kinds = set(re.findall(r'class="bar ([a-z-]+)" title=', page.read_text()))
    assert {"up", "fault", "link", "violation"} <= kinds
