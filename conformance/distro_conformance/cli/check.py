"""`distrocheck check PATH`: the invariants over recorded traces, in this process or on Spark."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from distro_conformance.cli import app
from distro_conformance.cli.options import (
    HtmlOption,
    JsonOption,
    fresh_file,
    only,
    readable,
    require_extras,
    writable_directory,
)
from distro_conformance.cli.output import ResultLine, echo, echo_page, echo_stderr, print_json, progress, summary
from distro_conformance.plain import plain
from distro_conformance.verdict import UsageError, Verdict, pair
from distro_spark.java import require_java
from distro_traces.header import wall_clock

if TYPE_CHECKING:
    from polars import DataFrame
    from pyspark.sql import SparkSession

    from distro_conformance.findings import Finding
    from distro_conformance.report.recorded import Drawn
    from distro_spark.engine import Engine
    from distro_spark.result import CheckResult, EventReference, InvariantResult, Replay, Responsibility
    from distro_spark.sinks import Sink
    from distro_traces.unreached import Unreached

RUNS_DRAWN = 3
UNREACHED_PRINTED = 5
VIOLATIONS_PRINTED = 3
"""The number of violations that are printed of one invariant."""
JDBC = "DISTROCHECK_JDBC"
"""Environment variable with the URL, which may hold a password."""
ENGINES = ("local", "spark")
SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Environment variable of a program that spark-submit has started."""
LOCAL_BYTES_MAX = 4 << 30
"""The largest size of NDJSON that is checked in this process by default: some 15 million events, in 8 GB of memory."""
SMALL_BYTES = 8 * 1024 * 1024
"""Below this size of NDJSON, some 50,000 events, Spark takes longer to start and to plan than to work. The session is
configured for that."""
BYTES_PER_PARQUET_BYTE = 20


@app.command()
def check(
    path: Annotated[
        str,
        typer.Argument(
            help="A trace or a directory of traces (NDJSON, Parquet), wherever Spark can read; or table:NAME."
        ),
    ],
    master: Annotated[
        str | None, typer.Option(help="The Spark master; default: that of spark-submit, else this machine.")
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help="local (in this process) or spark; default: local, unless --master, --conf, --jdbc, a table or the "
            "size needs Spark."
        ),
    ] = None,
    invariant: Annotated[list[str] | None, only("--invariant")] = None,
    allow_quarantined: Annotated[
        bool,
        typer.Option(
            "--allow-quarantined", help="Rows that do not fit the schema are counted and do not change the verdict."
        ),
    ] = False,
    convergence: Annotated[
        bool, typer.Option("--convergence", help="Measure how long changes took to reach every node.")
    ] = False,
    responsibility: Annotated[
        bool,
        typer.Option("--responsibility", help="Measure how long no, one or several members claimed each client."),
    ] = False,
    replay: Annotated[
        bool, typer.Option("--replay", help="Also compare every row with the model, as 'validate' does with one run.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Write the violations here, each once, as Parquet; with --follow also its state."),
    ] = None,
    jdbc: Annotated[
        str | None,
        typer.Option(help="Add the violations to the table 'violations' of this database, each once.", envvar=JDBC),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Watch a directory in which recordings are still being written.")
    ] = False,
    idle_s: Annotated[
        int | None, typer.Option(min=1, help="With --follow: end when nothing was written for this number of seconds.")
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A setting of Spark, as in spark-submit; may be given several times."),
    ] = None,
    html: HtmlOption = None,
    json: JsonOption = False,
) -> None:
    """Evaluate the invariants over recorded traces: which node diverged, from when, after which message."""
    is_here = not urlsplit(path).scheme
    if is_here:
        readable(Path(path), "trace")
    fresh_file(html, "--html")
    settings = dict(pair(text, "--conf") for text in conf or ())
    if follow and (out is None or not is_here or not Path(path).is_dir()):
        raise UsageError("--follow needs a directory of this machine to watch, and --out for what it finds")
    if idle_s is not None and not follow:
        raise UsageError("--idle-s limits --follow; give both")
    if out:
        writable_directory(out)
    needs_spark = [name for name, given in (("--master", master), ("--conf", conf), ("--jdbc", jdbc)) if given]
    needs_spark += [] if is_here else [path]
    on_spark = _is_on_spark(engine, needs_spark, Path(path))
    require_extras("spark" if on_spark else "traces")
    # Both are extras, loaded only here: Polars takes a moment to load, Spark some seconds.
    from distro_conformance.findings.traces import findings_of
    from distro_spark.check import check as run_check
    from distro_spark.check import chosen_invariants

    chosen_invariants(invariant)
    with progress() as on_progress, ExitStack() as opened:
        if follow:
            on_progress(f"following {path}")
            _follow(Path(path), invariant, _sinks(None, None, out), idle_s, prints=not json)
        session = None
        if on_spark:
            if not (master or "").startswith("sc://"):  # Spark Connect: Java runs on the server
                require_java()
            from distro_spark.session import local_session

            on_progress("starting Spark")
            is_small = is_here and _size_bytes(Path(path)) < SMALL_BYTES
            session = local_session(master, small=is_small, settings=settings)
            opened.callback(session.stop)
        on_progress(f"checking {path}")
        result = run_check(
            _engine(session, path, opened),
            invariants=invariant,
            allow_quarantined=allow_quarantined,
            convergence=convergence,
            responsibility=responsibility,
            replay=replay,
            sinks=_sinks(session, jdbc, out),
        )
    open_ends = _unreached(Path(path)) if is_here and not follow else []
    verdict, findings = Verdict(result.verdict), findings_of(result, path)
    if html:
        drawn = _drawn(Path(path), result, open_ends) if is_here and not follow else []
        _write_page(result, findings, path, html, drawn)
    if json:
        print_json("check", {**result.to_json(), "findings": plain(findings), "unreached": plain(open_ends)})
    else:
        _print(result, open_ends)
        echo_page(html)
        figures = f"{result.events} events, {result.runs} runs, {result.seconds:.1f} s"
        lines = list(_lines(result))
        summary([*lines, *_lines_by_model(result.replay)], verdict, figures)
    raise typer.Exit(verdict.exit_code)


def _write_page(
    result: CheckResult, findings: Sequence[Finding], path: str, html: Path, drawn: Sequence[Drawn]
) -> None:
    from distro_conformance.report import write_page
    from distro_conformance.report.traces import report_of_check

    write_page(report_of_check(result, findings, path), html, drawn=drawn)


def _drawn(path: Path, result: CheckResult, open_ends: Sequence[Unreached]) -> list[Drawn]:
    """The first runs as lanes, those with violations first. Only for small recordings, since they are read a second
    time."""
    from distro_conformance.report.recorded import Bad, drawn
    from distro_traces.reading import headers_at, read_run

    if _size_bytes(path) >= SMALL_BYTES:
        return []
    bad: defaultdict[str, list[Bad]] = defaultdict(list)
    for each in result.violations:
        kind = "violation" if each.known is None else "known"
        times = (each.first_event.at_ms, each.last_event.at_ms)
        bad[each.run].append(Bad(kind, each.client, each.node, f"{each.invariant}: {each.message}", *times))
    for end in open_ends:
        bad[end.run].append(Bad("unreached", end.client, end.member, str(end), end.first_ms, None))
    headers = sorted((header for header, _ in headers_at(path)), key=lambda header: (header.run not in bad, header.run))
    return [drawn(header, read_run(path, header.run).events, bad[header.run]) for header in headers[:RUNS_DRAWN]]


def _unreached(path: Path) -> list[Unreached]:
    """The changes that had not reached a member at the end of a run without a checkpoint. Only for small recordings,
    since they are read a second time."""
    from distro_traces.reading import headers_at, read_run
    from distro_traces.unreached import unreached

    if _size_bytes(path) >= SMALL_BYTES:
        return []
    return [
        each for header, _ in headers_at(path) for each in unreached(read_run(path, header.run).events, header.observed)
    ]


def _is_on_spark(engine: str | None, needs_spark: Sequence[str], path: Path) -> bool:
    if engine not in (None, *ENGINES):
        raise UsageError(f"there is no engine '{engine}'; there are {', '.join(ENGINES)}")
    if engine == "local" and needs_spark:
        raise UsageError(f"--engine local: {', '.join(needs_spark)} needs Spark; take --engine spark")
    if engine == "spark" or needs_spark or SUBMITTED in os.environ:
        return True
    size, most = _size_bytes(path), LOCAL_BYTES_MAX
    if engine is None and size > most:
        echo_stderr(f"{path}: {size / 2**30:.1f} GB as NDJSON, more than {most / 2**30:.0f} GB: checked on Spark")
        return True
    return False


def _engine(session: SparkSession | None, path: str, opened: ExitStack) -> Engine:
    from distro_spark.local import Local

    if session is None:
        return Local(path)
    from distro_spark.on_spark import OnSpark

    return opened.enter_context(OnSpark(session, path))


def _follow(
    path: Path, invariants: list[str] | None, sinks: Sequence[Sink], idle_s: int | None, *, prints: bool
) -> None:
    """Follow the recordings until nothing new arrives; with `prints`, print each violation when it is found."""
    from distro_spark.follow import follow

    def on_violations(found: DataFrame) -> None:
        for row in found.iter_rows(named=True) if prints else ():
            known = f" (known, {row['known']})" if row["known"] else ""
            echo(f"{row['invariant']}  run {row['run']}: {row['message']}{known}")

    follow(path, invariants=invariants, sinks=sinks, on_violations=on_violations, idle_s=idle_s)


def _sinks(session: SparkSession | None, jdbc: str | None, out: Path | None) -> list[Sink]:
    from distro_spark.sinks import JdbcSink, ParquetSink
    from distro_traces.parquet import VIOLATIONS

    database: list[Sink] = [JdbcSink(session, jdbc)] if jdbc and session else []
    return [*database, *([ParquetSink(out.absolute() / VIOLATIONS)] if out else [])]


def _lines(result: CheckResult) -> Iterator[ResultLine]:
    """A line for each invariant, and one for all that could not be judged, with the rows that each needs."""
    from distro_spark.invariants import NEEDS

    open_ones = [each.name for each in result.invariants if each.verdict == "not-judged" and not each.violations]
    yield from (_line(each, result) for each in result.invariants if each.name not in open_ones)
    if open_ones:
        count = f"{len(open_ones)} of {len(result.invariants)}, for which not enough was recorded"
        yield ResultLine("not-judged", count, [f"{name:<10} needs {NEEDS[name]}" for name in open_ones])


def _line(judged: InvariantResult, result: CheckResult) -> ResultLine:
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
    if judged.undecided:
        below.append(f"not judged of {judged.undecided} nodes, of which not enough was recorded")
    return ResultLine(judged.verdict, f"{judged.name:<10} {judged.violations} violations  {judged.text}", below)


def _lines_by_model(replay: Replay | None) -> Iterator[ResultLine]:
    if replay is None:
        return
    below = [
        line
        for each in replay.rejections[:VIOLATIONS_PRINTED]
        for line in (f"run {each.run}: no transition is {each.event}", *(f"  {guard}" for guard in each.guards))
    ]
    verdict = "violates" if replay.rejected else "not-judged" if replay.undecided else "conforms"
    counts = f"{replay.rejected} rejected, {replay.undecided} rows not decided"
    yield ResultLine(verdict, f"{'model':<10} {counts}  Every row is a step that the model allows.", below)


def _at(event: EventReference, run: str, result: CheckResult) -> str:
    clock = wall_clock(result.began.get(run), event.at_ms)
    return f"{event}" if clock is None else f"{event}, {clock}"


def _print(result: CheckResult, open_ends: Sequence[Unreached]) -> None:
    for end in open_ends[:UNREACHED_PRINTED]:
        echo(f"  run {end.run}: {end}")
    if len(open_ends) > UNREACHED_PRINTED:
        echo(f"  … {len(open_ends) - UNREACHED_PRINTED} more changes had not reached a member, see --json")
    known = [each for each in result.violations if each.known]
    for (name, bug), count in sorted(Counter((each.invariant, each.known or "") for each in known).items()):
        echo(f"  {name}: {count} known, {bug}: {_known_text(name, bug)}")
        alike = [each for each in known if (each.invariant, each.known) == (name, bug)]
        one = min(alike, key=lambda each: (each.last_event.at_ms, each.run, each.node))
        after = "" if one.after is None else f", after message {one.after}"
        echo(
            f"    the earliest: run {one.run}, {one.client or one.node}: {_at(one.last_event, one.run, result)}{after}"
        )
    for judged in result.invariants:
        if more := judged.known - sum(each.invariant == judged.name for each in known):
            echo(f"  {judged.name}: {more} more are known and only counted")
    for each in result.quarantine:
        echo(f"  quarantined: {each.rows} rows, {each.reason} (first: {each.place})")
    for cut in result.cuts:
        echo(f"  cut in mid-line: {cut.file} line {cut.line}; everything before it was read")
    for line in _lags(result):
        echo(f"  {line}")
    for line in _claims(result.responsibility, result.began):
        echo(f"  {line}")
    for reason in result.reasons:
        echo(f"  {reason}")


def _lags(result: CheckResult) -> Iterator[str]:
    times = result.convergence
    if times and times.count:
        slowest = f"median {times.median_ms} ms, slowest {times.max_ms} ms until every node had them"
        yield f"{times.count} changes, {slowest}"
    if times and times.unconverged:
        yield f"{times.unconverged} changes had not reached a member that was up when the recording ended:"
        for each in [each for each in result.changes if each.ms is None][:VIOLATIONS_PRINTED]:
            at = _at(each.event, each.run, result)
            yield f"  run {each.run}: the change of {each.client} in {at} had not reached {each.node}"


def _claims(found: Responsibility | None, began: Mapping[str, str]) -> Iterator[str]:
    if found is None:
        return
    total = max(1, found.none_ms + found.one_ms + found.several_ms)
    shares = (f"{ms / total:.2%} by {claimers}" for ms, claimers in ((found.one_ms, "one"), (found.none_ms, "none")))
    if found.clients:
        yield f"{found.clients} clients, claimed {', '.join(shares)}, {found.several_ms / total:.2%} by several members"
        yield f"INV-OWNER: {found.verdict}, {found.violations} violations"
    if found.undecided:
        who = f"{found.undecided} {'further ' if found.clients else ''}clients"
        needs = "the state of every node and, of clients by ip:port, each CHANGE and VERIFY that is sent"
        yield f"not measured: which members claimed {who}, since that needs {needs}"
    for each in found.intervals[:VIOLATIONS_PRINTED]:
        by = " and ".join(each.nodes) + (" and others" if each.claimers > len(each.nodes) else "") or "no member"
        took_s = (each.until_ms - each.from_ms) / 1000
        clock = wall_clock(began.get(each.run), each.from_ms)
        since = f"{each.from_ms} ms" if clock is None else f"{each.from_ms} ms, {clock},"
        yield f"run {each.run}: {each.client} was claimed by {by} for {took_s:.1f} s, from {since} on"


def _known_text(invariant: str, bug: str) -> str:
    from distro_spark.symptoms import SYMPTOMS

    return next(each.text for each in SYMPTOMS if invariant in each.about and each.bug == bug)


def _size_bytes(path: Path) -> int:
    """The size of the recordings as NDJSON."""
    files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path] if path.exists() else []
    return sum(file.stat().st_size * (BYTES_PER_PARQUET_BYTE if file.suffix == ".parquet" else 1) for file in files)
