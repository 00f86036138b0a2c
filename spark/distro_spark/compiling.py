"""How what goes through rows is compiled: once for all processes of an installation.

numba keeps compiled functions on disk, each beside the time stamp of its own file; a function that calls one of another
file, or uses its constants, would go on with the old one after that has changed. So what is shared stands in the files
of `SHARED` alone, the folder carries a digest of these, and goes when it is out of date. Where there are no files (a
package in a zip archive) every process compiles for itself.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from distro_traces.event import Kind, Outcome

_Function = TypeVar("_Function", bound=Callable[..., Any])
_PACKAGE = Path(__file__).parent
SHARED = ("encoding.py", "rows.py")
"""Compiled functions and constants that several files use are in these."""


def compiled(function: _Function) -> _Function:
    """Compile for arrays when first called."""
    folder = _folder()
    if folder is None:
        return cast(_Function, numba.njit(function))
    config: Any = numba.config
    before, config.CACHE_DIR = config.CACHE_DIR, str(folder)
    try:
        return cast(_Function, numba.njit(cache=True)(function))
    finally:
        config.CACHE_DIR = before


def generator(function: _Function) -> _Function:
    """A generator becomes part of the functions that use it; numba cannot keep it by itself."""
    return cast(_Function, numba.njit(function))


@cache
def _folder() -> Path | None:
    sources = [_PACKAGE / name for name in SHARED]
    if not all(source.is_file() for source in sources):
        return None
    codes = repr((list(Kind), list(Outcome))).encode()  # constants are made of them
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources) + codes).hexdigest()[:16]
    place = _PACKAGE / "__pycache__"
    folder = place / f"compiled-{digest}"
    try:
        for old in place.glob("compiled-*"):
            if old != folder:
                shutil.rmtree(old, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None
