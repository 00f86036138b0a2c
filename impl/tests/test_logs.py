"""The two forms of a log line."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from io import StringIO

import pytest

from distro_impl.logs import LogFormat, log_to


@pytest.fixture
def written() -> Iterator[StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers.clear()
    yield StringIO()
    root.handlers[:] = handlers
    root.setLevel(level)


def test_a_line_looks_like_one_of_a_real_server(written: StringIO):
    log_to(written, level="INFO")
    logging.getLogger("protocol-distro").info("[DISTRO-INIT] load snapshot data success")
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO \[DISTRO-INIT\] load snapshot data success\n\n", written.getvalue()
    )


def test_a_line_is_an_object_with_what_it_is_about(written: StringIO):
    log_to(written, form=LogFormat.JSON, level="INFO")
    logging.getLogger("protocol-distro").info("text %s", "é", extra={"node": "a:1", "client": "c1"})
    logging.getLogger("protocol-distro").debug("not this one")
    try:
        raise ValueError("why")
    except ValueError:
        logging.getLogger("x").exception("broken")
    first, second = (json.loads(line) for line in written.getvalue().splitlines())
    assert first.items() >= {"level": "INFO", "logger": "protocol-distro", "message": "text é", "node": "a:1"}.items()
    assert (first["client"], "peer" in first) == ("c1", False)
    assert "ValueError: why" in second["exception"]
