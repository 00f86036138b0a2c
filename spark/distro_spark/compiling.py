"""What goes through rows, in two speeds from one text: as plain Python, and compiled when there are many of them.

To compile all of it takes half a minute of a processor, once for each installation, and a recording of one sitting is
judged by plain Python in a second. So a function that is marked here stays what it is; `fast` gives its compiled
twin, in which every marked function that it calls is compiled as well.

numba keeps compiled functions on disk, each beside the time stamp of its own file; a function that calls one of another
file, or uses its constants, would go on with the old one after that has changed. So what is shared stands in the files
of `SHARED` alone, the folder carries a digest of these, and goes when it is out of date. Where there are no files (a
package in a zip archive) every process compiles for itself.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, TypeVar, cast

from distro_traces.event import Kind, Outcome

_Function = TypeVar("_Function", bound=Callable[..., Any])
_PACKAGE = Path(__file__).parent
SHARED = ("compiling.py", "encoding.py", "rows.py", "story.py", "invariants/*.py")
"""Options, and the functions to compile and constants that several files use, are in these."""

FAST_FROM_ROWS = 20_000
"""So many rows are looked through in plain Python within a few seconds."""

_marked: dict[Callable[..., Any], dict[str, Any]] = {}


def compiled(function: _Function) -> _Function:
    """Mark a function of arrays that numba can compile."""
    _marked[function] = {}
    return function


def uncounted(function: _Function) -> _Function:
    """Mark one that, besides, makes no array and returns none.

    numba then counts no references in it. To count those to all columns of the rows takes fifty times as long as a look
    at one row. The option is not in numba's documentation; a function that makes an array all the same is not compiled.
    """
    _marked[function] = {"_nrt": False}
    return function


def fast(function: _Function) -> _Function:
    """The compiled twin of a marked function; compiled when it is first called."""
    return cast(_Function, _twin(function))


def suited(function: _Function, rows: int) -> _Function:
    """The function as it goes through so many rows soonest."""
    return function if rows < FAST_FROM_ROWS else fast(function)


@cache
def _twin(function: FunctionType) -> Any:
    import numba  # noqa: PLC0415 - takes half a second, and small traces never need it

    options = _marked[function]
    names = {**function.__globals__}
    for name in _names(function.__code__):
        called = names.get(name)
        if callable(called) and called in _marked:
            names[name] = _twin(cast(FunctionType, called))
    twin = FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    twin.__qualname__ = function.__qualname__
    folder = _folder()
    if folder is None:
        return numba.njit(**options)(twin)
    config: Any = numba.config
    before, config.CACHE_DIR = config.CACHE_DIR, str(folder)
    try:
        return numba.njit(cache=True, **options)(twin)
    finally:
        config.CACHE_DIR = before


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


@cache
def _folder() -> Path | None:
    sources = [source for files in SHARED for source in sorted(_PACKAGE.glob(files))]
    if not sources:
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
