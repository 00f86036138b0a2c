"""`distrocheck test node` and `distrocheck test cluster`: conformance of one node, and of several in lockstep."""

from __future__ import annotations

import shlex
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from distro_conformance.cli import test
from distro_conformance.cli.checking import checker, lines_of
from distro_conformance.cli.options import (
    DEFAULT_OUT,
    AllowDisruptionOption,
    DatabaseOption,
    ExpectFailuresOption,
    HtmlOption,
    IdentityOption,
    JobsOption,
    JsonOption,
    MutantOption,
    OutOption,
    PasswordOption,
    RequirementOption,
    SeedOption,
    SkipOption,
    TargetProfileOption,
    TransportOption,
    UsernameOption,
    WriteExpectedOption,
    chosen_jobs,
    chosen_seed,
    measure,
    require_time_for,
    say_judged_as,
)
from distro_conformance.cli.output import ResultLine, print_judged, progress, say, say_aside, summary
from distro_conformance.cli.paths import writable_file, writable_places
from distro_conformance.drivers.registry import Wishes, resolve_cluster
from distro_conformance.findings import Judged
from distro_conformance.findings.expected import Expectations
from distro_conformance.node.run import requirements_named, run_node_conformance
from distro_conformance.node_mutants import with_mutant
from distro_conformance.plain import fields_of, plain
from distro_conformance.requirements import all_requirements
from distro_conformance.targets.credentials import Credentials, credentials_of
from distro_conformance.targets.registry import FORMS as NODE_FORMS
from distro_conformance.targets.registry import require_own, resolve_target
from distro_conformance.verdict import UsageError, Verdict
from distro_conformance.walks.finding import finding_of
from distro_conformance.walks.hunt import lost_runs, save_failure
from distro_conformance.walks.processes import hunt_on
from distro_conformance.walks.result import STEPS_PER_RUN, Hunt, HuntOptions, Tours
from distro_impl import profile_named as node_profile_named
from distro_model.profiles import profile_named

if TYPE_CHECKING:
    from distro_conformance.report import Failure


@test.command()
def node(
    target: Annotated[str, typer.Option(help=f"One of {', '.join(NODE_FORMS)}.")] = "embedded",
    profile: TargetProfileOption = None,
    requirement: RequirementOption = None,
    skip: SkipOption = None,
    mutant: MutantOption = None,
    allow_disruption: AllowDisruptionOption = False,
    identity: IdentityOption = None,
    username: UsernameOption = None,
    password: PasswordOption = "",
    expect_failures: ExpectFailuresOption = None,
    write_expected: WriteExpectedOption = None,
    machine: Annotated[
        bool, typer.Option("--machine", help="Random actions of three played members and clients, beside the model.")
    ] = False,
    seconds: Annotated[float, measure("How long the machine searches.", least=0.1)] = 20.0,
    examples: Annotated[int | None, typer.Option(min=1, help="At most so many runs of the machine.")] = None,
    steps: Annotated[int, typer.Option(min=1, help="At most so many steps in a run of the machine.")] = STEPS_PER_RUN,
    seed: SeedOption = None,
    database: DatabaseOption = None,
    transport: TransportOption = None,
    out: OutOption = DEFAULT_OUT,
    html: HtmlOption = None,
    json: JsonOption = False,
) -> None:
    """Test one node against the requirements; the kit plays its peer and its clients. With --machine it plays three
    peers, which fail, lie and fall silent at random, and the model decides what the node may do.
    """
    writable_file(html, "--html")
    credentials = credentials_of(identity, username, password)
    if machine:
        if requirement or skip or expect_failures or write_expected:
            raise UsageError(
                "--machine is a search: it takes no --requirement, --skip, --expect-failures or --write-expected"
            )
        if target != "embedded" and (profile or mutant or transport or database):
            raise UsageError(
                f"{target}: with --machine, --profile, --mutant, --transport and --database require --target embedded"
            )
        writable_places(out, database, html)
        if target != "embedded":
            require_own(resolve_target(target, credentials=credentials))
            require_time_for(target)
        else:
            _look_at(target, profile or "strict", mutant, credentials)
        options = HuntOptions(
            target=target,
            among_played=True,
            credentials=credentials,
            profile=profile or "strict",
            mutant=mutant,
            seconds=seconds,
            runs_max=examples,
            steps_per_run=steps,
            seed=chosen_seed(seed),
            database=database,
            transport=transport,
        )
        _search(options, "test node", out, html, json=json)
    expectations = Expectations.of(target, expect_failures, write_expected, {each.id for each in all_requirements()})
    writable_file(write_expected, "--write-expected")
    require_time_for(target, lambda: resolve_target(target, profile, mutant, allow_disruption=allow_disruption))
    parts = len(requirements_named(requirement, skip))
    ended = count(1)
    with progress() as on_progress:
        report = run_node_conformance(
            target,
            profile,
            requirement,
            skip=skip,
            mutant=mutant,
            allow_disruption=allow_disruption,
            on_profile=say_judged_as if profile is None else lambda _: None,
            credentials=credentials,
            on_progress=on_progress,
            on_finding=lambda _: on_progress.done(next(ended), parts),
        )
    report = expectations.judged(report)
    if html:
        from distro_conformance.report import write_page
        from distro_conformance.report.walks import report_of_requirements

        write_page(report_of_requirements(report, mutant), html)
    if json:
        rows = plain(report.findings)
        failing = next((finding for finding in report.findings if finding.counted is Verdict.VIOLATES), None)
        failure = None
        if failing:
            # The id of a requirement is enough to run its check again.
            failure = {"requirement": failing.about, "steps": len(failing.evidence), "replay": failing.again}
        print_judged("test node", report, mutant=mutant, requirements=rows, failure=failure, steps=len(rows))
    else:
        summary(
            (
                ResultLine(
                    each.judgement, f"{each.about:<20} {each.message or each.text}", each.evidence * each.violates
                )
                for each in report.findings
            ),
            report.verdict,
            f"{report.headline}; profile {report.profile}, {report.seconds:.1f} s{_page(html)}",
        )
    raise typer.Exit(report.verdict.exit_code)


def _page(html: Path | None) -> str:
    return f"\n    page: {html}" if html else ""


def _search(options: HuntOptions, verb: str, out: Path, html: Path | None, *, json: bool, jobs: int = 1) -> NoReturn:
    say_aside(f"seed {options.seed}")
    with progress() as on_progress:
        on_progress.expect(options.seconds)
        if options.tours:
            from distro_conformance.walks.tours import tour

            result = tour(options, on_progress)
        else:
            result = hunt_on(jobs, options, on_progress, checker() if options.record_into else None)
    _print(result, verb, out, html, json=json)


@test.command()
def cluster(
    target: Annotated[str, typer.Option(help="embedded, or any other cluster, in real time.")] = "embedded",
    profile: TargetProfileOption = None,
    mutant: MutantOption = None,
    seconds: Annotated[float, measure("How long to search.", least=0.1)] = 20.0,
    examples: Annotated[int | None, typer.Option(min=1, help="At most so many runs, or walks of tours.")] = None,
    steps: Annotated[int, typer.Option(min=1, help="At most so many steps in a run.")] = STEPS_PER_RUN,
    seed: SeedOption = None,
    database: DatabaseOption = None,
    transport: TransportOption = None,
    identity: IdentityOption = None,
    username: UsernameOption = None,
    password: PasswordOption = "",
    tours: Annotated[bool, typer.Option("--tours", help="Do every transition of small clusters instead.")] = False,
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
    if target != "embedded" and (profile or mutant or tours or transport or http is not None):
        raise UsageError(f"{target}: --profile, --mutant, --transport, --tours and --http require --target embedded")
    if jobs is not None and (tours or target != "embedded"):
        raise UsageError("--jobs is for random walks of embedded nodes: leave it out")
    if tours and http is not None:
        raise UsageError("--tours and --http are two kinds of walks; choose one")
    if tours and html:
        raise UsageError("--tours has no page; leave --html out")
    profile = profile or "strict"
    writable_places(out, database, html)
    credentials = credentials_of(identity, username, password)
    _look_at(target, profile, mutant, credentials)
    processes = chosen_jobs(jobs, seed) if target == "embedded" else 1
    seed = chosen_seed(seed)
    options = HuntOptions(
        target=target,
        database=database,
        profile=profile,
        mutant=mutant,
        seconds=seconds,
        seed=seed,
        runs_max=examples,
        steps_per_run=steps,
        transport=transport,
        http=http,
        credentials=credentials,
        record_into=None if target == "embedded" else out / "failures",
        tours=tours,
    )
    _search(options, "test cluster", out, html, json=json, jobs=processes)


def _look_at(target: str, profile: str, mutant: str | None, credentials: Credentials) -> None:
    """Raises UsageError and the look-up errors before anything is printed or started."""
    if target != "embedded":
        say_judged_as(resolve_cluster(target, Wishes(credentials=credentials)).profile)
        require_time_for(target)
        return
    profile_named(profile)
    with_mutant(node_profile_named(profile), mutant)


def _print(result: Hunt, verb: str, out: Path, html: Path | None, *, json: bool) -> NoReturn:
    """Prints the result of a search."""
    from distro_conformance.report.walks import failure_of, report_of_hunt

    options = result.options
    failure: dict[str, Any] | None = None
    shown: Failure | None = None
    if found := result.failure:
        name = f"{options.name}-{options.mutant or options.profile}-{options.seed}"
        scenario, pytest = save_failure(found, out / "failures", name)
        failure = fields_of(
            found,
            *("scenario", "error", "is_flaky", "recording", "target"),
            requirement=options.name.upper(),
            seconds_until_found=round(found.seconds_until_found, 3),
            replay=str(scenario),
            pytest=str(pytest),
        )
        shown = failure_of(result, found, scenario, pytest)
    finding = finding_of(result, shown.replay if shown else "")
    if html:
        from distro_conformance.report import write_page

        write_page(report_of_hunt(result, finding, shown), html)
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
            say(found.scenario.render())
            ways = (f"replay: {shown.replay}", f"test:   {shlex.join(['pytest', str(pytest)])}")
            lines.append(ResultLine(result.verdict, found.message, ways))
        text = _tours_text(result.tours) if result.tours else f", seed {options.seed}{_covered(result)}"
        summary(lines, result.verdict, f"{counts}, {over_grpc}, {result.seconds:.1f} s{text}{_page(html)}")
    raise typer.Exit(result.verdict.exit_code)


def _covered(hunt: Hunt) -> str:
    """The coverage, below the summary; --json and --html list what was not covered."""
    met = [f"{sum(map(bool, counts.values()))} of {len(counts)} {name}" for name, counts in hunt.coverage.items()]
    return lost_runs(hunt) + (f"\n    met: {', '.join(met)}" if met else "")


def _tours_document(tours: Tours) -> dict[str, Any]:
    graphs = [fields_of(each, bounds=str(each.bounds)) for each in tours.graphs]
    return {**fields_of(tours, "graphs"), "edges": tours.edges, "covered": tours.covered, "graphs": graphs}


def _tours_text(tours: Tours) -> str:
    lines = [f"{each.name}: {each.covered} of {each.edges} transitions ({each.bounds})" for each in tours.graphs]
    if tours.cut_short:
        kinds = ", ".join(f"{kind} {count}" for kind, count in tours.cut_short.items())
        lines.append(f"walks that a clock does not follow to their end, by what it does not do next: {kinds}")
    return "".join(f"\n    {line}" for line in lines)
