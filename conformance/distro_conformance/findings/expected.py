"""Failures that the owner of a server expects: a file that a person has read, and that is kept with the server.

The release of a server selects the requirements, and excuses no failure: only failures listed in the file do not fail
the run. A listed requirement that passes is a violation, so that the file does not outlive the failures.

    [DISTRO-SYNC-001]                # any failure of this requirement
    seen = "expected …; seen: {}"    # for readers; it is not compared

    [DISTRO-NATIVE-001]
    bug = "B01"                      # only a failure with the symptom of this defect
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from distro_conformance.findings.finding import MUST, Finding, Judged, Judgement
from distro_conformance.findings.symptoms import SYMPTOMS
from distro_conformance.verdict import UsageError, why_unreadable
from distro_model.defects import link_of
from distro_model.defects.symptom import of

DESCRIBED = ("process", "attach")
"""Kinds of target whose protocol the kit knows, but not their defects."""
_KEYS = ("bug", "seen")
_OPTION = "--expect-failures"

Entry = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Expectations:
    """`path` is the file that was read, with its `entries` by requirement; failures are written to `write_to`."""

    path: Path | None = None
    entries: Mapping[str, Entry] = field(default_factory=dict)
    write_to: Path | None = None

    @classmethod
    def of(cls, target: str, path: Path | None, write_to: Path | None, requirements: Collection[str]) -> Expectations:
        """Raises UsageError for a file that cannot be read or is not valid, and for a target whose defects are in the
        kit."""
        if (path or write_to) and target.partition(":")[0] not in DESCRIBED:
            raise UsageError(f"{_OPTION} and --write-expected are for process: and attach:, not for {target}")
        return cls(path, {} if path is None else _read(path, requirements), write_to)

    def judged(self, found: Judged) -> Judged:
        """The same result, with each listed failure `known`, and each listed requirement that passes a violation."""
        if self.write_to is not None:
            self.write_to.write_text("".join(self._lines(found)), encoding="utf-8")
        return replace(found, findings=tuple(map(self.applied_to, found.findings)))

    def applied_to(self, finding: Finding) -> Finding:
        entry = self.entries.get(finding.about)
        if entry is None or finding.judgement not in (Judgement.VIOLATES, Judgement.CONFORMS):
            return finding
        if finding.judgement is Judgement.CONFORMS:
            message = f"it is expected to fail by {self.path}, and passes: remove the entry"
            return replace(finding, judgement=Judgement.VIOLATES, level=MUST, message=message)
        bug = entry.get("bug")
        if bug is not None and not _shows(finding, bug):
            message = f"{finding.message} (expected by {self.path} with the symptom of {bug}, which is absent)"
            return replace(finding, message=message)
        message = f"expected by {self.path}{f', {bug}' if bug else ''}: {finding.message}"
        link = link_of(bug) or finding.link
        return replace(finding, judgement=Judgement.KNOWN, known=bug or str(self.path), link=link, message=message)

    def _lines(self, found: Judged) -> Iterator[str]:
        """The failures, and the old entries of requirements that were not judged this time."""
        judged = {each.about for each in found.findings if each.judgement in (Judgement.VIOLATES, Judgement.CONFORMS)}
        entries = {name: entry for name, entry in self.entries.items() if name not in judged}
        entries |= {each.about: _entry(each, found.profile or "") for each in found.findings if each.violates}
        yield f"# Expected failures of {found.target}, which speaks {found.profile}. Read each before you keep it.\n"
        for name in sorted(entries):
            yield f"\n[{name}]\n"
            yield from (f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in entries[name].items())


def _entry(failure: Finding, profile: str) -> Entry:
    """The entry, with the defect of the profile if the failure has its symptom."""
    shown = [each.bug for each in of(SYMPTOMS, failure.about, profile) if not each.missing(failure.observed)]
    return {**({"bug": shown[0]} if shown else {}), "seen": failure.message}


def _shows(failure: Finding, bug: str) -> bool:
    """Whether the failure has a symptom of the defect, whatever the release."""
    found = (each for each in SYMPTOMS if each.bug == bug and failure.about in each.about)
    return any(not each.missing(failure.observed) for each in found)


def _read(path: Path, requirements: Collection[str]) -> dict[str, Entry]:
    try:
        entries = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{_OPTION} {path}: {why_unreadable(error)}") from error
    for name, entry in entries.items():
        if wrong := _problem(name, entry, requirements):
            raise UsageError(f"{_OPTION} {path}: {wrong}")
    return entries


def _problem(name: str, entry: Any, requirements: Collection[str]) -> str | None:
    if name not in requirements:
        return f"there is no requirement {name!r}; 'distrocheck list requirements' has them all"
    if not isinstance(entry, dict) or not all(isinstance(value, str) for value in entry.values()):
        return f"{name} must be a table of texts: [{name}], then bug = '…' or seen = '…'"
    if unknown := sorted(entry.keys() - set(_KEYS)):
        return f"there is no key '{name}.{unknown[0]}'; keys are {', '.join(_KEYS)}"
    bugs = sorted({each.bug for each in SYMPTOMS if name in each.about})
    if (bug := entry.get("bug")) is not None and bug not in bugs:
        return f"{name} shows no defect {bug!r}; it may show {', '.join(bugs) or 'none: leave bug out'}"
    return None
