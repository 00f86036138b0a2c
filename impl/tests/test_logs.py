"""The two forms of a log line."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from impl_lab import NACOS_2_2_4, STRICT, Lab, errors_logged

import distro_impl
from distro_impl import Profile
from distro_impl.logs import LOG_FILES, LogFormat, NodeLog, log_to, logger
from distro_impl.naming.service_manager import ServiceManager


@pytest.fixture(autouse=True)
def unhurried() -> None:
    """Lines that an earlier test logged in the same second do not count."""
    for each in map(logging.getLogger, LOG_FILES):
        for limiter in each.filters:
            getattr(limiter, "_counts", {}).clear()


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
    """Of Distro."""
    records = [record for record in caplog.records if getattr(record, "node", None) == node]
    return [record.getMessage() for record in records if record.name in ("protocol-distro", "naming-distro")]


@pytest.mark.wire
async def test_distro_is_logged_in_the_words_of_a_real_server(lab: Lab, caplog: pytest.LogCaptureFixture):
    """The texts are those of docs/protocol #log-lines."""
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
    assert lines(caplog, second)[-3:] == [
        f"[DISTRO] Receive distro data type: CHANGE, key: {key}",
        f"[Client-Add] Received distro client sync data {client.id}, revision=1",
        f"[processBatchInstanceDistroData] BatchInstanceData is null , clientId is :{client.id}",
    ]
    assert "[DISTRO-INIT] load snapshot data success" in lines(caplog, first)
    await run.clock.advance(5_000)
    assert not [line for line in lines(caplog, first) if "VERIFY" in line or "verify" in line]  # of level DEBUG


@pytest.mark.wire
async def test_failures_are_logged_too(lab: Lab, caplog: pytest.LogCaptureFixture):
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


# What strangers have sent


FORGED = "2026-01-01 00:00:00,000 INFO [DISTRO-END] all is well"


def test_a_value_keeps_to_its_line_and_to_a_length(written: StringIO):
    log_to(written, level="INFO")
    try:
        raise ValueError(f"first\n{FORGED}")
    except ValueError:
        logger("naming-distro").exception("client %s is invalid", f"c1\n\n{FORGED}\u2028{FORGED}" + "x" * 10**6)
    lines = written.getvalue().splitlines()
    assert len(written.getvalue()) < 5_000
    assert len([line for line in lines if re.match(r"\d{4}-", line)]) == 1
    assert "c1\\n\\n2026-01-01 00:00:00,000 INFO [DISTRO-END] all is well\\u20282026" in lines[0]
    assert "… (1000111 characters)" in lines[0]


def test_lines_that_are_alike_are_counted(written: StringIO):
    log_to(written, level="INFO")
    busy, other = logger("distro_impl.test.busy"), logger("distro_impl.test.other")
    for number in range(100):
        busy.warning("ignored on the stream of %s", number)
        busy.info("not limited: %s", number)
    other.warning("ignored on the stream of %s", "another")
    assert written.getvalue().count("ignored on the stream of") == 20 + 1
    assert written.getvalue().count("not limited") == 100
    record = busy.makeRecord(busy.name, logging.WARNING, "", 0, "ignored on the stream of %s", ("the next",), None)
    record.created += 1
    busy.handle(record)
    assert written.getvalue().endswith("ignored on the stream of the next (and 80 more like this)\n\n")


def test_without_a_handler_no_log_line_is_formatted(written: StringIO, capsys: pytest.CaptureFixture[str]):
    logging.getLogger().handlers.clear()  # those of pytest
    put_together = []

    class Value:
        def __str__(self) -> str:
            put_together.append(self)
            return "text"

    def log() -> None:
        for name in LOG_FILES:
            NodeLog("a:1").write(logger(name), logging.ERROR, "a %s", Value())

    log()
    assert (put_together, capsys.readouterr().err) == ([], "")
    log_to(written)
    log()
    assert written.getvalue().count("ERROR a text") == len(LOG_FILES)


def test_every_logger_of_the_node_keeps_the_rules():
    source = Path(distro_impl.__file__).parent
    with_own = [path.name for path in source.rglob("*.py") if "getLogger(" in path.read_text()]
    assert with_own == ["logs.py"]


@pytest.mark.wire
async def test_a_stranger_writes_no_line_of_its_own(lab: Lab, written: StringIO):
    log_to(written, level="INFO")
    node, _ = await lab.node()
    member = await lab.member(node)
    for _ in range(100):
        await member.ask(f"Nothing\n{FORGED}", {})
        await member.say(f"Nothing\n{FORGED}", {"headers": [f"\n{FORGED}"]})
        await member.distro("DELETE", f"c1\n{FORGED}")
        await member.distro("CHANGE", "c1", {"clientId": f"c1\n{FORGED}"})
    assert [line for line in written.getvalue().splitlines() if line.startswith(FORGED)] == []


# Defects


@pytest.mark.wire
@pytest.mark.parametrize("profile", [STRICT, NACOS_2_2_4], ids=lambda profile: profile.name)
async def test_a_defect_is_logged_with_its_trace_and_leaves_no_half_client(
    lab: Lab, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, profile: Profile
):
    run = await lab.cluster(profile, size=1)
    member = await lab.member(run.cluster.nodes[0])
    with monkeypatch.context() as broken:
        broken.setattr(ServiceManager, "touch", lambda *_: {}["a defect"])
        reply = await member.change("c1", 1, orders=8080, users=8081)
    assert (reply.type, reply.body["errorCode"]) == ("DistroDataResponse", 500)
    assert reply.body["resultCode"] == (500 if profile is STRICT else 200)  # as the release answers it
    records = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [record.getMessage() for record in records if record.name == "naming-distro"] == [
        "[DISTRO-FAILED] distro handle with exception"
    ]
    assert [record.exc_info is not None for record in records if record.name.startswith("distro_impl")] == [True]
    clients = run.cluster.nodes[0].parts.naming.clients
    held = clients.get("c1")
    assert held is None or len(held.publishers) == 2
    assert (await member.change("c1", 2, orders=8080, users=8081)).succeeded
    for service in ("orders", "users"):
        assert len(await member.hosts(service)) == 1


@pytest.mark.wire
async def test_unreadable_data_is_logged_in_the_words_of_a_real_server(lab: Lab, caplog: pytest.LogCaptureFixture):
    node, _ = await lab.node()
    member = await lab.member(node)
    for malformed in ({}, {"clientId": 5}, {"clientId": "c1", "attributes": 3}):
        assert not (await member.distro("CHANGE", "c1", malformed)).succeeded
    records = [record.getMessage() for record in caplog.records if record.name == "naming-distro"]
    assert records == ["[DISTRO-FAILED] distro handle with exception"] * 3
    assert errors_logged(caplog) == []
