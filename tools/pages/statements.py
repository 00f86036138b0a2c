"""The protocol reference as data: the statements of docs/protocol, and the files that cite them.

A statement is a heading, which is its anchor, a line with releases and source, and sentences. Code, requirements and
tests cite it as `#anchor`, rules in their `source`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from distro_conformance.protocol import ROOT, cited_by, cited_in, texts
from distro_model.rules.rule import RULES, Rule

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


@cache
def citing_files(*folders: str) -> Mapping[str, frozenset[str]]:
    """Path from the root -> the anchors that the file cites, of the Python files below these folders."""
    return {path: cited_in(text) for path, text in texts(*folders)}


def rules_of(anchor: str) -> tuple[Rule, ...]:
    return tuple(rule for rule in RULES.values() if anchor in cited_by(rule))
