"""A continuous audit: one line for each change between two readings, and the current state for Prometheus.

The lines are for a log. The text file for Prometheus is for alerts: it is replaced after each reading and has the time
of that reading. Both report what a single audit reports.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from distro_conformance.audit.cluster_view import Disagreement
from distro_conformance.audit.compare import Audited, Diverged, DivergedList
from distro_conformance.verdict import Verdict

Finding = Disagreement | DivergedList | Diverged
BEGAN, CHANGED, ENDED = "began", "changed", "ended"
METRICS: Mapping[str, str] = {
    "distrocheck_diverged_clients": "Clients about which members differ.",
    "distrocheck_diverged_clients_since_seconds": "The time since the oldest of them was first observed.",
    "distrocheck_diverged_lists": "Services whose lists differ between members.",
    "distrocheck_diverged_lists_since_seconds": "The time since the oldest of them was first observed.",
    "distrocheck_member_disagreements": "Members about whose presence or state member lists differ.",
    "distrocheck_member_disagreements_since_seconds": "The time since the oldest of them was first observed.",
    "distrocheck_member_up": "Whether the last reading of the member succeeded.",
    "distrocheck_member_clients": "Clients that the member holds.",
    "distrocheck_audit_exit_code": "0 conforms, 1 violates, 3 inconclusive, 4 fewer than two members can be read.",
    "distrocheck_audit_last_look_timestamp_seconds": "The time of the last reading; an alert on its age reports that "
    "the audit has ended.",
}


def changes(before: Audited | None, now: Audited) -> Iterator[dict[str, Any]]:
    """The findings that began, changed or ended since the previous reading, causes first."""
    earlier = _findings(before) if before is not None else {}
    found = _findings(now)
    for key, finding in found.items():
        known = earlier.get(key)
        if known is None or _without_time(known) != _without_time(finding):
            yield _line(BEGAN if known is None else CHANGED, key, finding)
    for key, finding in earlier.items():
        if key not in found:
            yield _line(ENDED, key, finding)
    yield from _members(before, now)
    if before is None or before.verdict is not now.verdict:
        yield {"change": CHANGED, "what": "verdict", "subject": "", "text": str(now.verdict)}


def _findings(audited: Audited) -> dict[tuple[str, str], Finding]:
    """By kind and subject."""
    return {
        **{(f"member {each.matter}", each.about): each for each in audited.disagreements},
        **{("service list", each.service): each for each in audited.diverged_lists},
        **{("client", each.client): each for each in audited.diverged},
    }


def _members(before: Audited | None, now: Audited) -> Iterator[dict[str, Any]]:
    could = {} if before is None else {reading.member: reading.error for reading in before.readings}
    for reading in now.readings:
        was_silent, is_silent = could.get(reading.member) is not None, reading.error is not None
        if was_silent != is_silent:
            text = f"{reading.member} cannot be read: {reading.error}" if is_silent else f"{reading.member} is read"
            yield {
                "change": BEGAN if is_silent else ENDED,
                "what": "unreadable",
                "subject": reading.member,
                "text": text,
            }


def _without_time(finding: Finding) -> object:
    if isinstance(finding, Disagreement):
        return finding.views
    return {held.member: held.holding for held in finding.members} if isinstance(finding, Diverged) else finding.members


def _line(change: str, key: tuple[str, str], finding: Finding) -> dict[str, Any]:
    what, subject = key
    return {
        "change": change,
        "what": what,
        "subject": subject,
        "since": finding.since.isoformat(timespec="milliseconds"),
        "seen_for_s": round(finding.seen_for_s, 3),
        "text": finding.sentence(),
    }


def metrics(audited: Audited | None, exit_code: int, at: datetime) -> str:
    """The text format of Prometheus. Before the second reading, and while nothing can be compared, the counts are left
    out: an alert must not read them as zero."""
    rows: dict[str, list[tuple[str, float]]] = {
        "distrocheck_audit_exit_code": [("", exit_code)],
        "distrocheck_audit_last_look_timestamp_seconds": [("", round(at.timestamp(), 3))],
    }
    if audited is not None:
        members = {reading.member: reading for reading in audited.readings}
        rows["distrocheck_member_up"] = [(name, float(each.error is None)) for name, each in members.items()]
        clients = [(name, float(len(each.clients))) for name, each in members.items() if each.error is None]
        rows["distrocheck_member_clients"] = clients
        if audited.rounds > 1:
            wrong = tuple(each for each in audited.disagreements if each.is_violation)
            kinds: Mapping[str, tuple[Finding, ...]] = {
                "distrocheck_diverged_clients": audited.diverged,
                "distrocheck_diverged_lists": audited.diverged_lists,
                "distrocheck_member_disagreements": wrong,
            }
            for name, found in kinds.items():
                rows[name] = [("", len(found))]
                rows[f"{name}_since_seconds"] = [("", max((each.seen_for_s for each in found), default=0.0))]
    lines = []
    for name, text in METRICS.items():
        if name in rows:
            lines += [f"# HELP {name} {text}", f"# TYPE {name} gauge"]
            lines += [f"{name}{_label(member)} {value:.10g}" for member, value in rows[name]]
    return "\n".join(lines) + "\n"


def write_metrics(path: Path, text: str) -> None:
    """Replace the file atomically: a reader sees the old file or the new one. Raises OSError."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def exit_code_of(audited: Audited | None) -> int:
    return Verdict.INCONCLUSIVE.exit_code if audited is None else audited.verdict.exit_code


def now() -> datetime:
    return datetime.now(UTC)


def _label(member: str) -> str:
    escaped = member.replace("\\", r"\\").replace('"', r"\"")
    return f'{{member="{escaped}"}}' if member else ""
