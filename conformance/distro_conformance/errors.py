"""Which exit code belongs to which error of the libraries below (docs/reference/commands.md).

The libraries know nothing of exit codes, and `main` nothing of the libraries; this table is where they meet. Errors
stand here by name, so that `--help` does not load what can raise them.
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
"""By the package that defines them; what is derived from one of them counts too."""


def exit_code_of(error: Exception) -> int | None:
    """None: a defect of the kit; it keeps its traceback."""
    if isinstance(error, KitError):
        return error.exit_code
    is_about_a_file = isinstance(error, OSError) and error.filename is not None  # one that the user named
    return USAGE_EXIT_CODE if is_about_a_file or any(map(_is_listed, type(error).__mro__)) else None


def _is_listed(error: type) -> bool:
    return error.__name__ in USAGE_ERRORS.get(error.__module__.partition(".")[0], ())
