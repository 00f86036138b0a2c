"""`distrocheck test cluster`, and the search of `test node --machine`: random walks, and tours.

If the nodes of a run in real time differ at its end, the invariants look for the reason in its recording; this needs an
extra.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from distro_conformance.cli import test
from distro_conformance.cli.options import (
    DEFAULT_OUT,
    DatabaseOption,
    HtmlOption,
    IdentityOption,
    JobsOption,
    JsonOption,
    MutantOption,
    OutOption,
    PasswordOption,
    SeedOption,
    TargetProfileOption,
    TransportOption,
    UsernameOption,
    chosen_jobs,
    chosen_seed,
    echo_profile,
    measure,
    require_time_for,
    writable_places,
)
from distro_conformance.cli.output import ResultLine, echo, echo_page, echo_stderr, print_judged, progress, summary
from distro_conformance.drivers.registry import EMBEDDED, ClusterOptions, resolve_cluster
from distro_conformance.extras import missing_extras
from distro_conformance.findings import Finding, Judged
from distro_conformance.node_mutants import with_mutant
from distro_conformance.plain import fields_of, plain
from distro_conformance.release import STRICT
from distro_conformance.targets.credentials import credentials_of
from distro_conformance.targets.registry import require_own, resolve_target
from distro_conformance.verdict import UsageError
from distro_conformance.walks import STEPS_PER_RUN
from distro_conformance.walks.driver import Check
from distro_conformance.walks.processes import random_walks_on
from distro_conformance.walks.result import TourCoverage, WalkOptions, WalkResult, finding_of
from distro_conformance.walks.saved_failures import save_failure
from distro_impl import profile_named as node_profile_named
from distro_model.profiles import profile_named

if TYPE_CHECKING:
    from distro_conformance.report import Failure


@test.command()
def cluster(
    target: Annotated[str, typer.Option(help="embedded, or any other cluster, in real time.")] = "embedded",
    profile: TargetProfileOption = None,
    mutant: MutantOption = None,
    seconds: Annotated[float, measure("How long to search.", least=0.1)] = 20.0,
    examples: Annotated[int | None, typer.Option(min=1, help="At most this number of runs, or walks.")] = None,
    steps: Annotated[int, typer.Option(min=1, help="At most this number of steps in a run.")] = STEPS_PER_RUN,
    seed: SeedOption = None,
    database: DatabaseOption = None,
    transport: TransportOption = None,
    identity: IdentityOption = None,
    username: UsernameOption = None,
    password: PasswordOption = "",
    tours: Annotated[bool, typer.Option("--tours", help="Take every transition of small clusters instead.")] = False,
    played: Annotated[
        bool, typer.Option("--played", help="One node, and the kit plays the other members, as test node --machine.")
    ] = False,
    http: Annotated[
        bool | None,
        typer.Option("--http/--no-http", help="Clients of the HTTP API, too. Default: in some runs."),
    ] = None,
    jobs: JobsOption = None,
    out: OutOption = DEFAULT_OUT,
    html: HtmlOption = None,
    json: JsonOption = False,
) -> None:
    """Drive nodes with random actions and faults, or tours; after each step the model must allow what the nodes hold
    and sent. Nodes in real time (nacos:2.2.4, mixed:2.2.4, process:FILE.toml) must agree at the end of each run. If
    real servers do not agree and the recording shows known defects of the release as the cause, these are reported and
    the search goes on with a new cluster (if Spark is installed; without it every such run ends the search)."""
    if jobs is not None and (tours or played or target != EMBEDDED):
        raise UsageError("--jobs is for random walks of embedded nodes: leave it out")
    if tours and (played or http is not None):
        raise UsageError("--tours, --played and --http are kinds of walks; --tours goes with none of the others")
    if tours and html:
        raise UsageError("--tours has no page; leave --html out")
    options = WalkOptions(
        target=target,
        among_played=played,
        tours=tours,
        profile=profile or STRICT,
        mutant=mutant,
        credentials=credentials_of(identity, username, password),
        seconds=seconds,
        runs_max=examples,
        steps_per_run=steps,
        seed=chosen_seed(seed),
        database=database,
        transport=transport,
        http=http,
    )
    processes = chosen_jobs(jobs, seed) if target == EMBEDDED and not (played or tours) else 1
    search("test cluster", options, profile, out, html, json=json, processes=processes)


def search(
    verb: str,
    options: WalkOptions,
    profile: str | None,
    out: Path,
    html: Path | None,
    *,
    json: bool,
    processes: int = 1,
) -> NoReturn:
    """Search, print the result and exit. `profile`: the name that the user gave. Raises UsageError and the look-up
    errors before anything is started."""
    target, in_real_time, played = options.target, options.in_real_time, options.among_played
    if in_real_time and (profile or options.mutant or options.tours or options.transport or options.http is not None):
        raise UsageError(f"{target}: --profile, --mutant, --transport, --tours and --http require --target embedded")
    if in_real_time and played and options.database:
        raise UsageError(f"{target}: --database is for walks of three nodes, and for --target embedded")
    writable_places(out, options.database, html)
    _require_usable(options)
    if in_real_time:
        failures = out / "failures"
        options = replace(options, logs_into=failures, record_into=None if played else failures)
    echo_stderr(f"seed {options.seed}")
    with progress() as on_progress:
        on_progress.expect(options.seconds)
        if options.tours:
            from distro_conformance.walks.tours import tour

            result = tour(options, on_progress)
        else:
            result = random_walks_on(processes, options, on_progress, checker() if options.record_into else None)
    _print(result, verb, out, html, json=json)


def _require_usable(options: WalkOptions) -> None:
    """Raises UsageError and the look-up errors before anything is printed or started."""
    target, credentials = options.target, options.credentials
    if not options.in_real_time:
        profile_named(options.profile)
        with_mutant(node_profile_named(options.profile), options.mutant)
        return
    if options.among_played:
        require_own(resolve_target(target, credentials=credentials))
    else:
        echo_profile(resolve_cluster(target, ClusterOptions(credentials=credentials)).profile)
    require_time_for(target)


def _print(result: WalkResult, verb: str, out: Path, html: Path | None, *, json: bool) -> NoReturn:
    """Print the result of a search."""
    from distro_conformance.report.walks import failure_of, report_of_walks

    options = result.options
    failure: dict[str, Any] | None = None
    shown: Failure | None = None
    if found := result.failure:
        scenario, pytest = save_failure(found, out / "failures", options.failure_name)
        failure = fields_of(
            found,
            *("scenario", "error", "recording", "target"),
            requirement=options.name.upper(),
            seconds_until_found=round(found.seconds_until_found, 3),
            replay=str(scenario),
            pytest=str(pytest),
        )
        shown = failure_of(result, found, scenario, pytest)
    finding = finding_of(result, shown.replay if shown else "")
    if html:
        from distro_conformance.report import write_page

        write_page(report_of_walks(result, finding, shown), html)
    known = f", {result.runs_known} of which end as known" if result.runs_known else ""
    counts = f"{result.steps} steps in {result.runs} runs{known}"
    if json:
        figures = {name: plain(getattr(result, name)) for name in ("steps", "steps_over", "coverage", "not_judged")}
        figures |= {"headline": f"{options.target}: {counts}", "mutant": options.mutant}
        figures |= {"runs": result.runs, "seed": options.seed}
        figures |= {"tours": _tours_document(result.tours)} if result.tours else {}
        judged = Judged(options.target, options.profile, (finding, *result.checked), result.seconds, figures)
        print_judged(verb, judged, requirements=[], failure=failure)
    else:
        over_grpc = f"{result.steps_over['grpc']} of them over gRPC"
        lines = list(lines_of(result.checked))
        if found and failure and shown:
            echo(found.scenario.render())
            ways = [f"replay: {shown.replay}", f"test:   {shlex.join(['pytest', str(pytest)])}"]
            ways += [f"logs:   {found.logs}"] if found.logs else []
            lines.append(ResultLine(result.verdict, found.message, ways))
        text = _tours_text(result.tours) if result.tours else f", seed {options.seed}{_covered(result)}"
        echo_page(html)
        summary(lines, result.verdict, f"{counts}, {over_grpc}, {result.seconds:.1f} s{text}")
    raise typer.Exit(result.verdict.exit_code)


def _covered(result: WalkResult) -> str:
    """The coverage, which is printed below the summary; --json and --html also list what was not covered."""
    met = [f"{sum(map(bool, counts.values()))} of {len(counts)} {name}" for name, counts in result.coverage.items()]
    return result.unjudged + (f"\n    met: {', '.join(met)}" if met else "")


def _tours_document(tours: TourCoverage) -> dict[str, Any]:
    graphs = [fields_of(each, bounds=str(each.bounds)) for each in tours.graphs]
    return {**fields_of(tours, "graphs"), "edges": tours.edges, "covered": tours.covered, "graphs": graphs}


def _tours_text(tours: TourCoverage) -> str:
    lines = [f"{each.name}: {each.covered} of {each.edges} transitions ({each.bounds})" for each in tours.graphs]
    if tours.cut_short:
        kinds = ", ".join(f"{kind} {count}" for kind, count in tours.cut_short.items())
        lines.append(f"walks that a clock cannot follow to their end, by the step that it cannot take: {kinds}")
    return "".join(f"\n    {line}" for line in lines)


def checker() -> Check | None:
    """The check by invariants of the recordings of runs whose nodes differ. If an extra is missing: None, and a note on
    stderr."""
    missing = missing_extras("traces")
    if missing is None:
        return _checked
    echo_stderr(f"the recording of a run whose nodes differ is not checked for the reason: {missing}")
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
