"""The log files of each node.

An operator hands over one directory per node, or all nodes' files in one directory with the node's name somewhere in
the file name; rotated (`.1`, `.2025-09-02.0`) and packed (`.gz`) or not. A node is therefore a directory together with
the part of a file name that is not the name of a Nacos log, a rotation or a packing. A file of another name in a
directory with Nacos logs belongs to that node; in a directory without any, each other name is a node of its own.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from distro_traces.errors import EmptyTraceError, TraceError, UnreadableTraceError

NACOS_LOGS = (
    "protocol-distro",
    "naming-distro",
    "naming-server",
    "naming-event",
    "nacos-cluster",
    "remote-digest",
    "naming-push",
)
"""The logs with facts of replication, in the order in which one request passes through them within a millisecond."""

OTHER_NACOS_LOGS = (
    *("naming-performance", "naming-rt", "naming-raft", "remote-core", "remote-push"),
    *("remote", "plugin-control-connection", "plugin-control", "protocol-raft", "alipay-jraft", "core-auth", "nacos"),
    *(
        "nacos-address",
        "nacos-persistence",
        "istio-main",
        "config-server",
        "config-dump",
        "config-notify",
        "config-pull",
    ),
    *("config-client-request", "config-trace", "config-memory", "config-fatal", "config-plugin", "start.out"),
)
_KNOWN = re.compile("|".join(sorted(map(re.escape, (*NACOS_LOGS, *OTHER_NACOS_LOGS)), key=len, reverse=True)))
_LOG = re.compile(r"\.(log|out|txt)\b|[-_.]log\b")
_ROTATION = re.compile(r"(\.gz|\.bz2|\.xz|\.zst|[._-]\d{4}-?\d\d-?\d\d([._T-]\d{1,6})*|\.\d{1,3})+$")
_DATED = re.compile(r"[._-]\d{4}-?\d\d-?\d\d([._T-]\d{1,6})*$")  # before `.log`, where a bare number may be an address
_ARCHIVE = re.compile(r"\.(zip|7z|rar|tar|tgz|tar\.\w+)$")
_EDGES = "-_. "


class ArchiveError(TraceError):
    """A file must be unpacked by other means."""


@dataclass(frozen=True, slots=True)
class LogFiles:
    """The files of one node. `label` distinguishes it from the others: a directory, a part of the file names."""

    label: str
    by_log: dict[str, tuple[Path, ...]]  # name of the log, without rotation, to its files


def find(directory: Path) -> tuple[LogFiles, ...]:
    """The log files below `directory` (or that one file), by node. Raises EmptyTraceError, UnreadableTraceError."""
    found: defaultdict[str, defaultdict[str, list[Path]]] = defaultdict(lambda: defaultdict(list))
    root = directory if directory.is_dir() else directory.parent
    for folder, paths in _folders(directory):
        place = "" if folder == root else folder.relative_to(root).as_posix()
        named = {path: split_name(path.name) for path in paths}
        labels = {label for log, label in named.values() if log is not None}
        others = {label for log, label in named.values() if log is None}
        for path, (log, label) in named.items():
            node = label
            if log is None and len(labels) == 1:
                node = next(iter(labels))
            elif log is None and not labels and len(others) == 1 and place:
                node = ""
            found["/".join(part for part in (place, node) if part)][log or label].append(path)
    files = root.rglob("*") if directory.is_dir() else [directory]
    archives = [path for path in files if _ARCHIVE.search(path.name)]
    if not found and archives:
        raise ArchiveError(f"{archives[0]}: an archive; unpack it first, and name the directory")
    if not found:
        raise EmptyTraceError(f"{directory}: no log files below (*.log, *.log.*, *.out, or .gz of them)")
    return tuple(
        LogFiles(label or root.name, {log: tuple(sorted(paths)) for log, paths in sorted(logs.items())})
        for label, logs in sorted(found.items())
    )


Packed = gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile
_PACKED: Mapping[bytes, Callable[[BufferedReader], Packed]] = {
    b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ": lzma.LZMAFile,
}
_ARCHIVES: Mapping[bytes, str] = {b"PK\x03\x04": "unzip", b"\x28\xb5\x2f\xfd": "unzstd", b"7z\xbc\xaf": "7z x"}


def unpacked(raw: BufferedReader, path: Path) -> Packed | BufferedReader:
    """The unpacked bytes of an open log file; its first bytes, not its name, decide. Raises ArchiveError."""
    begins = raw.peek(8)[:8]
    how = next((how for magic, how in _ARCHIVES.items() if begins.startswith(magic)), None)
    if how is not None:
        raise ArchiveError(f"{path}: packed in a way that is not read here; unpack it first ({how})")
    opened = next((opened for magic, opened in _PACKED.items() if begins.startswith(magic)), None)
    if opened is None and path.suffix == ".gz":
        opened = _PACKED[b"\x1f\x8b"]
    return raw if opened is None else opened(raw)


def _folders(directory: Path) -> Iterator[tuple[Path, list[Path]]]:
    def refuse(error: OSError) -> None:
        raise UnreadableTraceError(error.filename, error) from error

    if directory.is_file():
        yield directory.parent, [directory]
        return
    if not directory.exists():
        raise EmptyTraceError(f"{directory}: no such directory; name the one that holds the servers' log files")
    for folder, folders, names in os.walk(directory, onerror=refuse):
        folders.sort()
        paths = [Path(folder, name) for name in sorted(names) if _LOG.search(name) and name != "marks.txt"]
        if paths:
            yield Path(folder), paths


def split_name(name: str) -> tuple[str | None, str]:
    """The log that a file name names (None: no Nacos log), and the rest of the name, which may be a node."""
    bare = _DATED.sub("", _LOG.sub("", _ROTATION.sub("", name)))
    known = _KNOWN.search(bare)
    if known is None:
        return None, bare.strip(_EDGES)
    return known.group(), (bare[: known.start()].strip(_EDGES) + " " + bare[known.end() :].strip(_EDGES)).strip()
