"""Errors of a trace as a whole.

One family, so that a command can turn every member into one line and exit code 2. An invalid row is no error here: it
is set aside with a reason and counted (`ndjson.read_ndjson`, `distro_spark.frames`).
"""

from __future__ import annotations

from pathlib import Path


class TraceError(ValueError):
    """A trace cannot be used. The message is one line: what, where, what to do."""


class EmptyTraceError(TraceError):
    """There is nothing to read: no such path, a directory without traces, a file without a byte."""


class UnreadableTraceError(TraceError):
    """The path exists, but the system refuses to read it."""

    def __init__(self, path: Path | str, error: OSError) -> None:
        super().__init__(f"{path}: cannot be read ({error.strerror or error}); check the path and its permissions")


class UnwritableTraceError(TraceError):
    """The system refuses to write there."""

    def __init__(self, path: Path | str, error: OSError) -> None:
        super().__init__(f"{path}: cannot be written ({error.strerror or error}); choose another place")


class NotATraceError(TraceError):
    """The file is something else than a distrocheck trace."""


class NewerTraceError(TraceError):
    """The file was written by a later distrocheck than this one."""

    def __init__(self, path: Path | str, version: int, supported: int) -> None:
        super().__init__(
            f"{path}: written with version {version} of the trace schema, this distrocheck reads up to version "
            f"{supported}; upgrade distrocheck"
        )


class DamagedTraceError(TraceError):
    """The file is a trace by its beginning or end, but its middle cannot be read."""

    def __init__(self, path: Path | str, error: Exception) -> None:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        super().__init__(f"{path}: cannot be read to its end ({said}); copy or make it again")


class RunExistsError(TraceError):
    """A recording never overwrites another one."""


class InvalidLinesError(TraceError):
    """A recording has lines that are no events of the schema, where only whole recordings can be taken."""


class TooLongLineError(TraceError):
    """A line that is too long for any event, where a reader cannot set it aside."""

    def __init__(self, path: Path | str, line: int, bytes_max: int) -> None:
        super().__init__(
            f"{path}: line {line} is longer than {bytes_max / 2**20:g} MiB, and no event is; take it out of the file"
        )


class TooLargeError(TraceError):
    """The run has more rows than the requested format can show."""
