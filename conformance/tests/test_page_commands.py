"""Every block that a page shows is executed, and every command can be typed.

What is fenced as `console` is executed and compared, what has a `title` is written as the file that those blocks use
(docs/conftest.py), an included file is tested where it lies. Any other block some test takes off its page with
`blocks.block`, and executes or compares it; a command is only among those where that test is named here. Commands in
the text are read by the command line.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from blocks import ROOT, Block, blocks
from programs import understood

from distro_conformance.cli.verbs import COMMAND

PAGES = sorted(
    page
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    if page.name != "CHANGELOG.md" and "schemas" not in page.parts
)
PROGRAMS = ("distrocheck", "make", "curl", "python", "python3", "pytest", "spark-submit", "go", "cd", "pip")
CHINESE = {"README.zh-CN.md": "README.md", "docs/tutorial.zh-CN.md": "docs/tutorial.md"}
EXECUTED_BY_TESTS = {
    ("README.md", "make gate"): "test_ci.py",
    ("docs/tutorial.md", "python3 -m venv"): "test_package.py",
}
"""What takes a clone of its own to execute, minutes and a network."""

TAKEN = re.compile(r"""\bblock\("([^"]+)", "([^"]+)"\)""")
IN_TEXT = re.compile(r"`(distrocheck (?:[^`…]*[^`…\s])?)`")


def found_in(page: Path) -> list[Block]:
    return list(blocks(page.read_text("utf-8")))


def typed(text: str) -> Iterator[list[str]]:
    """The words of each line that is a command, without `$`, comment and what comes behind `|`, `>` or `&&`."""
    for line in text.replace("\\\n", " ").splitlines():
        for part in re.split(r"\s(?:&&|[|>&])(?:\s|$)", line.removeprefix("$ ")):
            words = shlex.split(part, comments=True) if part.startswith(PROGRAMS) else []
            if words and words[0] in PROGRAMS:
                yield words


def taken_by_tests() -> dict[tuple[str, str], str]:
    """(page, how its block begins) -> the file of the test that takes it."""
    files = [file for file in ROOT.glob("*/tests/test_*.py") if file.name != Path(__file__).name]
    return {each: file.name for file in files for each in TAKEN.findall(file.read_text("utf-8"))}


def unexecuted(name: str, shown: list[Block], taken: dict[tuple[str, str], str]) -> list[str]:
    """How each block begins that nobody executes or compares. A translation goes with its original."""
    page = CHINESE.get(name, name)
    left = [each for each in shown if not (each.is_executed or each.title or each.is_included)]
    known = {begins: file for (of, begins), file in taken.items() if of == page}
    alone = []
    for each in left:
        begins = next((begins for begins in known if each.text.startswith(begins)), None)
        needs_execution = any(True for _ in typed(each.text))
        if begins is None or (needs_execution and EXECUTED_BY_TESTS.get((page, begins)) != known[begins]):
            alone.append(" ".join(each.text.split())[:80])
    return alone


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_what_a_page_says_to_type_is_understood(page: Path) -> None:
    text = page.read_text("utf-8")
    for words in (words for each in blocks(text) for words in typed(each.text)):
        if words[0] == COMMAND:
            understood(words)
    for found in IN_TEXT.findall(text):
        with contextlib.suppress(
            typer._click.exceptions.MissingParameter
        ):  # a sentence may leave out what stands above
            understood(shlex.split(found))


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_block_of_a_page_is_executed(page: Path) -> None:
    assert unexecuted(named(page), found_in(page), taken_by_tests()) == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_file_that_a_page_shows_is_used_by_a_command_below_it(page: Path) -> None:
    shown = found_in(page)
    for file in (each for each in shown if each.title):
        below = [
            command for each in shown if each.is_executed and each.start > file.start for command in each.text.split()
        ]
        assert any(file.title in word for word in below), f"nobody uses {file.title}"


def test_what_tests_take_is_there() -> None:
    for page, begins in {**taken_by_tests(), **EXECUTED_BY_TESTS}:
        assert any(each.text.startswith(begins) for each in found_in(ROOT / page)), (page, begins)


@pytest.mark.parametrize(
    "page",
    [
        "```sh\ndistrocheck ui\n```\n",
        "```\nmake lint\n```\n",
        "```text\nconforms       explore\n```\n",
        "```python\nimport distro_spark\n```\n",
    ],
)
def test_a_block_that_nobody_executes_is_noticed(page: str) -> None:
    assert len(unexecuted("docs/node.md", list(blocks(page)), taken_by_tests())) == 1


def test_that_a_test_compares_a_command_is_not_enough() -> None:
    shown = list(blocks("```sh\nmake bench\n```\n"))
    assert unexecuted("README.md", shown, {("README.md", "make bench"): "test_gate.py"}) == ["make bench"]


@pytest.mark.parametrize(("chinese", "english"), CHINESE.items())
def test_a_translation_has_the_same_blocks(chinese: str, english: str) -> None:
    """Comments apart, which are translated."""

    def told(name: str) -> list[tuple[str, list[str]]]:
        lines = ((each.language, each.text.splitlines()) for each in found_in(ROOT / name))
        return [(language, [re.sub(r" {2,}#.*", "", line).rstrip() for line in of]) for language, of in lines]

    assert told(chinese) == told(english)


@pytest.mark.parametrize("mistake", ["distrocheck gat", "distrocheck gate --bugdet quick", "distrocheck test nodes"])
def test_what_nobody_can_type_is_noticed(mistake: str) -> None:
    with pytest.raises(Exception, match=r"No such option|no verb"):
        understood(shlex.split(mistake))
