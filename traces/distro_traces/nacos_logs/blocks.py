"""The blocks of a log file: some hundreds of whole lines at once, and the lines of them that must be read.

Most lines of real logs do not concern replication, and reading a line as a record costs a hundred times more than
skipping it. So a block is searched for fixed words first, and only lines with one of them are read singly (`records`).
Packed files are unpacked, files in UTF-16 (a shell of Windows writes it) are recoded, and only the beginning of a line
that is too long is kept, so that memory is bounded for any file.
"""

from __future__ import annotations

import codecs
import lzma
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from gzip import BadGzipFile
from pathlib import Path
from typing import NamedTuple

from distro_traces.errors import DamagedTraceError, UnreadableTraceError
from distro_traces.nacos_logs.files import unpacked

TOO_LONG = "longer than 64 KiB: the rest of the line"
CUT = "packed file cut in the middle"

BLOCK_BYTES = 256 * 1024
LINE_BYTES_MAX = 64 * 1024


OnRead = Callable[[int], None]
"""Called with the bytes of a file, as it lies on disk, that were read since the last call."""


class Block(NamedTuple):
    """Whole lines, without their ends; `first_line`: the number of the first. `is_cut`: one line without an end."""

    first_line: int
    data: bytes
    lines: list[bytes]
    is_cut: bool = False


def blocks(path: Path, skipped: Counter[str], on_read: OnRead | None = None) -> Iterator[Block]:
    """The lines of a file, in order. Raises UnreadableTraceError, DamagedTraceError."""
    number, rest, is_dropping, cuts = 1, b"", False, skipped[CUT]
    for data in _bytes(path, skipped, on_read):
        if is_dropping:
            _, newline, data = data.partition(b"\n")  # noqa: PLW2901 - the end of the line is dropped
            if not newline:
                continue
            is_dropping = False
            data = b"\n" + data  # noqa: PLW2901
        data = rest + data  # noqa: PLW2901
        whole, newline, rest = data.rpartition(b"\n")
        if newline:
            lines = whole.split(b"\n")
            yield Block(number, whole, lines)
            number += len(lines)
        if len(rest) > LINE_BYTES_MAX:
            skipped[TOO_LONG] += 1
            rest, is_dropping = rest[:LINE_BYTES_MAX], True
    if rest and skipped[CUT] == cuts:  # else it is half a line
        yield Block(number, rest, [rest], is_cut=True)


def _bytes(path: Path, skipped: Counter[str], on_read: OnRead | None) -> Iterator[bytes]:
    """The content of a file, unpacked; of a cut file, the part that is there."""
    decoder, read = None, 0
    try:
        with path.open("rb") as raw, unpacked(raw, path) as file:
            data = file.read1(BLOCK_BYTES)
            if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and b"\0" in data[:64]:
                decoder = codecs.getincrementaldecoder("utf-16")("replace")
            while data:
                yield data if decoder is None else decoder.decode(data).encode()
                if on_read is not None:
                    on_disk = raw.tell()
                    on_read(on_disk - read)
                    read = on_disk
                data = file.read1(BLOCK_BYTES)
    except EOFError:
        skipped[CUT] += 1
    except (BadGzipFile, zlib.error, lzma.LZMAError) as error:
        raise DamagedTraceError(path, error) from error
    except OSError as error:
        raise UnreadableTraceError(path, error) from error
