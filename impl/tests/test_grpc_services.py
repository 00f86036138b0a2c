"""The expected parts of any gRPC server: limits and the health service."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from impl_lab import Lab

from distro_impl import Node, NodeConfig, NodeOptions, VirtualClock, free_main_ports
from distro_impl.options import GrpcServerOptions

pytestmark = pytest.mark.wire
OVER_GRPC = True


async def health(target: str, service: str = "") -> str:
    async with grpc.aio.insecure_channel(target) as channel:
        reply = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service=service))
        return health_pb2.HealthCheckResponse.ServingStatus.Name(reply.status)


async def test_health_follows_the_node():
    node = Node(NodeConfig(port=free_main_ports(1)[0]), clock=VirtualClock())
    await node.bind()
    targets = (node.config.sdk_target, node.config.cluster_target)
    try:
        assert [await health(target) for target in targets] == ["NOT_SERVING"] * 2
        node.begin()
        assert [await health(target) for target in targets] == ["SERVING"] * 2
        assert await health(targets[0], "BiRequestStream") == "SERVING"
    finally:
        await node.stop()


async def test_each_port_has_its_own_limit(lab: Lab):
    options = NodeOptions(sdk_server=GrpcServerOptions(max_inbound_bytes=10_000))
    run = await lab.cluster(size=1, options=options)
    config = run.cluster.nodes[0].config
    client, member = lab.raw(config.sdk_target), lab.raw(config.cluster_target)
    padding = {"padding": "x" * 10_000}
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await client.ask("ServerCheckRequest", padding)
    assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert (await client.check()).succeeded  # the connection lives
    assert (await member.ask("ServerCheckRequest", padding)).succeeded


@pytest.mark.slow
async def test_more_requests_at_once_than_grpc_lets_wait_are_all_answered(lab: Lab):
    """By gRPC's own limit, a thousand, it refuses at random."""
    node, _ = await lab.node()
    client = await lab.naming(node)
    replies = await asyncio.gather(*(client.ask("HealthCheckRequest", {}) for _ in range(5_000)))
    assert all(reply.succeeded for reply in replies)
