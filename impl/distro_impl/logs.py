"""How the logs of a node look: as a real server writes them, or one JSON object a line.

Lines about a node carry `node`, `event`, `client` and `peer` beside their text, which the JSON form shows as fields.
Source of the layout: wire-protocol.md section 9.1.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from enum import StrEnum
from typing import TextIO

FIELDS = ("node", "event", "client", "peer")
"""What a line may say beside its text (`extra` of the logging call)."""


class LogFormat(StrEnum):
    NACOS = "nacos"
    JSON = "json"


class NacosFormatter(logging.Formatter):
    """`%date %level %msg` and an empty line."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        return super().format(record) + "\n"


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"at": at, "level": record.levelname, "logger": record.name, "message": record.getMessage()}
        line.update({name: getattr(record, name) for name in FIELDS if getattr(record, name, None) is not None})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def log_to(stream: TextIO = sys.stderr, *, form: LogFormat = LogFormat.NACOS, level: str = "WARNING") -> None:
    """Everything that this process logs from `level` on goes to `stream`."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter() if form is LogFormat.JSON else NacosFormatter())
    logging.basicConfig(handlers=[handler], level=level, force=True)
