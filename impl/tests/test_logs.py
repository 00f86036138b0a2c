"""The two forms of a log line."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from io import StringIO

import pytest
from impl_lab import Lab

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


def lines(caplog: pytest.LogCaptureFixture, node: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if getattr(record, "node", None) == node]


@pytest.mark.wire
async def test_distro_is_told_in_the_words_of_a_real_server(lab: Lab, caplog: pytest.LogCaptureFixture):
    """The texts are those of real-nacos.md section 7."""
    caplog.set_level(logging.INFO)
    run = await lab.cluster(size=2)
    first, second = run.cluster.addresses
    client = await lab.naming(run.cluster.nodes[0])
    await client.register("orders", 8080)
    await run.clock.advance(1_100)
    key = f"DistroKey{{resourceKey='{client.id}', resourceType='Nacos:Naming:v2:ClientData', targetServer='{second}'}}"
    assert lines(caplog, first)[-2:] == [
        f"[DISTRO-START] DistroSyncChangeTask for {key}",
        f"[DISTRO-END] {key} result: true",
    ]
    assert lines(caplog, second)[-2:] == [
        f"[DISTRO] Receive distro data type: CHANGE, key: {key}",
        f"[Client-Add] Received distro client sync data {client.id}, revision=1",
    ]
    assert "[DISTRO-INIT] load snapshot data success" in lines(caplog, first)
    await run.clock.advance(5_000)
    assert not [line for line in lines(caplog, first) if "VERIFY" in line or "verify" in line]  # of level DEBUG


@pytest.mark.wire
async def test_what_goes_wrong_is_told_too(lab: Lab, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)
    run = await lab.cluster(size=2)
    first, second = run.cluster.addresses
    client = await lab.naming(run.cluster.nodes[0])  # the other one does not know it before a verify fails
    await run.clock.advance(5_000)
    assert f"Target {second} verify client {client.id} failed, sync new client" in lines(caplog, first)
    assert f"client {client.id} is invalid, get new client from 127.0.0.1" in lines(caplog, second)
    run.link(0, 1).cut = True
    await client.register("orders", 8080)
    await run.clock.advance(1_100)
    assert [line for line in lines(caplog, first) if line.startswith("[DISTRO] Sync data change failed. key: Distro")]
