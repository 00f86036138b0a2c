"""Checks of paths that a user names, before anything is started: Spark, a server and a search would fail late.

Write access is checked by writing, since permissions are not conclusive on every file system and for every user.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from distro_conformance.extras import missing_extras
from distro_conformance.verdict import UsageError


def readable(path: Path, what: str) -> Path:
    """Returns `path` if it is an existing file or directory. Raises UsageError."""
    if not path.exists():
        raise UsageError(f"there is no {what} at {path}")
    return path


def writable_places(out: Path, database: Path | None, html: Path | None) -> None:
    """Checks all paths that a search writes to. Raises UsageError."""
    writable_directory(out)
    writable_file(html, "--html")
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


def require_extras(*needed: str) -> None:
    """Raises UsageError with one command for all that is missing, before anything is started."""
    if missing := missing_extras(*needed):
        raise UsageError(missing)
