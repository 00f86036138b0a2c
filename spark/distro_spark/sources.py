"""Which files a check reads, and what can be said of them before Spark starts to work.

Found and judged on the driver, because all of it is one small read per file and none per event: where the traces are,
what their headers say, and every reason to refuse one (empty, unreadable, of a newer schema, of another shape, the
same run twice). So a user's mistake is one line at once, and the profile of each run is known to the invariants.
Files must be visible under the same path on the driver and on the workers.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from distro_traces import ndjson, parquet
from distro_traces.errors import EmptyTraceError, NotATraceError, TraceError, UnreadableTraceError
from distro_traces.header import Header


class SameRunTwiceError(TraceError):
    """Two files tell of one run: their rows would be taken for one history."""


@dataclass(frozen=True, slots=True)
class Source:
    """One file with rows of one run; a large run lies in several, its segments."""

    path: Path
    header: Header
    cut: ndjson.Cut | None = None  # of a recording that was compacted; NDJSON shows its cut when the rows are read

    @property
    def is_ndjson(self) -> bool:
        return self.path.suffix == ndjson.SUFFIX


def discover(paths: Iterable[Path | str]) -> tuple[Source, ...]:
    """The traces at `paths`: files, or directories with NDJSON or Parquet anywhere below. Raises the TraceError family.

    Hidden files are skipped, as Spark does: an unfinished compaction is one.
    """
    files = [file for path in paths for file in _files(Path(path))]
    sources = [_source(file) for file in dict.fromkeys(files)]
    by_run: dict[tuple[str, int], Source] = {}
    for source in sources:
        other = by_run.setdefault((source.header.run, source.header.segment), source)
        if other is not source:
            raise SameRunTwiceError(
                f"run {source.header.run} is in two files, {other.path} and {source.path}; check one of them"
            )
    return tuple(sources)


def _files(path: Path) -> Iterator[Path]:
    if not path.exists():
        raise EmptyTraceError(f"{path}: no such file or directory; name a recording or a directory of them")
    if not path.is_dir():
        if path.suffix not in (ndjson.SUFFIX, parquet.SUFFIX):
            raise NotATraceError(f"{path}: neither {ndjson.SUFFIX} nor {parquet.SUFFIX}; name a recording")
        yield path.absolute()
        return
    found = sorted(_below(path))
    if not found:
        raise EmptyTraceError(
            f"{path}: no *{ndjson.SUFFIX} and no *{parquet.SUFFIX} below; record a run with `distrocheck gate`"
        )
    yield from found


def _below(directory: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise UnreadableTraceError(error.filename, error) from error

    for folder, folders, names in os.walk(directory.absolute(), onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        for name in names:
            if name.endswith((ndjson.SUFFIX, parquet.SUFFIX)) and not name.startswith((".", "_")):
                yield Path(folder) / name


def _source(path: Path) -> Source:
    if path.suffix == ndjson.SUFFIX:
        return Source(path, ndjson.read_header(path))
    return Source(path, *parquet.read_footer(path))
