"""Options that several verbs share, so that they read and mean the same everywhere, and checks of the paths in them.

Paths are checked before anything is started: Spark, a server and a search would fail late. Write access is checked by
writing, since permissions are not conclusive on every file system and for every user.
"""

from __future__ import annotations

import secrets
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from distro_conformance.cli.output import echo_stderr
from distro_conformance.extras import missing_extras
from distro_conformance.release import STRICT, judged_as, listed_profile, numbers_of
from distro_conformance.slack import require_free_machine
from distro_conformance.verdict import UsageError
from distro_conformance.wire.transports import TransportKind


def only(flag: str) -> Any:
    """An option that selects entries by name."""
    return typer.Option(flag, help="Only this one; may be given several times.")


_MOST = 1e9
"""30 years in seconds, and more GiB than any machine has."""


def _within_reach(value: float | None) -> float | None:
    """Raises BadParameter, also for `nan`, which passes every range check."""
    if value is not None and not value <= _MOST:
        raise typer.BadParameter(f"{value:g} is never reached; name {_MOST:,.0f} at most")
    return value


def measure(text: str, *, least: float) -> Any:
    """An option that takes a quantity, for instance a number of seconds."""
    return typer.Option(help=text, min=least, callback=_within_reach)


JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout, nothing else.")]


def known_profile(name: str | None) -> str | None:
    """Raises UsageError. Prints the profile by which an unlisted release is judged, since its name may be mistyped. A
    build (3.1.0-SNAPSHOT) has the profile of its release."""
    if name is None or name == STRICT:
        return name
    profile = numbers_of(name)
    listed_profile(profile)
    echo_profile(profile)
    return profile


def echo_profile(profile: str) -> None:
    """Prints the first line of a run on an unlisted release."""
    if (note := judged_as(profile)) is not None:
        echo_stderr(f"{note}; requirements are selected by its own number")


def profile_option(text: str) -> Any:
    return typer.Option(help=text, callback=known_profile)


ProfileOption = Annotated[
    str, profile_option("The release whose behaviour is expected, for instance nacos-2.2.4, or strict.")
]
OptionalProfileOption = Annotated[
    str | None, profile_option("Overrides the profile of the scenario; strict without either.")
]
TargetProfileOption = Annotated[str | None, profile_option("Default: the target's own release; strict for embedded.")]
MutantOption = Annotated[str | None, typer.Option(help="A named change to switch on; see 'list mutants'.")]
SeedOption = Annotated[
    int | None,
    typer.Option(show_default="fresh each run, printed", help="Seed and commit reproduce a run on embedded nodes."),
]
DatabaseOption = Annotated[
    Path | None, typer.Option(help="Directory that keeps failing scenarios from run to run; they are replayed first.")
]
TransportOption = Annotated[
    TransportKind | None,
    typer.Option(help="How embedded nodes exchange messages. Default: most runs in memory, some over gRPC."),
]
JobsOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=256,
        show_default="one for each core, at most 8; 1 with --seed",
        help="Number of processes for random walks.",
    ),
]
OutOption = Annotated[Path, typer.Option(help="Directory for what the run writes.")]

DEFAULT_OUT = Path("distrocheck-out")
_SEEDS = 1_000_000
_JOBS_MAX = 8


def chosen_jobs(jobs: int | None, seed: int | None) -> int:
    """The number of processes. With a seed it is 1, since one process walks with one seed and the run is to be
    reproduced.

    At most 8 by default: each takes some 200 MB, and a container may have far fewer cores than it sees.
    """
    if jobs is not None:
        return jobs
    from distro_conformance.doctor import usable_cores

    return min(usable_cores(), _JOBS_MAX) if seed is None else 1


_IN_REAL_TIME = ("nacos", "process", "mixed", "attach")


def require_time_for(target: str) -> None:
    """Called when the target is known to be usable, before it is started. Raises BusyMachineError if the target runs in
    real time and this machine is too busy for a verdict."""
    if target.partition(":")[0] in _IN_REAL_TIME:
        require_free_machine()


def chosen_seed(seed: int | None) -> int:
    """The given seed, else a new one each time: walks from one fixed seed always miss the same states."""
    return secrets.randbelow(_SEEDS) if seed is None else seed


AllowDisruptionOption = Annotated[
    bool,
    typer.Option(
        "--allow-disruption",
        help="On attach:, let the clients use the public namespace, and send requests as a member.",
    ),
]
ExpectFailuresOption = Annotated[
    Path | None,
    typer.Option("--expect-failures", help="On process: and attach:, the failures that this file lists are expected."),
]
WriteExpectedOption = Annotated[
    Path | None, typer.Option("--write-expected", help="On process: and attach:, write the failures as such a file.")
]
IdentityOption = Annotated[
    str | None,
    typer.Option(
        "--identity",
        help="The server identity KEY=VALUE, for attach: and process:. It is never printed.",
        envvar="DISTROCHECK_IDENTITY",
        show_envvar=True,
    ),
]
UsernameOption = Annotated[
    str | None, typer.Option("--username", help="A user of the server, where authentication is on.")
]
PasswordOption = Annotated[
    str, typer.Option("--password", help="The password; better set in the environment.", envvar="DISTROCHECK_PASSWORD")
]
HtmlOption = Annotated[Path | None, typer.Option("--html", help="Also write the result as an HTML page.")]
RequirementOption = Annotated[
    list[str] | None,
    typer.Option(
        "--requirement",
        help="Only these: an id, the beginning of ids (DISTRO-SYNC), or a level (MUST, SHOULD), which narrows the "
        "others. Several times.",
    ),
]
SkipOption = Annotated[
    list[str] | None, typer.Option("--skip", help="Leave these out, named in the same way. Several times.")
]


def readable(path: Path, what: str) -> Path:
    """Returns `path` if it is an existing file or directory. Raises UsageError."""
    if not path.exists():
        raise UsageError(f"there is no {what} at {path}")
    return path


def writable_places(out: Path, database: Path | None, html: Path | None) -> None:
    """Checks all paths that a search writes to. Raises UsageError."""
    writable_directory(out)
    fresh_file(html, "--html")
    if database:
        writable_directory(database, "--database")


def writable_directory(path: Path, option: str = "--out") -> Path:
    """Returns `path`, created if it does not exist. Raises UsageError when nothing can be written into it."""
    if path.exists() and not path.is_dir():
        raise UsageError(f"{option} {path}: is no directory; choose another one")
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            return path
    except OSError as error:
        raise UsageError(f"{option} {path}: cannot be written to ({error.strerror}); choose another one") from error


def writable_file(path: Path | None, option: str) -> None:
    """Raises UsageError when a file of that name cannot be written; None is allowed."""
    if path is None:
        return
    if path.is_dir():
        raise UsageError(f"{option} {path}: is a directory; name a file in it")
    was_there = path.exists()
    try:
        with path.open("ab"):
            pass
        if not was_there:
            path.unlink()
    except OSError as error:
        raise UsageError(f"{option} {path}: cannot be written ({error.strerror}); choose another one") from error


def fresh_file(path: Path | None, option: str) -> None:
    """The same for a result; that of an earlier run is removed, so that a run which fails leaves none."""
    writable_file(path, option)
    if path is not None and path.is_file() and not path.is_symlink():
        path.unlink()


def require_extras(*needed: str) -> None:
    """Raises UsageError with one command for all that is missing, before anything is started."""
    if missing := missing_extras(*needed):
        raise UsageError(missing)
