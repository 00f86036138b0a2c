"""The bugs of real servers that the kit finds, and the commands that show each today: docs/reference/track-record.md.

From the list of known failures, the scenarios that are named after a bug, and the releases that can be fetched: a bug
that is listed stands there, with a release on which anybody can see it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from distro_conformance.findings.known import KNOWN_FAILURES, KnownFailure
from distro_conformance.release import Span
from distro_conformance.requirements import all_requirements
from distro_conformance.targets.releases import RELEASES
from distro_conformance.verdict import UsageError

ASKED_ALWAYS = "2.2.4"
"""The release whose real servers are held against everything in CI (`.ci/run`)."""

PICTURES = {"B02": "lost-change.svg", "B24": "swallowed-delete.svg"}
_SCENARIOS = Path(__file__).parents[2] / "scenarios"


def track_record_page(note: str) -> str:
    lines = ["# Track record", "", note, "", *_HEAD]
    by_bug = sorted(KNOWN_FAILURES, key=lambda entry: entry.bug)
    listed = {bug: tuple(found) for bug, found in groupby(by_bug, key=lambda entry: entry.bug)}
    for bug in sorted({*listed, *_scenarios()}):
        lines += ["", f"## {bug}", "", *_bug(bug, listed.get(bug, ()))]
    return "\n".join(lines) + "\n"


def _bug(bug: str, entries: tuple[KnownFailure, ...]) -> Iterator[str]:
    texts = {requirement.id: requirement.text for requirement in all_requirements()}
    for entry in entries:
        yield f"* {entry.requirement}, {entry.releases}: {entry.reason}. ([reported or read here]({entry.link}))"
        yield f"    * expected: {texts[entry.requirement]}"
    commands = [
        f"distrocheck test node --target nacos:{release} --requirement {entry.requirement}"
        for entry in entries
        if (release := _release_for(entry.releases)) is not None and "nacos" in entry.targets
    ]
    commands += [f"distrocheck replay {path} --target nacos:{release}" for path, release in _scenarios().get(bug, ())]
    if bug in PICTURES:
        yield from ("", f"![the run](../explanation/{PICTURES[bug]})")
    if commands:
        yield from ("", "```", *commands, "```")


def _release_for(span: Span) -> str | None:
    """The one that is asked on every change, or the newest that can be fetched."""
    fetched = (ASKED_ALWAYS, *reversed(RELEASES))
    return next((release for release in fetched if f"nacos-{release}" in span), None)


def _scenarios() -> dict[str, list[tuple[str, str]]]:
    """Bug -> paths of its scenarios, each with the release in its profile line."""
    found: dict[str, list[tuple[str, str]]] = {}
    for path in sorted(_SCENARIOS.glob("b[0-9][0-9]-*.scenario")):
        profile = next(line.split()[1] for line in path.read_text("utf-8").splitlines() if line.startswith("profile "))
        release = profile.removeprefix("nacos-")
        if release not in RELEASES:
            raise UsageError(f"{path}: nobody can fetch {profile}")
        found.setdefault(path.name[:3].upper(), []).append((f"scenarios/{path.name}", release))
    return found


_HEAD = (
    "Bugs of released servers that the requirements and scenarios of this repository show. Each command starts that",
    "release, and the failure that it tells of has the symptom of the bug; a release without it meets the requirement.",
    f"What is in {ASKED_ALWAYS} is seen there on every change, in CI; commands with another release are run by hand.",
    "The names B.. are those of the catalogue that mutants are named after.",
)
