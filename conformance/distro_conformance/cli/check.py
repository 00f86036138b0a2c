"""`distrocheck check PATH`: the invariants over recorded traces, on Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from distro_conformance.cli import app
from distro_conformance.cli.options import HtmlOption, JsonOption, only
from distro_conformance.cli.output import Progress, Told, print_json, progress, say, summary
from distro_conformance.cli.paths import readable, writable_directory, writable_file
from distro_conformance.plain import plain
from distro_conformance.verdict import UsageError, Verdict, pair
from distro_spark.java import require_java
from distro_traces.header import wall_clock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from distro_conformance.findings import Finding
    from distro_spark.result import CheckResult, EventReference, InvariantResult, Replay, Responsibility
    from distro_spark.sinks import Sink
    from distro_traces.unreached import Unreached

UNREACHED_PRINTED = 5
VIOLATIONS_PRINTED = 3
"""Of one invariant."""
JDBC = "DISTROCHECK_JDBC"
"""In the environment: the URL, which may hold a password."""
SMALL_BYTES = 8 * 1024 * 1024
"""Of NDJSON, some 50,000 events. Below this, starting and planning cost more than the work, and Spark is set up for
that."""
BYTES_PER_PARQUET_BYTE = 20


@app.command()
def check(
    path: Annotated[
        str,
        typer.Argument(help="A trace, a directory of traces (NDJSON, Parquet), on what Spark can read, or table:NAME."),
    ],
    master: Annotated[
        str | None, typer.Option(help="The Spark master; default: that of spark-submit, else this machine.")
    ] = None,
    invariant: Annotated[list[str] | None, only("--invariant")] = None,
    allow_quarantined: Annotated[
        bool,
        typer.Option("--allow-quarantined", help="Rows that do not fit are counted, and do not spoil the verdict."),
    ] = False,
    convergence: Annotated[
        bool, typer.Option("--convergence", help="Measure how long changes took to be everywhere.")
    ] = False,
    responsibility: Annotated[
        bool,
        typer.Option("--responsibility", help="Measure for how long none, one or several members claimed each client."),
    ] = False,
    replay: Annotated[
        bool, typer.Option("--replay", help="Hold every row against the model too, as 'validate' does with one run.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Keep the violations here, each once, as Parquet; with --follow its state too.")
    ] = None,
    jdbc: Annotated[
        str | None,
        typer.Option(help="Add the violations to the table 'violations' of this database, each once.", envvar=JDBC),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Watch a directory in which recordings are still being written.")
    ] = False,
    idle_s: Annotated[
        int | None, typer.Option(min=1, help="With --follow: end when nothing new was written for so many seconds.")
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A setting of Spark, as spark-submit has it; several times."),
    ] = None,
    html: HtmlOption = None,
    json: JsonOption = False,
) -> None:
    """Evaluate the invariants over recorded traces: which node diverged, from when, after which message."""
    is_here = not urlsplit(path).scheme
    if is_here:
        readable(Path(path), "trace")
    writable_file(html, "--html")
    settings = dict(pair(text, "--conf") for text in conf or ())
    if follow and (out is None or not is_here or not Path(path).is_dir()):
        raise UsageError("--follow needs a directory of this machine to watch, and --out for what it keeps")
    if idle_s is not None and not follow:
        raise UsageError("--idle-s says when --follow ends; give both")
    if out:
        writable_directory(out)
    require_java()
    # Spark is an extra, and heavy: only this verb and the gate load it.
    from distro_conformance.findings.traces import findings_of
    from distro_spark.check import check as run_check
    from distro_spark.check import chosen_invariants
    from distro_spark.session import local_session
    from distro_spark.sources import look_at

    chosen_invariants(invariant)
    if is_here and not follow:
        look_at(Path(path))
    sinks = _sinks(jdbc, out)
    with progress() as on_progress:
        on_progress("starting Spark")
        session = local_session(master, small=is_here and _size_bytes(Path(path)) < SMALL_BYTES, settings=settings)
        try:
            if follow and out:
                on_progress(f"following {path}")
                _follow(session, Path(path), out.absolute(), invariant, sinks, idle_s, tell=not json)
            on_progress(f"checking {path}")
            with tasks_told(session, on_progress, f"checking {path}"):
                result = run_check(
                    session,
                    path,
                    invariants=invariant,
                    allow_quarantined=allow_quarantined,
                    convergence=convergence,
                    responsibility=responsibility,
                    replay=replay,
                    sinks=sinks,
                )
        finally:
            session.stop()
    open_ends = _unreached(Path(path)) if is_here and not follow else []
    verdict, findings = Verdict(result.verdict), findings_of(result, path)
    if html:
        _write_page(result, findings, path, html)
    if json:
        print_json("check", {**result.to_json(), "findings": plain(findings), "unreached": plain(open_ends)})
    else:
        _print(result, open_ends)
        if html:
            say(f"Page: {html}")
        figures = f"{result.events} events, {result.runs} runs, {result.seconds:.1f} s"
        told = [_told(judged, result) for judged in result.invariants]
        summary([*told, *_told_by_model(result.replay)], verdict, figures)
    raise typer.Exit(verdict.exit_code)


def _write_page(result: CheckResult, findings: Sequence[Finding], path: str, html: Path) -> None:
    from distro_conformance.report import write_page
    from distro_conformance.report.traces import report_of_check

    write_page(report_of_check(result, findings, path), html)


def _unreached(path: Path) -> list[Unreached]:
    """What had not reached a member when runs without a checkpoint ended; of small recordings, which are read again."""
    from distro_traces.reading import headers_at, read_run
    from distro_traces.unreached import unreached

    if _size_bytes(path) >= SMALL_BYTES:
        return []
    return [each for header, _ in headers_at(path) for each in unreached(read_run(path, header.run).events)]


def _follow(
    session: SparkSession,
    path: Path,
    out: Path,
    invariants: list[str] | None,
    sinks: Sequence[Sink],
    idle_s: int | None,
    *,
    tell: bool,
) -> None:
    """Until nothing comes any more; each violation is told when it is found, if wanted."""
    from distro_spark.follow import follow

    def on_news(rows: Sequence[Mapping[str, Any]]) -> None:
        for row in rows if tell else ():
            known = f" (known, {row['known']})" if row["known"] else ""
            say(f"{row['invariant']}  run {row['run']}: {row['message']}{known}")

    follow(session, path, out, invariants=invariants, sinks=sinks, on_news=on_news, idle_s=idle_s)


def _sinks(jdbc: str | None, out: Path | None) -> list[Sink]:
    from distro_spark.sinks import JdbcSink, ParquetSink
    from distro_traces.parquet import VIOLATIONS

    database: list[Sink] = [JdbcSink(jdbc)] if jdbc else []
    return [*database, *([ParquetSink(str(out.absolute() / VIOLATIONS))] if out else [])]


@contextmanager
def tasks_told(session: SparkSession, on_progress: Progress, text: str) -> Iterator[None]:
    """Say twice a second how many tasks are done, of the jobs that Spark has begun."""
    tracker, over = session.sparkContext.statusTracker(), Event()

    def look() -> None:
        while not over.wait(0.5):
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup()]
            stages = {stage for job in jobs if job for stage in job.stageIds}
            known = [info for stage in stages if (info := tracker.getStageInfo(stage))]
            done, every = sum(each.numCompletedTasks for each in known), sum(each.numTasks for each in known)
            on_progress(f"{text}: {done} of {every} tasks that are known so far")

    watching = Thread(target=look, daemon=True)
    if on_progress.is_shown:
        watching.start()
    try:
        yield
    finally:
        over.set()
        if watching.is_alive():
            watching.join()


def _told(judged: InvariantResult, result: CheckResult) -> Told:
    news = [each for each in result.violations if each.known is None and each.invariant == judged.name]
    below = [
        line
        for each in news[:VIOLATIONS_PRINTED]
        for line in (
            f"run {each.run}: {each.message}",
            f"  first {_at(each.first_event, each.run, result)}, last {_at(each.last_event, each.run, result)}",
        )
    ]
    if judged.violations > VIOLATIONS_PRINTED:
        below.append(f"… {judged.violations - VIOLATIONS_PRINTED} more, see --html and --json")
    return Told(judged.verdict, f"{judged.name:<10} {judged.violations} violations  {judged.text}", below)


def _told_by_model(replay: Replay | None) -> Iterator[Told]:
    if replay is None:
        return
    below = [
        line
        for each in replay.rejections[:VIOLATIONS_PRINTED]
        for line in (f"run {each.run}: no transition is {each.event}", *(f"  {guard}" for guard in each.guards))
    ]
    verdict = "violates" if replay.rejected else "conforms"
    counts = f"{replay.rejected} rejected, {replay.undecided} rows not decided"
    yield Told(verdict, f"{'model':<10} {counts}  Every row is a step that the model allows.", below)


def _at(event: EventReference, run: str, result: CheckResult) -> str:
    clock = wall_clock(result.began.get(run), event.at_ms)
    return f"{event}" if clock is None else f"{event}, {clock}"


def _print(result: CheckResult, open_ends: Sequence[Unreached]) -> None:
    for end in open_ends[:UNREACHED_PRINTED]:
        say(f"  run {end.run}: {end}")
    if len(open_ends) > UNREACHED_PRINTED:
        say(f"  … {len(open_ends) - UNREACHED_PRINTED} more changes had not reached a member, see --json")
    known = [each for each in result.violations if each.known]
    for (name, bug), count in sorted(Counter((each.invariant, each.known or "") for each in known).items()):
        say(f"  {name}: {count} known, {bug}: {_known_text(name, bug)}")
        alike = [each for each in known if (each.invariant, each.known) == (name, bug)]
        one = min(alike, key=lambda each: (each.last_event.at_ms, each.run, each.node))
        after = "" if one.after is None else f", after message {one.after}"
        say(f"    the earliest: run {one.run}, {one.client or one.node}: {_at(one.last_event, one.run, result)}{after}")
    for judged in result.invariants:
        if more := judged.known - sum(each.invariant == judged.name for each in known):
            say(f"  {judged.name}: {more} more are known, and counted only")
    for misfit in result.quarantine:
        say(f"  quarantined: {misfit.rows} rows, {misfit.reason} (first: {misfit.place})")
    for cut in result.cuts:
        say(f"  cut in mid-line: {cut.file} line {cut.line}; everything before it was read")
    times = result.convergence
    if times and times.count:
        slowest = f"median {times.median_ms} ms, slowest {times.max_ms} ms until every node had them"
        say(f"  {times.count} changes, {slowest}")
    for line in _claims(result.responsibility, result.began):
        say(f"  {line}")
    for reason in result.reasons:
        say(f"  {reason}")


def _claims(found: Responsibility | None, began: Mapping[str, str]) -> Iterator[str]:
    if found is None:
        return
    total = max(1, found.none_ms + found.one_ms + found.several_ms)
    shares = (f"{ms / total:.2%} by {whom}" for ms, whom in ((found.one_ms, "one"), (found.none_ms, "none")))
    if found.clients:
        yield f"{found.clients} clients, claimed {', '.join(shares)}, {found.several_ms / total:.2%} by several members"
    if found.undecided:
        who = f"{found.undecided} {'further ' if found.clients else ''}clients"
        needs = "the state of every node and, of clients by ip:port, each CHANGE and VERIFY that is sent"
        yield f"not measured: who claimed {who}, since that needs {needs}"
    for each in found.intervals[:VIOLATIONS_PRINTED]:
        by = " and ".join(each.nodes) + (" and others" if each.claimers > len(each.nodes) else "") or "nobody"
        took_s = (each.until_ms - each.from_ms) / 1000
        clock = wall_clock(began.get(each.run), each.from_ms)
        since = f"{each.from_ms} ms" if clock is None else f"{each.from_ms} ms, {clock},"
        yield f"run {each.run}: {each.client} was claimed by {by} for {took_s:.1f} s, from {since} on"


def _known_text(invariant: str, bug: str) -> str:
    from distro_spark.known import KNOWN

    return next(each.text for each in KNOWN if invariant in each.about and each.bug == bug)


def _size_bytes(path: Path) -> int:
    """Of the recordings as NDJSON."""
    files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path] if path.exists() else []
    return sum(file.stat().st_size * (BYTES_PER_PARQUET_BYTE if file.suffix == ".parquet" else 1) for file in files)
