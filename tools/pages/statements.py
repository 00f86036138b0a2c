"""The protocol reference as data: the statements of docs/protocol, and the files that cite them.

A statement is a heading, which is its anchor, a line with releases and source, and sentences. Code, requirements and
tests cite it as `#anchor`, rules in their `source`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from distro_conformance.catalogue import cited_by, cited_in, replacements_of
from distro_model.rules.rule import RULES, Rule

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "protocol"
TESTS = ("model/tests", "impl/tests", "conformance/tests", "spark/tests", "traces/tests", "protos/tests")
_STATEMENT = re.compile(r"^### (?P<anchor>\S+)\n\*(?P<span>[^·\n]*)(?: · (?P<source>[^\n]*))?\*\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Statement:
    anchor: str
    page: str
    source: str


@cache
def statements() -> Mapping[str, Statement]:
    """By anchor, in the order of the pages."""
    return {
        match["anchor"]: Statement(match["anchor"], page.name, match["source"] or match["span"].strip())
        for page in sorted(PAGES.glob("*.md"))
        for match in _STATEMENT.finditer(page.read_text())
    }


def texts(*folders: str) -> Iterator[tuple[str, str]]:
    """Path from the root and text of the Python files below these folders."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), path.read_text()


@cache
def _words_of_tests() -> Mapping[str, frozenset[str]]:
    """Of each file of tests that mentions rules."""
    of_rules = (each for each in texts("model/tests") if "distro_model.rules" in each[1])
    return {path: frozenset(re.findall(r"\w+", text)) for path, text in of_rules}


def tests_of(rule: Rule) -> tuple[str, ...]:
    """The files of tests that name the rule or a replacement of it."""
    functions = {rule.own.__name__, *(each.__name__ for each in replacements_of(rule).values())}
    return tuple(
        path for path, words in _words_of_tests().items() if any(each in words for each in functions if "_" in each)
    )


@cache
def citing_files(*folders: str) -> Mapping[str, frozenset[str]]:
    """Path from the root -> the anchors that the file cites, of the Python files below these folders."""
    return {path: cited_in(text) for path, text in texts(*folders)}


def rules_of(anchor: str) -> tuple[Rule, ...]:
    return tuple(rule for rule in RULES.values() if anchor in cited_by(rule))
