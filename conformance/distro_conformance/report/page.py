"""What the page shows beyond the report's own values: the first sentence, a picture of each finding, how long it took.

The page is for whoever opens it next: what failed, where, since when and after which message stands above everything,
then each finding with the run drawn around its first bad event. All of it is derived from the report and the traces
beside it; a finding without a recorded run has no picture, and nothing is drawn that was not recorded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from distro_conformance.diagrams.histogram import histogram
from distro_conformance.diagrams.svg import svg
from distro_conformance.diagrams.trace import Reference, sequence_of_client
from distro_conformance.findings import Finding, Judgement
from distro_conformance.report.document import Failure, Report

FINDINGS_DRAWN_MAX = 20
SLOWEST_SHOWN = 5
HISTORY = "history.ndjson"
HISTORY_SHOWN = 30
_REFERENCE = re.compile(r" of (\S+) at -?\d+ ms \(seq (\d+)\)")


@dataclass(frozen=True, slots=True)
class Section:
    """One finding; `picture` is empty where no run was recorded."""

    finding: Finding
    picture: Markup


@dataclass(frozen=True, slots=True)
class FailedRun:
    failure: Failure
    picture: Markup


@dataclass(frozen=True, slots=True)
class Earlier:
    """A report that was written into the same directory before."""

    date: str
    verdict: str
    headline: str


@dataclass(frozen=True, slots=True)
class Page:
    report: Report
    sections: tuple[Section, ...]
    failed_runs: tuple[FailedRun, ...]
    times: Markup
    slowest: tuple[Mapping[str, object], ...]
    earlier: tuple[Earlier, ...]

    @property
    def areas(self) -> tuple[str, ...]:
        """Of the requirements: the second word of their ids."""
        return tuple(dict.fromkeys(area_of(finding) for finding in self.report.requirements))

    @property
    def judgements(self) -> tuple[str, ...]:
        return tuple(judgement.value for judgement in Judgement)


def page_of(report: Report, directory: Path) -> Page:
    """`directory` is where the report goes, and where its traces are."""
    changes = [change for change in report.changes if change.get("ms") is not None]
    slowest = sorted(changes, key=_ms, reverse=True)[:SLOWEST_SHOWN]
    times = histogram([_ms(change) for change in changes], unit="ms", title="How long a change took to be everywhere")
    sections = tuple(
        Section(finding, _picture_of(finding, report.traces) if number < FINDINGS_DRAWN_MAX else Markup())
        for number, finding in enumerate(report.news)
    )
    failed = tuple(FailedRun(failure, _picture(failure.recording)) for failure in report.failures)
    return Page(report, sections, failed, Markup(times), tuple(slowest), earlier_reports(directory))


def area_of(finding: Finding) -> str:
    parts = finding.about.split("-")
    return parts[1] if len(parts) > 1 else parts[0]


def sentence(finding: Finding) -> str:
    """The one sentence that a colleague needs."""
    where = " and ".join(part for part in (finding.node, finding.client) if part)
    parts = [f"{finding.about}: {finding.message or finding.text}".rstrip(".")]
    parts += [f"at {where}"] if where else []
    parts += [f"since {finding.since}"] if finding.since else []
    parts += [f"after {finding.after}"] if finding.after else []
    expected = f" Expected: {finding.expected.rstrip('.')}." if finding.expected else ""
    return f"{', '.join(parts)}.{expected}"


def on_each_target(replay: str) -> str:
    """The command on model, nodes and a real server."""
    command = replay.partition(" --target ")[0]
    return "\n".join(f"{command} --target {target}" for target in ("model", "embedded", "nacos:2.2.4"))


def remember(report: Report, directory: Path) -> None:
    """Add this report to those of the directory, so that the next one can show how it went before."""
    line = {"date": report.origin["date"], "verdict": report.verdict.value, "headline": report.headline}
    with (directory / HISTORY).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def earlier_reports(directory: Path) -> tuple[Earlier, ...]:
    """The last ones, oldest first. A line that is cut or foreign is passed over: it costs a mark, never the report."""
    path = directory / HISTORY
    if not path.is_file():
        return ()
    found = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines()[-HISTORY_SHOWN:]:
        try:
            values = json.loads(line)
            found.append(Earlier(values["date"], values["verdict"], values["headline"]))
        except (ValueError, KeyError, TypeError):
            continue
    return tuple(found)


def _ms(change: Mapping[str, object]) -> int:
    value = change["ms"]
    return value if isinstance(value, int) else 0


def _picture_of(finding: Finding, traces: str) -> Markup:
    """The client's story from the recorded run, around the first bad event."""
    if not (finding.run and finding.client):
        return Markup()
    named = _REFERENCE.search(finding.since or "")
    return _picture(traces, finding.run, finding.client, (named[1], int(named[2])) if named else None)


def _picture(path: str, run: str | None = None, client: str | None = None, bad: Reference | None = None) -> Markup:
    """Nothing where nothing was recorded, or where it cannot be read: the page is about more than this run."""
    if not path:
        return Markup()
    from distro_traces.errors import TraceError  # noqa: PLC0415 - Parquet is an extra
    from distro_traces.reading import read_run  # noqa: PLC0415

    try:
        events = read_run(Path(path), run).events
    except (OSError, TraceError):
        return Markup()
    return Markup(svg(sequence_of_client(events, client, bad)))
