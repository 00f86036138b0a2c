"""The exit code of each error of the libraries below (docs/reference/commands.md).

The libraries do not know exit codes, and `main` does not know the libraries; this table connects them. Errors are
listed by name, so that `--help` does not load the modules that raise them.
"""

from __future__ import annotations

from collections.abc import Mapping

from distro_conformance.verdict import KitError

USAGE_EXIT_CODE = 2

USAGE_ERRORS: Mapping[str, tuple[str, ...]] = {
    "distro_conformance": ("UnknownMutantError",),
    "distro_impl": (
        "MemberListError",
        "NotOurAddressError",
        "PortInUseError",
        "SettingError",
        "UnknownProfileError",
    ),
    "distro_model": (
        "NotARuleError",
        "UnknownFaultError",
        "UnknownMutantError",
        "UnknownProfileError",
        "UnknownPropertyError",
    ),
    "distro_spark": ("JavaMissingError", "SessionError", "SinkError", "UnknownInvariantError"),
    "distro_traces": ("TraceError",),
}
"""By the package that defines them; derived classes count too."""


def exit_code_of(error: Exception) -> int | None:
    """None: a defect of the kit, which is printed with its traceback."""
    if isinstance(error, KitError):
        return error.exit_code
    is_about_a_file = isinstance(error, OSError) and error.filename is not None  # a file that the user named
    return USAGE_EXIT_CODE if is_about_a_file or any(map(_is_listed, type(error).__mro__)) else None


def _is_listed(error: type) -> bool:
    return error.__name__ in USAGE_ERRORS.get(error.__module__.partition(".")[0], ())
