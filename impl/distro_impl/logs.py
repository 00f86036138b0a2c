"""What a node logs, where it goes, and how a line looks: as a real server writes it, or one JSON object a line.

Every logger of the node is made here. Those named like the files of a real server (LOG_FILES) write that server's
lines; `distro_impl.…` are our own, of what a server has no words for. Whatever a stranger has sent may stand in a line,
and such lines are read by programs: so a text keeps to its line and to a length, and problems that are all alike
are limited to a rate, after which their number is logged. Lines about a node carry `node`, `event`, `client` and
`peer` beside their text, which the JSON form shows as fields. Source of the layout: docs/protocol #log-lines.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from enum import StrEnum
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TextIO

FIELDS = ("node", "event", "client", "peer")
"""What a line may say beside its text (`extra` of the logging call)."""

LOG_FILES = (
    "protocol-distro",
    "naming-distro",
    "naming-server",
    "naming-event",
    "naming-push",
    "nacos-cluster",
    "remote-digest",
    "plugin-control-connection",
)
"""Names of loggers, and of files of a real server without `.log`."""

FACTS = frozenset(LOG_FILES) - {"remote-digest"}
"""What they say is not limited, for readers count it; but traces are, and what any connection can bring about."""

OWN, OWN_FILE = "distro_impl", "nacos"
"""Under this logger all of our own stand, and here their lines go; a real server has a file of that name too."""
MAX_FILE_BYTES = 2**30
"""As in a server's own settings; then the file is put aside."""

MAX_TEXT = 2_000
"""Characters of one value in a line."""
MAX_TRACE = 8_000
MAX_PER_SECOND = 20
"""Warnings and errors that are alike but for their values."""
CUT = "… ({} characters)"

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class LogFormat(StrEnum):
    NACOS = "nacos"
    JSON = "json"


class NacosFormatter(logging.Formatter):
    """`%date %level %msg` and an empty line. The lines of a trace are indented: none of them begins like a line."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        return super().format(record) + "\n"

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        level = "WARN" if record.levelno == logging.WARNING else record.levelname
        return f"{record.asctime} {level} {record.message}"

    def formatException(self, ei: object) -> str:  # noqa: N802 - the name is logging's
        trace = cut(super().formatException(ei), MAX_TRACE)  # type: ignore[arg-type]
        return "\n".join(f"\t{line}" for line in trace.splitlines())


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"at": at, "level": record.levelname, "logger": record.name, "message": record.getMessage()}
        line.update({name: getattr(record, name) for name in FIELDS if getattr(record, name, None) is not None})
        if record.exc_info:
            line["exception"] = cut(self.formatException(record.exc_info), MAX_TRACE)
        return json.dumps(line, ensure_ascii=False)


class _Values(logging.Filter):
    """Makes texts of the values of a line that cannot end it."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(value if isinstance(value, int | float) else one_line(value) for value in record.args)
        return True


class _Rate(logging.Filter):
    """Lets MAX_PER_SECOND lines with one text pass; the first one afterwards says how many did not."""

    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        is_fact = record.name in FACTS and not record.exc_info
        if record.levelno < logging.WARNING or is_fact:
            return True
        began, count = self._counts.get(str(record.msg), (record.created, 0))
        if record.created - began >= 1:
            if count > MAX_PER_SECOND:
                record.msg = f"{record.msg} (and {count - MAX_PER_SECOND} more like this)"
            began, count = record.created, 0
        self._counts[str(record.msg)] = began, count + 1
        return count < MAX_PER_SECOND


def logger(name: str) -> logging.Logger:
    """The logger of that name, which keeps the rules of this module."""
    found = logging.getLogger(name)
    if not any(isinstance(each, _Values) for each in found.filters):
        if name not in LOG_FILES:
            found.addHandler(logging.NullHandler())  # nothing on stderr where logging was not configured
        found.addFilter(_Rate())
        found.addFilter(_Values())
    return found


class NodeLog:
    """What one node writes to the loggers of LOG_FILES. No line is formatted for a level that is off, nor without a
    handler: a walk in memory has thousands of warnings."""

    def __init__(self, node: str) -> None:
        self._node = node

    def write(
        self,
        logger: logging.Logger,
        level: int,
        text: str,
        *values: object,
        client: str | None = None,
        peer: str | None = None,
        error: Exception | None = None,
    ) -> None:
        """`client` and `peer` are whom the line is about; the trace of `error` follows it. A value that is a function
        is called only if the line is written."""
        if logger.isEnabledFor(level) and logger.hasHandlers():
            about = {"node": self._node, "client": client, "peer": peer}
            made = (value() if callable(value) else value for value in values)
            logger.log(level, text, *made, exc_info=error, extra=about)


def line(logger: logging.Logger, level: int, text: str, about: str | None = None) -> Callable[..., None]:
    """The method of a NodeLog that writes this line with its values; the first one is the `client` or `peer` that the
    line is about, if any."""

    def write(self: NodeLog, *values: object) -> None:
        self.write(logger, level, text, *values, **({about: values[0]} if about else {}))  # type: ignore[arg-type]

    return write


def one_line(value: object) -> str:
    text = cut(str(value), MAX_TEXT)
    return _UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[:length] + CUT.format(len(text))


def log_to(stream: TextIO = sys.stderr, *, form: LogFormat = LogFormat.NACOS, level: str = "WARNING") -> None:
    """Everything that this process logs from `level` on goes to `stream`."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter() if form is LogFormat.JSON else NacosFormatter())
    handler.setLevel(level)
    logging.basicConfig(handlers=[handler], level=level, force=True)


def log_to_directory(directory: Path, nodes: Collection[str], *, level: str = "INFO") -> None:
    """The files that a real server writes, from `level` on: in `directory`, or below it in one of each node.

    What a real server has no file for goes to OWN_FILE of each node. Raises OSError when a file cannot be written.
    """
    for name in LOG_FILES:
        logging.getLogger(name).setLevel(level)
    for node in nodes:
        folder = directory if len(nodes) == 1 else directory / node.replace(":", "_")
        folder.mkdir(parents=True, exist_ok=True)
        for name in LOG_FILES:
            handler = _file_handler(folder / f"{name}.log")
            handler.addFilter(lambda record, node=node: getattr(record, "node", None) == node)  # type: ignore[misc]
            logging.getLogger(name).addHandler(handler)
        logging.getLogger(OWN).addHandler(_file_handler(folder / f"{OWN_FILE}.log"))


def _file_handler(path: Path) -> logging.Handler:
    handler = RotatingFileHandler(path, maxBytes=MAX_FILE_BYTES, backupCount=7, encoding="utf-8")
    handler.setFormatter(NacosFormatter())
    return handler
