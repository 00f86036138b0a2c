"""One run, from wherever it lies: a recording with its segments, a Parquet file, the directory of a run or of many."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from distro_traces import ndjson, parquet
from distro_traces.compact import by_run, require_whole
from distro_traces.errors import TraceError
from distro_traces.header import Header
from distro_traces.ndjson import TraceFile, read_header, read_ndjson
from distro_traces.places import traces_at


class SeveralRunsError(TraceError):
    """There are several runs, and one is asked for; or one is there several times."""


def read_run(path: Path, run: str | None = None) -> TraceFile:
    """The only run at `path`, or the one called `run`, in memory. Raises the TraceError family."""
    found = {header.run: files for header, files in headers_at(path)}
    if run is None and len(found) > 1:
        shown = ", ".join(sorted(found)[:5])
        raise SeveralRunsError(
            f"{path}: {len(found)} runs ({shown}{', …' if len(found) > 5 else ''}); name one by --run"
        )
    if run is not None and run not in found:
        raise SeveralRunsError(f"{path}: no run {run}; there are {', '.join(sorted(found)[:5])}")
    files = found[run] if run is not None else next(iter(found.values()))
    traces = [parquet.read_parquet(file) if file.suffix == parquet.SUFFIX else read_ndjson(file) for file in files]
    return TraceFile(
        traces[0].header,
        tuple(event for trace in traces for event in trace.events),
        traces[-1].cut,
        tuple(row for trace in traces for row in trace.rejected),
    )


def headers_at(path: Path) -> tuple[tuple[Header, tuple[Path, ...]], ...]:
    """The header and the files of each run at `path`, in their order. Raises the TraceError family."""
    found = traces_at(path)
    recordings = by_run(file for file in found if file.suffix == ndjson.SUFFIX)
    runs = [(read_header(segments[0]), segments) for segments in recordings]
    runs += _at_rest(file for file in found if file.suffix == parquet.SUFFIX)
    first: dict[str, Path] = {}
    for header, (file, *_) in runs:
        other = first.setdefault(header.run, file)
        if other is not file:
            raise SeveralRunsError(f"run {header.run} is in two files, {other} and {file}; name one of them")
    return tuple(runs)


def _at_rest(files: Iterable[Path]) -> Iterable[tuple[Header, tuple[Path, ...]]]:
    """The parts of a run lie in one directory."""
    parts: dict[tuple[Path, str], list[tuple[parquet.Footer, Path]]] = {}
    for file in files:
        footer = parquet.read_footer(file)
        parts.setdefault((file.parent, footer.header.run), []).append((footer, file))
    for of_run in parts.values():
        of_run.sort(key=lambda part: part[0].header.segment)
        last, (first, _) = of_run[-1][0], of_run[0]
        segments = [(footer.header.segment, file) for footer, file in of_run]
        require_whole(first.header.run, segments, is_followed=last.is_followed)
        yield first.header, tuple(file for _, file in of_run)
