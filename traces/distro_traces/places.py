"""The traces below a directory, for every reader of a local disk.

Hidden files are left out, since unfinished compactions and recordings are hidden, and the stored results of a check,
which are Parquet too, are left out as well. A file of another format than its name shows is reported when it is opened.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from distro_traces import ndjson, parquet
from distro_traces.errors import EmptyTraceError, NotATraceError

SUFFIXES = (ndjson.SUFFIX, parquet.SUFFIX)
PACKED = ".gz"


def below(directory: Path, suffixes: tuple[str, ...] = SUFFIXES) -> Iterator[Path]:
    """The files at any depth, as the system lists them."""
    for file in directory.rglob("*"):
        folders = file.relative_to(directory).parts[:-1]
        if file.suffix in suffixes and not is_of_a_check(folders) and not any(map(_is_hidden, (*folders, file.name))):
            yield file


def is_of_a_check(folders: Sequence[str]) -> bool:
    return parquet.VIOLATIONS in folders


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def traces_at(path: Path, suffixes: tuple[str, ...] = SUFFIXES) -> tuple[Path, ...]:
    """The file at `path`, with the further segments beside it if it is the first one of a recording, or those below it
    in order. Raises EmptyTraceError, NotATraceError."""
    if not path.exists():
        raise EmptyTraceError(f"{path}: no such file or directory; name a recording or a directory of them")
    if not path.is_dir():
        if path.suffix not in suffixes:
            raise not_named_so(path, suffixes)
        return (path, *_further_segments(path)) if path.suffix == ndjson.SUFFIX else (path,)
    found = tuple(sorted(below(path, suffixes)))
    if not found:
        raise nothing_below(path, suffixes, next(below(path, (*SUFFIXES, PACKED)), None))
    return found


def _further_segments(path: Path) -> Iterator[Path]:
    """Those of a recording that its first file has beside it (`ndjson.segment_path`), also if one is missing."""
    named = re.compile(re.escape(path.name.removesuffix(ndjson.SUFFIX)) + r"\.(\d+)" + re.escape(ndjson.SUFFIX))
    numbers = (found[1] for each in path.parent.iterdir() if (found := named.fullmatch(each.name)))
    for number in sorted(map(int, numbers)):
        yield ndjson.segment_path(path, number)


def not_named_so(path: Path | str, suffixes: tuple[str, ...] = SUFFIXES) -> NotATraceError:
    others = f"neither {' nor '.join(suffixes)}" if len(suffixes) > 1 else f"no {suffixes[0]}"
    advice = "unpack it" if Path(path).suffix == PACKED else "name a recording"
    return NotATraceError(f"{path}: {others}; {advice}")


def nothing_below(path: Path | str, suffixes: tuple[str, ...] = SUFFIXES, other: Path | None = None) -> EmptyTraceError:
    """`other`: what is there instead."""
    wanted = " and ".join(f"no *{suffix}" for suffix in suffixes)
    hint = "name a recording or a directory of them"
    if other is not None and other.suffix == parquet.SUFFIX:
        hint = f"{other} is Parquet already"
    elif other is not None:
        hint = f"{other} is packed, unpack it"
    return EmptyTraceError(f"{path}: {wanted} below; {hint}")
