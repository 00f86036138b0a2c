"""Recordings into Parquet: partitioned by run, sorted, packed, with a manifest; a stream, never a run in memory.

A recording may lie in several files, its segments; they become one run. `_manifest.jsonl` beside the runs has a line
for each, with its header and its files, so that a reader of a hundred thousand runs need not open them to know.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from distro_traces import ndjson
from distro_traces.errors import InvalidLinesError, NotATraceError, UnwritableTraceError
from distro_traces.event import Event
from distro_traces.header import Header
from distro_traces.ndjson import Cut, Rejected, read_header, stream_ndjson
from distro_traces.places import traces_at
from distro_traces.run_writer import PART_BYTES, Row, RunWriter

MANIFEST = "_manifest.jsonl"


def compact(
    recordings: Iterable[Path | str], directory: Path | str, *, part_bytes: int = PART_BYTES
) -> tuple[Path, ...]:
    """Write NDJSON recordings as Parquet below `directory` and return the files made; the recordings stay.

    Raises InvalidLinesError if a recording has lines that are no events: Parquet has no place for them, and they must
    not get lost. Raises RunExistsError if the run is there already, and the TraceError family of `stream_ndjson`.
    """
    directory = Path(directory)
    made: list[Path] = []
    for segments in by_run(Path(path) for path in recordings):
        parts = _compact_run(segments, directory, part_bytes)
        made += parts
        _note(directory, read_header(segments[0]), parts)
    return tuple(made)


def recordings_at(path: Path) -> tuple[Path, ...]:
    """The NDJSON files at `path`: of a recording all its segments, of a directory all below it."""
    return traces_at(path, (ndjson.SUFFIX,))


def by_run(paths: Iterable[Path]) -> Iterator[tuple[Path, ...]]:
    """The segments of each run in their order. Raises NotATraceError when one of them is missing or there twice."""
    runs: defaultdict[str, list[tuple[int, Path]]] = defaultdict(list)
    for path in paths:
        header = read_header(path)
        runs[header.run].append((header.segment, path))
    for run, segments in runs.items():
        segments.sort()
        require_whole(run, segments)
        yield tuple(path for _, path in segments)


def require_whole(run: str, segments: Sequence[tuple[int, Path | str]], *, is_followed: bool = False) -> None:
    """`segments`: the numbers and files, in order; `is_followed`: the last one says so (`parquet.Footer`). Raises
    NotATraceError when one is missing or there twice."""
    numbers = [number for number, _ in segments]
    files = ", ".join(str(path) for _, path in segments)
    if numbers != list(range(1, len(numbers) + 1)):
        raise NotATraceError(f"run {run}: segments {numbers} instead of 1 to {max(numbers)}, in {files}")
    if is_followed:
        raise NotATraceError(f"run {run}: segment {numbers[-1]} is not the last one, and no further one is in {files}")


def _compact_run(segments: tuple[Path, ...], directory: Path, part_bytes: int) -> tuple[Path, ...]:
    writer = RunWriter(directory, read_header(segments[0]), part_bytes=part_bytes)
    invalid, first, cut = 0, "", None
    try:
        for path in segments:
            for row in stream_ndjson(path):
                if isinstance(row, Event):
                    if not invalid:
                        writer.add(row.node, _values(row), row.seq)
                elif isinstance(row, Cut):
                    cut = row
                else:
                    first = first or _where(path, row)
                    invalid += 1
        if invalid:
            raise InvalidLinesError(
                f"{segments[0]}: lines that do not fit: {invalid} (the first: {first}); `distrocheck check` lists "
                "them, remove them before compacting"
            )
        return writer.close(cut)
    finally:
        writer.abandon()


def _where(path: Path, row: Rejected) -> str:
    return f"line {row.line} of {path.name}, {row.reason}"


def _values(event: Event) -> Any:
    return tuple(getattr(event, name) for name in Row._fields)


def _note(directory: Path, header: Header, parts: tuple[Path, ...]) -> None:
    """Add a run to the manifest."""
    path = directory / MANIFEST
    try:
        files = [_file(part, directory) for part in parts]
        line = {
            "run": header.run,
            "events": sum(file["events"] for file in files),
            "header": header.to_json(),
            "files": files,
        }
        with path.open("a") as manifest:
            manifest.write(json.dumps(line, separators=(",", ":")) + "\n")
    except OSError as error:
        raise UnwritableTraceError(path, error) from error


def read_manifest(directory: Path) -> list[dict[str, Any]]:
    """What `compact` has written into `directory`: run, events, header, files (path, events, bytes) of each run."""
    return [json.loads(line) for line in (directory / MANIFEST).read_text().splitlines()]


def _file(part: Path, directory: Path) -> dict[str, Any]:
    metadata = pq.read_metadata(part)
    return {
        "path": part.relative_to(directory).as_posix(),
        "events": metadata.num_rows,
        "bytes": part.stat().st_size,
    }
