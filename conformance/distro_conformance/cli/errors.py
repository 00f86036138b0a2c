"""Which exit code belongs to which error of the libraries below (cli.md).

The libraries know nothing of exit codes, and `main` nothing of the libraries; this table is where they meet.
"""

from __future__ import annotations

from distro_conformance.verdict import KitError
from distro_impl import MemberListError, NotOurAddressError, PortInUseError, SettingError
from distro_impl import UnknownMutantError as UnknownNodeMutantError
from distro_impl import UnknownProfileError as UnknownNodeProfileError
from distro_model.bounded.symmetry import NoSymmetryError
from distro_model.mutants import UnknownMutantError
from distro_model.profiles import UnknownProfileError
from distro_model.properties import UnknownPropertyError
from distro_spark.errors import CheckpointError, JavaMissingError, UnknownInvariantError
from distro_traces.errors import TraceError

USAGE_EXIT_CODE = 2

USAGE_ERRORS: tuple[type[Exception], ...] = (
    UnknownProfileError,
    UnknownMutantError,
    UnknownPropertyError,
    NoSymmetryError,
    UnknownNodeProfileError,
    UnknownNodeMutantError,
    SettingError,
    MemberListError,
    UnknownInvariantError,
    NotOurAddressError,
    PortInUseError,
    JavaMissingError,
    CheckpointError,
    TraceError,
)


def exit_code_of(error: Exception) -> int | None:
    """None: a defect of the kit; it keeps its traceback."""
    if isinstance(error, KitError):
        return error.exit_code
    is_about_a_file = isinstance(error, OSError) and error.filename is not None  # one that the user named
    return USAGE_EXIT_CODE if is_about_a_file or isinstance(error, USAGE_ERRORS) else None
