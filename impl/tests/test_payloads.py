"""For every request, the answer is a typed response or an ErrorResponse, and the connection lives (sections 1.4, 1.5).

Hypothesis spoils valid requests of every type; what a wrong value in a field means is shown by example.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from impl_lab import SERVICE, Lab, RawClient, errors_logged, sync_data
from payloads import CLUSTER_REQUESTS, MEMBER, NASTY_TEXTS, REQUESTS, SDK_REQUESTS, WEB, spoiled

from distro_impl import Node, VirtualClock
from distro_impl.distro.transport_agent import decode_content
from distro_impl.options import MAX_MESSAGE_BYTES
from distro_protos import Message, Payload, encode

pytestmark = pytest.mark.wire
OVER_GRPC = True

ERROR_CODES = {-401, 300, 301, 302, 400, 403, 404, 500, 502}
"""The errors of docs/protocol #wire-errors that a node answers with."""


def assert_is_an_answer(reply: Message) -> None:
    """A typed response, or an ErrorResponse with a code of the sheet; the three kinds of success agree."""
    assert reply.type.endswith("Response")
    result, error = reply.body["resultCode"], reply.body["errorCode"]
    assert reply.body["success"] is (result == 200)
    if reply.type == "ErrorResponse":
        assert error in ERROR_CODES
        assert result in (500, error)
        assert not reply.succeeded


class Probe:
    """A node with one connection on each port, to which anything may be sent."""

    def __init__(self, lab: Lab, node: Node, clock: VirtualClock, sdk: RawClient, member: RawClient) -> None:
        self.lab, self.node, self.clock, self.sdk, self.member = lab, node, clock, sdk, member

    async def still_serves(self) -> None:
        """Both connections, and a valid request on each."""
        assert (await self.sdk.register("web", 80)).succeeded
        assert 80 in await self.sdk.ports("web")
        assert (await self.sdk.ask("ServiceListRequest", {**SERVICE, "pageNo": 1, "pageSize": 9})).succeeded
        assert (await self.member.change("c9", 1, api=90)).succeeded
        assert (await self.member.verify("c9", 1)) is True
        assert (await self.member.ask("DistroDataRequest", {"dataOperation": "SNAPSHOT"})).succeeded
        await self.clock.advance(1_000)
        for push in self.sdk.take():
            await self.sdk.acknowledge(push)


async def probe(lab: Lab) -> Probe:
    node, clock = await lab.node()
    return Probe(lab, node, clock, await lab.naming(node), await lab.member(node))


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> Callable[[], None]:
    """Asserts that no error was logged so far."""

    def check() -> None:
        assert errors_logged(caplog) == []

    return check


def test_spoiled_requests_are_answered_and_change_nothing_else(quiet: Callable[[], None]) -> None:
    """One node takes them all, so that what one leaves behind meets the next."""
    loop = asyncio.new_event_loop()
    failures: list[Any] = []
    loop.set_exception_handler(lambda _, context: failures.append(context))
    lab = Lab(over_grpc=True)
    target = loop.run_until_complete(probe(lab))

    @settings(
        max_examples=100,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def spoil(data: st.DataObject) -> None:
        def choose(options: Any) -> Any:
            return data.draw(st.sampled_from(options))

        batch = [(port, spoiled(choose, requests)) for port, requests in PORTS for _ in range(4)]
        loop.run_until_complete(_send(target, batch))

    try:
        spoil()
    finally:
        loop.run_until_complete(lab.close())
        loop.close()
    quiet()
    assert failures == []


PORTS = (("sdk", SDK_REQUESTS), ("member", CLUSTER_REQUESTS + SDK_REQUESTS))


async def _send(target: Probe, batch: list[tuple[str, bytes]]) -> None:
    for port, serialized in batch:
        client = target.sdk if port == "sdk" else target.member
        try:
            reply = await client.ask_bytes(serialized)
        except grpc.aio.AioRpcError as error:
            assert error.code() is grpc.StatusCode.INTERNAL  # noqa: PT017 - not a Payload at all
            with pytest.raises(Exception, match="Error parsing message"):
                Payload.FromString(serialized)
        else:
            assert_is_an_answer(reply)
    await target.still_serves()


@pytest.mark.parametrize(("type_name", "body"), REQUESTS, ids=[name for name, _ in REQUESTS])
async def test_the_requests_that_are_spoiled_are_good_ones(lab: Lab, type_name: str, body: dict[str, Any]) -> None:
    target = await probe(lab)
    await target.member.change("c1", 3, web=80)
    reply = await (target.sdk if (type_name, body) in SDK_REQUESTS else target.member).ask(type_name, body)
    assert_is_an_answer(reply)
    assert reply.succeeded or type_name in NOT_SERVED


NOT_SERVED = {"PersistentInstanceRequest"}


@pytest.mark.parametrize("text", NASTY_TEXTS, ids=lambda text: repr(text[:12]))
async def test_a_body_that_cannot_be_read_is_a_bad_gateway(lab: Lab, text: bytes) -> None:
    target = await probe(lab)
    payload = encode("InstanceRequest", {})
    payload.body.value = text
    reply = await target.sdk.ask_bytes(payload.SerializeToString())
    assert (reply.type, reply.body["errorCode"]) == ("ErrorResponse", 502)
    await target.still_serves()


REGISTER = "InstanceRequest"


@pytest.mark.parametrize(
    ("field", "value", "error_code"),
    [
        ("port", "81", None),  # what Jackson reads a number from
        ("port", 81.9, None),
        ("port", True, 502),
        ("port", "", 0),
        ("port", None, 0),
        ("port", "eighty", 502),
        ("port", 2**31, 502),
        ("port", [80], 502),
        ("ip", 10, None),
        ("ip", {}, 502),
        ("weight", "1.5", None),
        ("weight", "NaN", 502),
        ("healthy", "true", None),
        ("healthy", 1, None),
        ("healthy", "yes", 502),
        ("metadata", {"a": 1, "b": None, "c": True}, None),
        ("metadata", {"a": {}}, 502),
        ("metadata", [], 502),
        ("metadata", None, None),
        ("unknownField", {"a": [1]}, None),
    ],
)
async def test_a_field_is_read_as_jackson_reads_it(lab: Lab, field: str, value: Any, error_code: int | None) -> None:
    """`error_code` 0: whatever the handler makes of a zero."""
    target = await probe(lab)
    instance = {"ip": "10.0.0.1", "port": 80, field: value}
    text = {**WEB, "type": "registerInstance", "instance": instance}
    reply = await target.sdk.ask_unchanged(REGISTER, text)
    if error_code is None:
        assert reply.succeeded, reply.body
    elif error_code:
        assert (reply.type, reply.body["errorCode"]) == ("ErrorResponse", error_code)
        assert f"instance.{field}" in reply.body["message"]
    await target.still_serves()


async def test_metadata_that_is_no_number_does_not_spoil_the_list(lab: Lab) -> None:
    """The heart-beat numbers of an instance are taken from its metadata, which is anybody's text."""
    target = await probe(lab)
    for text in ("soon", "", "-1", "9" * 40, "١٢", "1.5"):
        await target.sdk.register("web", 80, metadata={"preserved.heart.beat.interval": text})
        (host,) = await target.sdk.hosts("web")
        assert isinstance(host["instanceHeartBeatInterval"], int)
        assert host["metadata"] == {"preserved.heart.beat.interval": text}


async def test_a_message_above_10_mib_is_refused_and_the_connection_lives(lab: Lab) -> None:
    target = await probe(lab)
    ballast = {"metadata": {"ballast": "x" * MAX_MESSAGE_BYTES}}
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await target.sdk.register("web", 81, **ballast)
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    await target.still_serves()


async def test_bytes_that_are_no_payload_on_the_stream_are_ignored(lab: Lab, quiet: Callable[[], None]) -> None:
    target = await probe(lab)
    for serialized in (b"\xff\xff\xff", b"", encode("NotifySubscriberResponse", {"requestId": {}}).SerializeToString()):
        await target.sdk.say_bytes(serialized)
    for text in NASTY_TEXTS:
        payload = encode("NotifySubscriberResponse", {})
        payload.body.value = text
        await target.sdk.say_bytes(payload.SerializeToString())
    await target.still_serves()
    quiet()


async def test_sockets_that_send_nothing_or_nonsense_disturb_no_client(lab: Lab, quiet: Callable[[], None]) -> None:
    target = await probe(lab)
    sockets = []
    for greeting in (b"", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", bytes(range(256)) * 10):
        for port in (1000, 1001):
            half_open = socket.create_connection(("127.0.0.1", target.node.config.port + port))
            half_open.sendall(greeting)
            sockets.append(half_open)
    await target.still_serves()
    for half_open in sockets:
        half_open.close()
    await target.still_serves()
    quiet()


async def test_every_answer_is_readable_by_strict_readers(lab: Lab) -> None:
    """No NaN, no half surrogate, no null reaches an SDK through what another client registered."""
    target = await probe(lab)
    instance = {"ip": "10.0.0.1", "port": 80, "metadata": {"half": "\ud800", "nothing": None}}
    await target.sdk.ask_unchanged(REGISTER, {**WEB, "type": "registerInstance", "instance": instance})
    (host,) = await target.sdk.hosts("web")
    assert host["metadata"] == {"half": "?"}
    snapshot = await target.member.ask("DistroDataRequest", {"dataOperation": "SNAPSHOT"})
    (client,) = decode_content(snapshot.body["distroData"])["clientSyncDataList"]
    assert client["instancePublishInfos"][0]["extendDatum"]["half"] == "?"


@pytest.mark.parametrize("name", [5, True, ["web"], {}, None])
async def test_a_peer_cannot_bring_in_a_service_whose_name_is_no_text(lab: Lab, name: Any) -> None:
    """One that compares with no other would spoil every list."""
    target = await probe(lab)
    data = {**sync_data("c1", 1, web=80), "serviceNames": [name]}
    reply = await target.member.distro("CHANGE", "c1", data)
    assert (reply.type, reply.succeeded) == ("DistroDataResponse", isinstance(name, int))
    await target.still_serves()


async def test_a_body_nested_too_deep_to_be_repeated_is_refused(lab: Lab) -> None:
    target = await probe(lab)
    deep: Any = "bottom"
    for _ in range(300):
        deep = {"deeper": deep}
    reply = await target.member.ask("MemberReportRequest", {"node": {**MEMBER, "extendInfo": {"deep": deep}}})
    assert (reply.type, reply.body["errorCode"]) == ("ErrorResponse", 502)
    data = sync_data("c1", 1, web=80)
    data["instancePublishInfos"][0]["extendDatum"] = deep
    reply = await target.member.distro("CHANGE", "c1", data)
    assert (reply.type, reply.body["resultCode"]) == ("DistroDataResponse", 500)
    await target.still_serves()
