"""One run, from wherever it lies: a recording with its segments, a Parquet file, the directory of a run or of many."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from distro_traces import ndjson, parquet
from distro_traces.compact import by_run, recordings_at
from distro_traces.errors import EmptyTraceError, NotATraceError, TraceError
from distro_traces.header import Header
from distro_traces.ndjson import TraceFile, read_header, read_ndjson


class SeveralRunsError(TraceError):
    """There are several runs, and one is asked for."""


def read_run(path: Path, run: str | None = None) -> TraceFile:
    """The only run at `path`, or the one called `run`, in memory. Raises the TraceError family."""
    found = dict(_runs(path))
    if run is None and len(found) > 1:
        shown = ", ".join(sorted(found)[:5])
        raise SeveralRunsError(f"{path}: {len(found)} runs ({shown}{', …' if len(found) > 5 else ''}); name one")
    if run is not None and run not in found:
        raise SeveralRunsError(f"{path}: no run {run}; there are {', '.join(sorted(found)[:5])}")
    files = found[run] if run is not None else next(iter(found.values()))
    if files[0].suffix == parquet.SUFFIX:
        return parquet.read_parquet(files[0].parent if len(files) > 1 else files[0])
    traces = [read_ndjson(file) for file in files]
    return TraceFile(
        traces[0].header,
        tuple(event for trace in traces for event in trace.events),
        traces[-1].cut,
        tuple(row for trace in traces for row in trace.rejected),
    )


def headers_at(path: Path) -> Iterator[tuple[Header, tuple[Path, ...]]]:
    """The header and the files of each run at `path`. Raises the TraceError family."""
    for _, files in _runs(path):
        is_parquet = files[0].suffix == parquet.SUFFIX
        yield parquet.read_footer(files[0])[0] if is_parquet else read_header(files[0]), files


def _runs(path: Path) -> Iterator[tuple[str, tuple[Path, ...]]]:
    if not path.exists():
        raise EmptyTraceError(f"{path}: no such file or directory; name a recording or a directory of them")
    if path.is_file() and path.suffix not in (ndjson.SUFFIX, parquet.SUFFIX):
        raise NotATraceError(f"{path}: neither {ndjson.SUFFIX} nor {parquet.SUFFIX}; name a recording")
    if path.is_file() and path.suffix == parquet.SUFFIX:
        yield parquet.read_footer(path)[0].run, (path,)
        return
    at_rest = sorted({file.parent for file in path.rglob(f"run=*/*{parquet.SUFFIX}")}) if path.is_dir() else []
    if path.is_dir() and not at_rest and any(path.glob(f"part-*{parquet.SUFFIX}")):
        at_rest = [path]
    for directory in at_rest:
        parts = parquet.parts_of(directory)
        yield parquet.read_footer(parts[0])[0].run, parts
    if not at_rest or any(path.rglob(f"*{ndjson.SUFFIX}")):
        for segments in by_run(recordings_at(path)):
            yield read_header(segments[0]).run, segments
