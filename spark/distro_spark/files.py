"""The file systems that a session can read, asked through its JVM: `file:`, `hdfs:`, `s3a:` or whatever is configured.

Spark knows how to reach them and with whose rights; Python does not. So files are found by Spark's own index, which
lists large trees on the executors, and the beginning of one is read as a stream that the JVM opens. What lies on this
machine's disk Python opens itself, here or on an executor, since that is a hundred times quicker.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from distro_traces.errors import EmptyTraceError, UnreadableTraceError

_FILE = "file"


class Files:
    """Names are absolute paths of the local disk, or URIs of anything else."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        gateway: Any = session
        self._jvm = gateway._jvm
        self._configuration = gateway._jsc.hadoopConfiguration()

    def named(self, path: Path | str) -> str:
        """The name of what a user calls `path`; one without scheme is on the default file system of the session."""
        text = str(path)
        scheme = urlsplit(text).scheme
        if scheme == _FILE:
            return unquote(urlsplit(text).path)
        if scheme and text.startswith(f"{scheme}:/"):
            return text
        with _errors(text):
            default = self._jvm.org.apache.hadoop.fs.FileSystem.getDefaultUri(self._configuration)
        return os.path.abspath(text) if default.getScheme() == _FILE else text

    def is_directory(self, name: str) -> bool:
        """Raises EmptyTraceError when there is nothing of that name, UnreadableTraceError."""
        with _errors(name):
            path, system = self._found(name)
            return bool(system.getFileStatus(path).isDirectory())

    def below(self, directory: str, suffixes: tuple[str, ...]) -> list[str]:
        """The files at any depth, in order. Hidden ones are skipped: an unfinished compaction is one."""
        with _errors(directory):
            index = (
                self._session.read.format("binaryFile")
                .option("recursiveFileLookup", "true")
                .option("pathGlobFilter", f"*{{{','.join(suffixes)}}}")
                .load(literal(directory))
            )
            return sorted(name_of(file) for file in index.inputFiles())

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        """The bytes of a file, through the JVM."""
        with _errors(name):
            path, system = self._found(name)
            stream = _Stream(self._jvm, system.open(path), system.getFileStatus(path).getLen())
            with io.BufferedReader(stream, 1 << 16) as file:
                yield file

    def _found(self, name: str) -> tuple[Any, Any]:
        path = self._jvm.org.apache.hadoop.fs.Path(name)
        return path, path.getFileSystem(self._configuration)


def is_local(name: str) -> bool:
    return name.startswith("/")


def name_of(uri: str) -> str:
    """The name of a file that Spark speaks of: `file:/tmp/a%20b` is `/tmp/a b`."""
    parts = urlsplit(uri)
    if parts.scheme in ("", _FILE):
        return unquote(parts.path)
    return f"{parts.scheme}://{parts.netloc}{unquote(parts.path)}"


@contextmanager
def opened(session: SparkSession, name: str) -> Iterator[BinaryIO | None]:
    """The bytes of a file that only the JVM can open; None: it lies on this machine's disk."""
    if is_local(name):
        yield None
    else:
        with Files(session).open(name) as file:
            yield file


def literal(name: str) -> str:
    """Spark takes paths for patterns; ours are names."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", name)


class _Stream(io.RawIOBase):
    """A Hadoop input stream, which lies in the JVM."""

    def __init__(self, jvm: Any, stream: Any, size: int) -> None:
        self._jvm, self._stream, self._size, self._at = jvm, stream, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = base + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        wanted = min(len(buffer), max(0, self._size - self._at))
        if wanted:
            self._stream.seek(self._at)
            data = bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(self._stream, wanted))
            buffer[:wanted] = data
            self._at += wanted
        return wanted

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


@contextmanager
def _errors(name: str) -> Iterator[None]:
    """What a file system complains of, in one line."""
    try:
        yield
    except Py4JJavaError as error:
        cause = error.java_exception
        if cause.getClass().getSimpleName() in ("FileNotFoundException", "NoSuchFileException"):
            raise EmptyTraceError(
                f"{name}: no such file or directory; name a recording or a directory of them"
            ) from error
        raise UnreadableTraceError(name, OSError(str(cause.toString()).splitlines()[0])) from error
    except PySparkException as error:
        raise UnreadableTraceError(name, OSError(str(error).splitlines()[0])) from error
