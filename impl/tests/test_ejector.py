"""Connections that the node ends after a check of them (docs/protocol #ejector-check)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from impl_lab import NACOS_2_0_4, NACOS_2_2_4, STRICT, Lab, RawClient

from distro_impl import Node, Profile, VirtualClock
from distro_impl.remote.connection import BUSY_ABOVE_BYTES, Connection, ConnectionBusyError, ConnectionMeta
from distro_protos import encode

pytestmark = pytest.mark.wire

A_PUSH_MS = 600
JUST_BEFORE_THE_CHECK_MS, THE_CHECK_MS = 21_900, 100
"""Checks are at 1, 4, … 19, 22 s; twenty seconds of silence are first noticed by the one at 22 s."""


async def silent(lab: Lab, node: Node) -> RawClient:
    client = await lab.naming(node)
    client.answers_detection = False
    assert (await client.register("web", 80)).succeeded
    return client


async def is_registered(client: RawClient) -> bool:
    return (await client.ask("HealthCheckRequest", {})).succeeded


@pytest.mark.parametrize(("profile", "timeout_ms"), [(NACOS_2_0_4, 1_000), (STRICT, 5_000)], ids=["2.0.4", "strict"])
async def test_a_client_that_does_not_answer_the_detection_is_unregistered(
    lab: Lab, profile: Profile, timeout_ms: int
) -> None:
    node, clock = await lab.node(profile=profile)
    client, reader = await silent(lab, node), await lab.naming(node)
    await clock.advance(JUST_BEFORE_THE_CHECK_MS)
    assert client.arrived() == []
    await clock.advance(THE_CHECK_MS)
    assert (await client.next_request()).type == "ClientDetectionRequest"
    await clock.advance(timeout_ms - 100)
    assert await reader.ports("web") == [80]
    await clock.advance(100)
    await client.stream_ended()
    await clock.advance(A_PUSH_MS)  # in releases a query shows what the last push saw
    assert await reader.ports("web") == []
    refused = await client.ask("HealthCheckRequest", {})
    assert (refused.type, refused.body["errorCode"]) == ("ErrorResponse", 301)


async def test_2_2_4_never_looks_for_the_silent(lab: Lab) -> None:
    """B03."""
    node, clock = await lab.node(profile=NACOS_2_2_4)
    client = await silent(lab, node)
    await clock.advance(600_000)
    assert client.arrived() == []
    assert await is_registered(client)


async def test_a_client_that_answers_stays_however_fast_virtual_time_goes(lab: Lab) -> None:
    run = await lab.cluster(size=3)
    client = await lab.naming(run.cluster.nodes[0])
    await client.register("web", 80)
    await run.clock.advance(300_000)
    assert await is_registered(client)
    assert [await (await lab.naming(node)).ports("web") for node in run.cluster.nodes] == [[80]] * 3
    assert sorted(run.links.set_ups) == sorted(set(run.links.set_ups))  # members among themselves stay connected too


async def test_a_request_is_a_sign_of_life_and_a_server_check_is_none(lab: Lab) -> None:
    node, clock = await lab.node()
    active, checking = await silent(lab, node), await silent(lab, node)
    await clock.advance(10_000)
    assert await is_registered(active)
    await checking.check()
    await clock.advance(18_000)
    assert active.arrived() == []
    assert [message.type for message in checking.arrived()] == ["ClientDetectionRequest"]
    assert await is_registered(active)
    assert not await is_registered(checking)


async def test_any_response_on_the_stream_is_a_sign_of_life(lab: Lab) -> None:
    node, clock = await lab.node()
    client = await silent(lab, node)
    await clock.advance(10_000)
    await client.say("NotifySubscriberResponse", {"resultCode": 500, "requestId": "never sent"})
    await client.say("ConnectionSetupRequest", {"labels": {}, "abilityTable": {}})
    assert (await client.next_request()).type == "SetupAckRequest"  # by now the response was read
    await clock.advance(18_000)
    assert client.arrived() == []


async def test_a_client_whose_stream_the_node_ended_can_set_up_again_on_its_transport(lab: Lab) -> None:
    node, clock = await lab.node()
    client = await silent(lab, node)
    await clock.advance(30_000)
    await client.stream_ended()
    before = client.id
    await client.connect()
    assert client.id != before
    assert (await client.register("web", 81)).succeeded
    assert await client.ports("web") == [81]


class SlowReader:
    """A stream whose client reads nothing until a test lets it."""

    peer = "ipv4:10.0.0.9:1"

    def __init__(self) -> None:
        self.unsent_bytes = 0

    def send(self, message: bytes) -> None:
        self.unsent_bytes += len(message)

    def reads(self) -> None:
        self.unsent_bytes = 0

    async def read(self) -> bytes | None: ...
    async def drained(self) -> None: ...
    async def ended(self) -> None: ...
    def close(self) -> None: ...


async def test_data_waiting_for_a_slow_reader_is_bounded() -> None:
    clock, slow = VirtualClock(), SlowReader()
    meta = ConnectionMeta(
        id="1_10.0.0.9_1", client_ip="10.0.0.9", remote_port=1, local_port=1, created_ms=clock.now_ms()
    )
    connection = Connection(meta, clock, slow)
    push = encode("NotifySubscriberRequest", {"text": "x" * 1_000})
    for _ in range(BUSY_ABOVE_BYTES // push.ByteSize() + 1):
        connection.send(push)
    with pytest.raises(ConnectionBusyError):
        connection.send(push)
    await clock.advance(60_000)
    assert connection.busy_ms() == 60_000
    slow.reads()
    connection.send(push)
    assert connection.busy_ms() == 0


async def test_a_client_that_reads_nothing_for_too_long_is_ejected(lab: Lab) -> None:
    """A subscriber that asks but never reads its stream. gRPC itself takes some before it waits for the reader."""
    node, clock = await lab.node(profile=replace(STRICT, push_blocked_ms=10_000, push_timeout_ms=100))
    reader, writer = await lab.naming(node), await lab.naming(node)
    reader.reads.clear()
    await reader.subscribe("web")
    for second in range(60):
        ballast = {"second": str(second), "ballast": "x" * 1_000}  # a server takes no more of one instance
        await writer.register_batch("web", *range(100), metadata=ballast)
        await clock.advance(1_000)
        if not await is_registered(reader):
            break
    assert 10 < second < 59
    assert await is_registered(writer)
    reader.reads.set()
    await reader.stream_ended()
