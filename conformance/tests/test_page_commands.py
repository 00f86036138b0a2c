"""Every command that a page shows can be typed.

Blocks fenced as `console` are executed and their output compared (docs/conftest.py). What needs real servers, a Spark
cluster, a browser or no end is fenced as `sh`: of it each `distrocheck` line is read by the command line itself, and
each HTTP request of docs/node.md is answered by nodes. No block with commands has another fence. Every block that
is not executed stands in a table of docs/tests.md with its reason.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import shlex
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from distro_conformance.cli import app
from distro_conformance.cli.verbs import COMMAND, LazyGroup
from distro_impl import Cluster

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    if page.name != "CHANGELOG.md" and "schemas" not in page.parts
)
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
PROGRAMS = ("distrocheck", "make", "curl", "python", "python3", "pytest", "spark-submit", "go", "cd", "pip")
MAIN_PORTS = re.compile(r"127\.0\.0\.1:(8848|8858|8868)")


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    """(language, text) of each fenced block."""
    yield from FENCE.findall(page.read_text("utf-8"))


def commands(text: str) -> Iterator[list[str]]:
    """The words of each line that is a command, without `$`, comment and what comes behind `|`, `>` or `&&`."""
    for line in text.replace("\\\n", " ").splitlines():
        for part in re.split(r"\s(?:&&|[|]|>)\s", line.removeprefix("$ ")):
            words = shlex.split(part, comments=True) if part.startswith(PROGRAMS) else []
            if words and words[0] in PROGRAMS:
                yield words


ROW = re.compile(r"^\| `([^`]+\.md)` \| `([^`]+)` \| (.+) \|$", re.MULTILINE)
CHINESE = {"README.zh-CN.md": "README.md", "docs/tutorial.zh-CN.md": "docs/tutorial.md"}


def unexecuted(page: Path) -> list[str]:
    """How each of its blocks begins that nobody executes; includes of files are executed or read where these are."""
    others = [text for language, text in blocks(page) if language != "console" and not text.startswith("--8<--")]
    return [" ".join(text.split())[:80] for text in others]


def excused() -> list[tuple[str, str]]:
    """(page, how its block begins), of the table in docs/tests.md."""
    return [(page, begins) for page, begins, _ in ROW.findall((ROOT / "docs" / "tests.md").read_text("utf-8"))]


def without_reason(name: str, beginnings: list[str], table: list[tuple[str, str]]) -> list[str]:
    listed = tuple(begins for page, begins in table if page == CHINESE.get(name, name))
    return [begins for begins in beginnings if not begins.startswith(listed)]


def read(words: list[str]) -> None:
    """As the command line reads it, without doing it. Raises its exceptions for mistakes, and LookupError."""
    command, rest = typer.main.get_command(app), words[1:]
    while isinstance(command, LazyGroup) and rest[:1] != ["--version"]:
        within = command.make_context(command.name, rest[:1] or ["--help"], resilient_parsing=True)
        found = command.get_command(within, rest[0])
        if found is None:
            raise LookupError(f"no verb {rest[0]}")
        command, rest = found, rest[1:]
    if not isinstance(command, LazyGroup):
        with contextlib.suppress(typer.Exit):  # of `--help`
            command.make_context(command.name, rest)


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_what_a_page_says_to_type_is_understood(page: Path) -> None:
    for language, text in blocks(page):
        for words in commands(text):
            assert language in ("console", "sh"), f"a block with `{shlex.join(words)}` is fenced as '{language}'"
            if words[0] == COMMAND:
                read(words)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_block_is_executed_or_it_is_said_why_not(page: Path) -> None:
    assert without_reason(named(page), unexecuted(page), excused()) == []


def test_a_reason_goes_with_its_block() -> None:
    shown = {named(page): unexecuted(page) for page in PAGES}
    assert [row for row in excused() if not any(text.startswith(row[1]) for text in shown.get(row[0], []))] == []


def test_a_block_without_a_reason_is_noticed() -> None:
    table = [("a page", "distrocheck ui")]
    beginnings = ["distrocheck ui", "distrocheck serve"]
    assert without_reason("a page", beginnings, table) == ["distrocheck serve"]
    assert without_reason("another page", beginnings, table) == beginnings


@pytest.mark.parametrize(("chinese", "english"), CHINESE.items())
def test_a_translation_has_the_same_blocks(chinese: str, english: str) -> None:
    """Comments apart, which are translated."""

    def told(name: str) -> list[tuple[str, list[str]]]:
        lines = ((language, text.splitlines()) for language, text in blocks(ROOT / name))
        return [(language, [re.sub(r" {2,}#.*", "", line).rstrip() for line in of]) for language, of in lines]

    assert told(chinese) == told(english)


@pytest.mark.parametrize("mistake", ["distrocheck gat", "distrocheck gate --bugdet quick", "distrocheck test nodes"])
def test_what_nobody_can_type_is_noticed(mistake: str) -> None:
    with pytest.raises(Exception, match=r"No such option|no verb"):
        read(shlex.split(mistake))


@pytest.mark.wire
def test_the_requests_that_the_page_of_the_node_shows_are_answered() -> None:
    requests = [
        words for _, text in blocks(ROOT / "docs" / "node.md") for words in commands(text) if words[0] == "curl"
    ]
    assert requests

    def ask(url: str, method: str) -> int:
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=30) as answer:
            return int(answer.status)

    async def ask_all() -> list[int]:
        async with Cluster(3) as cluster:
            nodes = dict(zip(("8848", "8858", "8868"), cluster.addresses, strict=True))
            return [
                await asyncio.to_thread(
                    ask,
                    MAIN_PORTS.sub(lambda found: nodes[found[1]], words[-1]),
                    words[words.index("-X") + 1] if "-X" in words else "GET",
                )
                for words in requests
            ]

    assert set(asyncio.run(ask_all())) == {200}
