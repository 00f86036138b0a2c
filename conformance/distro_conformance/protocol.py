"""The protocol reference as data: the statements of docs/protocol, and who cites them.

A statement is a heading, which is its anchor, a line with releases and source, and sentences. Code, requirements and
tests cite it as `#anchor`, rules in their `source`. Only a checkout has the pages and the tests; an installed package
has neither, and says nothing about them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from distro_conformance.requirements import all_requirements
from distro_model.mutants import MUTANTS
from distro_model.rules.rule import RULES, Function, Rule, name_of

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "protocol"
_STATEMENT = re.compile(r"^### (?P<anchor>\S+)\n\*(?P<span>[^·\n]*)(?: · (?P<source>[^\n]*))?\*\n", re.MULTILINE)
_CITATION = re.compile(r"(?<!\.md)#([a-z0-9]+(?:-[a-z0-9]+)+)")


@dataclass(frozen=True, slots=True)
class Statement:
    anchor: str
    page: str
    span: str
    source: str


@cache
def statements() -> Mapping[str, Statement]:
    """By anchor, in the order of the pages. Nothing where there is no checkout."""
    found = {}
    for page in sorted(PAGES.glob("*.md")):
        for match in _STATEMENT.finditer(page.read_text()):
            span, source = match["span"].strip(), match["source"] or match["span"].strip()
            found[match["anchor"]] = Statement(match["anchor"], page.name, span, source)
    return found


def cited_in(text: str) -> frozenset[str]:
    """The anchors that a text cites, known or not: `#anchor` where it speaks of docs/protocol."""
    return frozenset(_CITATION.findall(text)) if "docs/protocol" in text else frozenset()


def cited_by(rule: Rule) -> frozenset[str]:
    anchors, _, _ = rule.source.partition(";")
    return frozenset(each.strip() for each in anchors.split(","))


@cache
def citing_files(*folders: str) -> Mapping[str, frozenset[str]]:
    """Path from the root -> the anchors that the file cites, of the Python files below these folders."""
    return {path.relative_to(ROOT).as_posix(): cited_in(text) for path, text in _texts(*folders)}


def _texts(*folders: str) -> Iterator[tuple[Path, str]]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path, path.read_text()


TESTS = ("model/tests", "impl/tests", "conformance/tests", "spark/tests", "traces/tests", "protos/tests")


@cache
def _test_words() -> Mapping[str, frozenset[str]]:
    """File of tests that speaks of rules -> the words in it."""
    return {
        path.relative_to(ROOT).as_posix(): frozenset(re.findall(r"\w+", text))
        for path, text in _texts("model/tests")
        if "distro_model.rules" in text
    }


def tests_of(rule: Rule) -> tuple[str, ...]:
    """The requirements that share a statement with the rule, and the files of tests that name it or a replacement."""
    requirements = [each.id for each in all_requirements() if cited_in(each.source) & cited_by(rule)]
    functions = {rule.own.__name__, *(each.__name__ for each in replacements_of(rule).values())}
    files = [path for path, words in _test_words().items() if any(each in words for each in functions if "_" in each)]
    return (*requirements, *files)


def replacements_of(rule: Rule) -> Mapping[str, Function]:
    """What takes the place of this rule in mutants: id -> function."""
    return {
        mutant.id: function
        for mutant in MUTANTS.values()
        for function in mutant.rules
        if name_of(function) == rule.name
    }


def rules_of(anchor: str) -> tuple[Rule, ...]:
    return tuple(rule for rule in RULES.values() if anchor in cited_by(rule))
