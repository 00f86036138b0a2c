"""The protocol reference: every citation has a target, and each missing statement has a reason."""

from __future__ import annotations

import re
from functools import cache

from pages.fidelity import WITHOUT_NODE, WITHOUT_RULE, nodes_of
from pages.statements import PAGES, citing_files, rules_of, statements
from programs import ROOT, executed

from distro_conformance.catalogue import cited_by, cited_in
from distro_conformance.requirements import all_requirements
from distro_model.rules.rule import RULES

HERE = "conformance/tests/test_protocol.py"
"""Cites what does not exist, so that the search for it is seen to find: docs/protocol #sync-nothing, nowhere.md."""
FOLDERS = ("model", "impl", "conformance", "traces", "spark", "protos", "bench", "tools")


def test_there_is_a_statement_for_every_area():
    assert {each.page for each in statements().values()} | {"README.md"} == {each.name for each in PAGES.glob("*.md")}


def test_every_statement_names_its_source():
    sources = {name: each.source for name, each in statements().items()}
    assert [name for name, of in sources.items() if not re.search(r"code|running|tracker|strict|unverified", of)] == []


def test_rules_cite_statements_that_exist():
    unknown = {name: cited_by(rule) - statements().keys() for name, rule in RULES.items()}
    assert {name: anchors for name, anchors in unknown.items() if anchors} == {}


def test_a_requirement_cites_statements_that_exist():
    cited = {each.id: cited_in(each.source) for each in all_requirements()}
    assert [name for name, anchors in cited.items() if not anchors or anchors - statements().keys()] == []


def test_every_citation_leads_to_a_statement():
    unknown = {path: cited - statements().keys() for path, cited in citing_files(*FOLDERS).items()}
    assert [path for path, anchors in unknown.items() if anchors] == [HERE]
    assert unknown[HERE] == {"sync-nothing"}


def test_a_statement_has_either_a_rule_or_a_reason():
    assert [each for each in statements() if bool(rules_of(each)) == (each in WITHOUT_RULE)] == []


def test_a_statement_has_either_a_place_in_the_node_or_a_reason():
    assert [each for each in statements() if bool(nodes_of(each)) == (each in WITHOUT_NODE)] == []


def test_reasons_are_about_statements():
    assert (WITHOUT_RULE.keys() | WITHOUT_NODE.keys()) <= statements().keys()


def test_no_file_speaks_of_a_document_that_is_not_here():
    """The repository has every file that it cites; names of files that a run writes are no citations.

    A page in `docs/reference` is linked from another one there by its name, in what generates it too.
    """
    places = (ROOT, ROOT / "docs", ROOT / "docs" / "reference")
    written = {"steps.md", "summary.md"}
    missing = {
        f"{path}: {name}"
        for path, text in tracked_texts()
        for name in re.findall(r"(?<![\w{}*<>/.-])[\w./-]*[\w-]\.md\b", text)
        if name not in written and not any((place / name).is_file() for place in (*places, path_of(path)))
    }
    assert missing == {f"{HERE}: nowhere.md"}


def test_no_file_counts_the_sections_of_a_document_that_is_not_here():
    """A bare "section" of a number says nothing without its document; statements of the protocol have names."""
    counted = [path for path, text in tracked_texts() if re.search(r"[\W]section \d", text)]
    assert counted == []


SECTIONS = re.compile(r"(?<=\s)\([4-9]\.\d+(?:, [4-9]\.\d+)*\)")
"""Numbers of sections in brackets. No release of Nacos begins with such a number."""


def test_no_file_cites_a_section_by_its_number():
    """A number (4.1) says nothing without its document, and statements of the protocol have names."""
    cited = {path: SECTIONS.findall(text) for path, text in tracked_texts()}
    assert {path: found for path, found in cited.items() if found} == {HERE: ["(4.1)"]}


def test_every_source_file_that_is_cited_exists():
    """A path in backticks that ends in .py is a file, by its whole path or by the end of it."""
    tracked = [f"/{name}" for name in executed("git", "ls-files", "*.py", cwd=ROOT, check=True).stdout.splitlines()]
    missing = {
        f"{path}: {name}"
        for path, text in tracked_texts()
        for name in re.findall(r"`([\w./-]*\w\.py)`", text)
        if "NAME" not in name and not any(each.endswith(f"/{name}") for each in tracked)
    }
    # A citation of this file, `nowhere.py`, and one in a test of pages lead nowhere, so that they are seen to be found.
    assert missing == {f"{HERE}: nowhere.py", "conformance/tests/test_pages.py: model/distro_model/gone.py"}


@cache
def tracked_texts():
    names = executed("git", "ls-files", cwd=ROOT, check=True).stdout.splitlines()
    texts = [name for name in names if name.endswith((".py", ".md", ".toml", ".yml", ".scenario"))]
    return [(name, (ROOT / name).read_text(encoding="utf-8")) for name in texts if (ROOT / name).is_file()]


def path_of(name):
    return (ROOT / name).parent
