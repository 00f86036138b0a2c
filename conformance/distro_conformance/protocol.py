"""Citations of the protocol reference: `#anchor` in a text that mentions docs/protocol, and the `source` of a rule.

Only a checkout has the tests; an installed package has none, and reports none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from distro_conformance.requirements import all_requirements
from distro_model.mutants import MUTANTS
from distro_model.rules.rule import Function, Rule, name_of

ROOT = Path(__file__).resolve().parents[2]
_CITATION = re.compile(r"(?<!\.md)#([a-z0-9]+(?:-[a-z0-9]+)+)")


def cited_in(text: str) -> frozenset[str]:
    """The anchors that a text cites, known or not: `#anchor` where it mentions docs/protocol."""
    return frozenset(_CITATION.findall(text)) if "docs/protocol" in text else frozenset()


def cited_by(rule: Rule) -> frozenset[str]:
    anchors, _, _ = rule.source.partition(";")
    return frozenset(each.strip() for each in anchors.split(","))


def texts(*folders: str) -> Iterator[tuple[str, str]]:
    """Path from the root and text of the Python files below these folders."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), path.read_text()


@cache
def _test_words() -> Mapping[str, frozenset[str]]:
    """Test file that mentions rules -> its words."""
    return {
        path: frozenset(re.findall(r"\w+", text)) for path, text in texts("model/tests") if "distro_model.rules" in text
    }


def tests_of(rule: Rule) -> tuple[str, ...]:
    """The requirements that share a statement with the rule, and the files of tests that name it or a replacement."""
    requirements = [each.id for each in all_requirements() if cited_in(each.source) & cited_by(rule)]
    functions = {rule.own.__name__, *(each.__name__ for each in replacements_of(rule).values())}
    files = [path for path, words in _test_words().items() if any(each in words for each in functions if "_" in each)]
    return (*requirements, *files)


def replacements_of(rule: Rule) -> Mapping[str, Function]:
    """The replacements of this rule in mutants: id -> function."""
    return {
        mutant.id: function
        for mutant in MUTANTS.values()
        for function in mutant.rules
        if name_of(function) == rule.name
    }
