"""Options that several verbs share, so that they read and mean the same everywhere."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from distro_conformance.cli.output import say_aside
from distro_conformance.release import STRICT, judged_as, listed_profile, numbers_of
from distro_conformance.slack import require_free_machine
from distro_conformance.wire.transports import Carrier


def only(flag: str) -> Any:
    """Of what there is, what is named."""
    return typer.Option(flag, help="Only this one; may be given several times.")


_MOST = 1e9
"""Of seconds 30 years, of GiB more than there is."""


def _within_reach(value: float | None) -> float | None:
    """Raises BadParameter, of `nan` too, which is in every range."""
    if value is not None and not value <= _MOST:
        raise typer.BadParameter(f"{value:g} is never reached; name {_MOST:,.0f} at most")
    return value


def measure(text: str, *, least: float) -> Any:
    """A number of seconds or the like."""
    return typer.Option(help=text, min=least, callback=_within_reach)


JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout, nothing else.")]


def known_profile(name: str | None) -> str | None:
    """Raises UsageError. Prints as what a release that is not listed is judged: its name may be mistyped. A build
    (3.1.0-SNAPSHOT) has the profile of its release."""
    if name is None or name == STRICT:
        return name
    profile = numbers_of(name)
    listed_profile(profile)
    say_judged_as(profile)
    return profile


def say_judged_as(profile: str) -> None:
    """The first line of a run on a release that is not listed here."""
    if (note := judged_as(profile)) is not None:
        say_aside(f"{note}; requirements go by its own number")


def profile_option(text: str) -> Any:
    return typer.Option(help=text, callback=known_profile)


ProfileOption = Annotated[str, profile_option("Whose behaviour is expected: nacos-2.2.4, for instance, or strict.")]
OptionalProfileOption = Annotated[str | None, profile_option("Wins over the scenario's own; strict when neither says.")]
TargetProfileOption = Annotated[str | None, profile_option("Default: the target's own release; strict for embedded.")]
MutantOption = Annotated[str | None, typer.Option(help="A named change to switch on; see 'list mutants'.")]
SeedOption = Annotated[
    int | None,
    typer.Option(show_default="fresh each run, printed", help="Seed and commit reproduce a run on embedded nodes."),
]
DatabaseOption = Annotated[
    Path | None, typer.Option(help="Where failing scenarios are kept from run to run; they are replayed first.")
]
TransportOption = Annotated[
    Carrier | None, typer.Option(help="What embedded nodes speak over. Default: most runs in memory, some over gRPC.")
]
JobsOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=256,
        show_default="one for each core, at most 8; 1 with --seed",
        help="Random walks on so many processes.",
    ),
]
OutOption = Annotated[Path, typer.Option(help="Directory for what the run writes.")]

DEFAULT_OUT = Path("distrocheck-out")
_SEEDS = 1_000_000
_JOBS_MAX = 8


def chosen_jobs(jobs: int | None, seed: int | None) -> int:
    """Whoever names a seed wants what it made before, and one process walks with one seed.

    At most 8 by itself: each takes some 200 MB, and a container may have far less of the cores than it sees.
    """
    if jobs is not None:
        return jobs
    from distro_conformance.doctor import usable_cores

    return min(usable_cores(), _JOBS_MAX) if seed is None else 1


_IN_REAL_TIME = ("nacos", "process", "mixed", "attach")


def require_time_for(target: str, resolve: Callable[[], object] = lambda: None) -> None:
    """Before anything is started. Raises BusyMachineError where the target lives in real time, and this machine has too
    much else to do for a verdict; before that whatever `resolve` raises for a target that cannot be used."""
    if target.partition(":")[0] in _IN_REAL_TIME:
        resolve()
        require_free_machine()


def chosen_seed(seed: int | None) -> int:
    """Another one each time unless it is given: walks that always begin alike always miss the same."""
    return secrets.randbelow(_SEEDS) if seed is None else seed


AllowDisruptionOption = Annotated[
    bool,
    typer.Option(
        "--allow-disruption", help="On attach:, let the clients into the public namespace, and say what a member says."
    ),
]
ExpectFailuresOption = Annotated[
    Path | None,
    typer.Option("--expect-failures", help="On process: and attach:, the failures that this file lists are expected."),
]
WriteExpectedOption = Annotated[
    Path | None, typer.Option("--write-expected", help="On process: and attach:, write what fails as such a file.")
]
IdentityOption = Annotated[
    str | None,
    typer.Option(
        "--identity",
        help="KEY=VALUE of the servers among themselves, for attach: and process:. Printed nowhere.",
        envvar="DISTROCHECK_IDENTITY",
        show_envvar=True,
    ),
]
UsernameOption = Annotated[
    str | None, typer.Option("--username", help="A user of the server, where authentication is on.")
]
PasswordOption = Annotated[
    str, typer.Option("--password", help="Better in the environment.", envvar="DISTROCHECK_PASSWORD")
]
HtmlOption = Annotated[Path | None, typer.Option("--html", help="Write the result as a page for people, too.")]
RequirementOption = Annotated[
    list[str] | None,
    typer.Option(
        "--requirement",
        help="Only these: an id, the beginning of ids (DISTRO-SYNC), or a level (MUST, SHOULD), which narrows the "
        "others. Several times.",
    ),
]
SkipOption = Annotated[
    list[str] | None, typer.Option("--skip", help="All but these, named in the same way. Several times.")
]
