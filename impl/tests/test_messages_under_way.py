"""Messages count as work from when they are sent until they are consumed, so that nothing depends on real time.

Each of these went one way on one day and another way on a busy one, as long as only tasks counted.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from impl_lab import STRICT, Lab, RawClient

from distro_impl.naming.push import NOTIFY_SUBSCRIBER
from distro_impl.remote.connection_manager import ConnectionManager
from distro_impl.transport.grpc_transport import _ClientStream

pytestmark = pytest.mark.wire
OVER_GRPC = True


@pytest.fixture(autouse=True)
def _slow_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that takes its real time over each answer."""
    write = RawClient.say

    async def late(self: RawClient, type_name: str, body: dict[str, Any]) -> None:
        await asyncio.sleep(0.05)
        await write(self, type_name, body)

    monkeypatch.setattr(RawClient, "say", late)


async def test_a_push_that_is_acknowledged_is_sent_once_however_slow_the_client_is(lab: Lab) -> None:
    node, clock = await lab.node()
    client = await lab.naming(node)
    client.acknowledges = True
    await client.subscribe("web")
    await clock.advance(5_000)
    client.take()
    await client.register("web", 80)
    await clock.advance(20_000)
    assert [message.type for message in client.take()] == [NOTIFY_SUBSCRIBER]
    record = node.parts.naming.log.pushes
    assert record.failed == 0


async def test_a_client_that_answers_is_not_taken_for_dead_however_slow_it_is(lab: Lab) -> None:
    node, clock = await lab.node()
    client = await lab.naming(node)
    await clock.advance(60_000)
    assert (await client.ask("HealthCheckRequest", {})).succeeded


async def test_a_set_up_is_complete_when_the_clock_is_settled(lab: Lab) -> None:
    node, clock = await lab.node()
    client = lab.raw(node.config.sdk_target, module="naming", source="sdk")
    await client.set_up()
    await clock.settle()
    assert (await client.ask("HealthCheckRequest", {})).succeeded


async def test_a_client_that_is_gone_is_gone_when_the_clock_is_settled(lab: Lab) -> None:
    run = await lab.cluster()
    client = await lab.naming(run.cluster.nodes[0])
    await client.register("web", 80)
    await run.clock.advance(STRICT.sync_delay_ms + 100)
    await client.close()
    await run.clock.settle()
    assert run.cluster.nodes[0].parts.naming.clients.get(client.id) is None


class LateCall:
    """A stream of gRPC that delivers each event a while later."""

    def __init__(self, call: Any) -> None:
        self._call = call
        self.write, self.cancel = call.write, call.cancel

    async def read(self) -> Any:
        try:
            return await self._call.read()
        finally:
            await asyncio.sleep(0.1)


async def test_a_peer_that_crashed_has_been_noticed_when_the_clock_is_settled(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_call = _ClientStream._open_call
    monkeypatch.setattr(_ClientStream, "_open_call", lambda stream: LateCall(open_call(stream)))
    run = await lab.cluster(size=2)
    await run.clock.advance(6_000)  # it has reported, so there is a connection
    peer = run.cluster.addresses[1]
    connection = run.cluster.nodes[0].parts.membership.peers._clients[peer].connection
    assert connection is not None
    assert connection.is_usable
    await run.cluster.crash(1)
    await run.clock.settle()
    assert not connection.is_usable


async def test_the_acknowledgement_has_been_consumed_when_the_clock_is_settled(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, clock = await lab.node()
    client = await lab.naming(node)
    acknowledged: list[str | None] = []
    acknowledge = ConnectionManager.acknowledge

    def note(self: ConnectionManager, connection_id: str, request_id: str | None, succeeded: bool) -> None:
        acknowledged.append(request_id)
        acknowledge(self, connection_id, request_id, succeeded)

    monkeypatch.setattr(ConnectionManager, "acknowledge", note)
    client.acknowledges = True
    await client.subscribe("web")
    await clock.advance(600)
    assert len(acknowledged) == len(client.take()) == 1
