"""Every block that a page shows is executed, and every command can be typed.

What is fenced as `console` is executed and compared, what has a `title` is written as the file that those blocks use
(docs/conftest.py), an included file is tested where it lies. Any other block some test takes off its page with
`blocks.block`, and executes or compares it; a command is only among those where that test is named here. Commands in
the text are read by the command line.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from blocks import ROOT, Block, blocks
from programs import understood

from distro_conformance.cli import COMMAND

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
"""Commands that need a clone of their own, minutes and a network."""

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
    """The first words of each block that no test executes or compares. A translation goes with its original."""
    page = CHINESE.get(name, name)
    left = [each for each in shown if not (each.is_executed or each.title or each.is_included or each.is_picture)]
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


def refused(text: str) -> Iterator[str]:
    """Each command of the page that the command line does not accept, with the reason."""
    commands = [words for each in blocks(text) for words in typed(each.text) if words[0] == COMMAND]
    for words in commands + [shlex.split(found) for found in IN_TEXT.findall(text)]:
        try:
            understood(words)
        except typer._click.exceptions.MissingParameter as error:
            if words in commands:  # a sentence may leave out the words above it
                yield f"{shlex.join(words)}: {error}"
        except (typer._click.exceptions.UsageError, LookupError) as error:
            yield f"{shlex.join(words)}: {error}"


def test_commands_on_pages_are_accepted_by_the_command_line() -> None:
    found = {named(page): list(refused(page.read_text("utf-8"))) for page in PAGES}
    assert {page: commands for page, commands in found.items() if commands} == {}


def test_every_block_of_a_page_is_executed() -> None:
    taken = taken_by_tests()
    found = {named(page): unexecuted(named(page), found_in(page), taken) for page in PAGES}
    assert {page: blocks for page, blocks in found.items() if blocks} == {}


def unused(shown: list[Block]) -> list[str]:
    """Titles of files that no command below them names."""
    return [
        file.title
        for file in shown
        if file.title
        and not any(
            file.title in word
            for each in shown
            if each.is_executed and each.start > file.start
            for word in each.text.split()
        )
    ]


def test_every_file_that_a_page_shows_is_used_by_a_command_below_it() -> None:
    found = {named(page): unused(found_in(page)) for page in PAGES}
    assert {page: files for page, files in found.items() if files} == {}


def test_blocks_that_tests_take_exist() -> None:
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
def test_a_block_that_no_test_executes_is_noticed(page: str) -> None:
    assert len(unexecuted("docs/node.md", list(blocks(page)), taken_by_tests())) == 1


def test_that_a_test_compares_a_command_is_not_enough() -> None:
    shown = list(blocks("```sh\nmake bench\n```\n"))
    assert unexecuted("README.md", shown, {("README.md", "make bench"): "test_gate.py"}) == ["make bench"]


@pytest.mark.parametrize(("chinese", "english"), CHINESE.items())
def test_a_translation_has_the_same_blocks(chinese: str, english: str) -> None:
    """Comments apart, which are translated."""

    def blocks(name: str) -> list[tuple[str, list[str]]]:
        lines = ((each.language, each.text.splitlines()) for each in found_in(ROOT / name))
        return [(language, [re.sub(r" {2,}#.*", "", line).rstrip() for line in of]) for language, of in lines]

    assert blocks(chinese) == blocks(english)


@pytest.mark.parametrize("mistake", ["distrocheck gat", "distrocheck gate --bugdet quick", "distrocheck test nodes"])
def test_a_command_that_cannot_be_typed_is_noticed(mistake: str) -> None:
    with pytest.raises(Exception, match=r"No such option|no verb"):
        understood(shlex.split(mistake))
