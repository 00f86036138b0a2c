"""`distrocheck validate TRACE`: one trace against the model, with the reason of a rejection."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from distro_conformance.cli import app
from distro_conformance.cli.options import HtmlOption, JsonOption, fresh_file, readable, require_extras
from distro_conformance.cli.output import echo, echo_page, print_json, progress, row
from distro_conformance.plain import fields_of
from distro_conformance.verdict import Verdict
from distro_traces.event import Outcome
from distro_traces.header import wall_clock

DEFAULT_RELEASE = "nacos-2.3.2"
"""The release whose rules are used when a trace names none; the run is then inconclusive."""

NAMELESS = "the trace does not name its release; it was compared with {}, which proves nothing: name it with --profile"
VACUOUS = "vacuous: no row is about a client and no node has loaded, so nothing was compared"

if TYPE_CHECKING:
    from distro_traces.event import Event
    from distro_traces.ndjson import TraceFile
    from distro_validation.verdict import Rejection


@app.command()
def validate(
    trace: Annotated[Path, typer.Argument(help="A trace (NDJSON or Parquet), or a directory.")],
    run: Annotated[str | None, typer.Option(help="Which run, where there are several.")] = None,
    profile: Annotated[
        str | None, typer.Option(help="The release whose behaviour is expected; default: that of the trace.")
    ] = None,
    html: HtmlOption = None,
    json: JsonOption = False,
) -> None:
    """Compare every row of a trace with the model: accepted, or the first row that no transition explains."""
    require_extras("traces", *(("report",) if html else ()))
    from distro_model.profiles import profile_named
    from distro_traces.reading import read_run
    from distro_validation.validate import validate as run_validation

    fresh_file(html, "--html")
    found = read_run(readable(trace, "trace"), run)
    names_release = profile is not None or found.header.names_release
    rules = profile_named(profile or (found.header.profile if names_release else DEFAULT_RELEASE))
    with progress() as on_progress:
        on_progress(f"{len(found.events)} rows")
        judged = run_validation(found.header, found.events, rules)
    if not names_release:
        judged = replace(judged, doubts=(*judged.doubts, NAMELESS.format(rules.name)))
    if not any(_says_something(event) for event in found.events):
        judged = replace(judged, doubts=(*judged.doubts, VACUOUS))
    verdict = Verdict.CONFORMS if judged.accepted else Verdict.VIOLATES
    if not names_release or (judged.accepted and (judged.undecided or judged.doubts or found.rejected or found.cut)):
        verdict = Verdict.INCONCLUSIVE
    if html:
        from distro_conformance.report import write_page
        from distro_conformance.report.traces import report_of_validation

        write_page(report_of_validation(judged, verdict, found.header, rules.name, trace), html)
    if json:
        print_json("validate", fields_of(judged, verdict=verdict, run=found.header.run, profile=rules.name))
    else:
        _print(judged.rejection, found.header.began)
        for doubt in judged.doubts:
            echo(f"  {doubt}")
        for reason, count in judged.undecided_by.items():
            echo(f"  {count} not decided: {reason}")
        _print_unread(found)
        echo_page(html)
        row(
            verdict,
            f"{judged.events} rows of {found.header.run}, {judged.undecided} not decided, {judged.seconds:.1f} s",
        )
    raise typer.Exit(verdict.exit_code)


def _says_something(event: Event) -> bool:
    """Whether the event is about a client or is the end of a load."""
    return event.client is not None or (event.operation == "SNAPSHOT" and event.outcome is Outcome.SUCCESS)


def _print(rejection: Rejection | None, began: str | None) -> None:
    if rejection is None:
        return
    from distro_traces.exports.causal import describe

    echo(f"no transition is this row: {_place(rejection.event, began)}: {describe(rejection.event)}")
    for candidate in rejection.candidates:
        echo(f"  {candidate}")
    if rejection.minimal:
        echo(f"the smallest set of {len(rejection.minimal)} rows that is rejected in the same way:")
    for event in rejection.minimal:
        echo(f"  {_place(event, began)}: {describe(event)}")


def _print_unread(trace: TraceFile) -> None:
    """Prints the unread parts of the trace, which leave the verdict open even if no row was rejected."""
    if trace.rejected:
        echo(f"  {len(trace.rejected)} rows do not fit the schema (first: {trace.rejected[0].place})")
    if trace.cut is not None:
        echo(f"  cut in mid-line: line {trace.cut.line}; everything before it was read")


def _place(event: Event, began: str | None) -> str:
    clock = wall_clock(began, event.at_ms)
    return f"{event.node} row {event.seq} at {event.at_ms} ms" + ("" if clock is None else f", {clock}")
