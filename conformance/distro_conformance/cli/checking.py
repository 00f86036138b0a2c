"""The invariants over a recording that another verb has just made: a search in real time uses them to find out why the
nodes of a run differ. Unlike `check` this goes on without a missing extra."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from distro_conformance.cli.output import ResultLine, say_aside
from distro_conformance.extras import missing_extras
from distro_conformance.findings import Finding
from distro_conformance.walks.stage import Check


def checker() -> Check | None:
    """The invariants, for recordings of runs whose nodes differ; None, after a note with the reason, if an extra is
    missing."""
    missing = missing_extras("traces")
    if missing is None:
        return _checked
    say_aside(f"the reason why nodes differ is not looked up: {missing}")
    return None


def _checked(place: Path) -> Sequence[Finding]:
    from distro_conformance.findings.traces import findings_of
    from distro_spark.check import check
    from distro_spark.local import Local

    return findings_of(check(Local(place)), str(place))


def lines_of(checked: Sequence[Finding]) -> Iterator[ResultLine]:
    """A line for each kind of finding: the node, the time, and the message after which it began."""
    alike: dict[tuple[str, str | None], list[Finding]] = {}
    for each in checked:
        alike.setdefault((each.about, each.known), []).append(each)
    for (about, known), (first, *others) in alike.items():
        bug = f"known, {known}: " if known else ""
        more = f" ({len(others)} more)" if others else ""
        after = f", after {first.after}" if first.after else ""
        where = (f"{first.node}, since {first.since}{after}",) if first.node else ()
        yield ResultLine(first.judgement, f"{about:<10} {bug}{first.message}{more}", (*where, first.again))
