"""The invariants over a recording that another verb has just made: a search in real time asks them why the nodes of a
run differ. `check` has a page, figures and any number of runs; here no Spark is no reason to stop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from distro_conformance.cli.output import Told, say_aside
from distro_conformance.extras import missing_extras
from distro_conformance.findings import Finding
from distro_conformance.walks.tally import Check
from distro_spark.java import JavaMissingError, require_java


def checker() -> Check | None:
    """The invariants, for recordings of runs whose nodes differ; None, and why is said, where Spark cannot be had."""
    missing = missing_extras("spark")
    try:
        if missing is None and require_java():
            return _checked
    except JavaMissingError as error:
        missing = str(error)
    say_aside(f"why nodes differ is not looked up here: {missing}")
    return None


def _checked(place: Path) -> Sequence[Finding]:
    from distro_conformance.findings.traces import findings_of
    from distro_spark.check import check
    from distro_spark.session import local_session

    session = local_session(small=True)
    try:
        return findings_of(check(session, place), str(place))
    finally:
        session.stop()


def told_of(checked: Sequence[Finding]) -> Iterator[Told]:
    """One of each kind: which node, since when, after which message."""
    alike: dict[tuple[str, str | None], list[Finding]] = {}
    for each in checked:
        alike.setdefault((each.about, each.known), []).append(each)
    for (about, known), (first, *others) in alike.items():
        bug = f"known, {known}: " if known else ""
        more = f" ({len(others)} more)" if others else ""
        after = f", after {first.after}" if first.after else ""
        where = (f"{first.node}, since {first.since}{after}",) if first.node else ()
        yield Told(first.judgement, f"{about:<10} {bug}{first.message}{more}", (*where, first.again))
