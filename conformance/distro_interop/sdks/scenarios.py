"""The actions of an SDK and their expected results, one scenario each.

A scenario speaks to the SDK through its program and looks at the nodes through the kit's own eyes. Bounds are those of
the protocol with room for a busy machine (docs/protocol #releases-timeline and #lease-copies).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from functools import partial

import psutil

from distro_conformance.node.player import CLUSTER, Host
from distro_conformance.release import Span
from distro_conformance.targets.direct import get
from distro_conformance.targets.ports import SDK_OFFSET
from distro_conformance.verdict import TargetError
from distro_conformance.waiting import never
from distro_interop.sdks.environment import Environment, FailedError, Scenario
from distro_interop.sdks.listing import Listing, addresses, shown
from distro_interop.sdks.nodes import CREDENTIALS, WRONG_CREDENTIALS, Nodes
from distro_interop.sdks.program import ProgramError, SdkProgram
from distro_interop.sdks.registry import Transport
from distro_protos.addresses import parse_address

REPLICATED_WITHIN_S = 8.0
PUSHED_WITHIN_S = 8.0
POLLED_WITHIN_S = 25.0
"""An HTTP client gets no push over UDP when the node that it asked is dead; it asks every ten seconds."""
QUICK_BEATS = (
    "preserved.heart.beat.interval=1000",
    "preserved.heart.beat.timeout=12000",
    "preserved.ip.delete.timeout=22000",
)
"""Less than usual, since a test waits for it; more than the ten seconds after which the Node SDK beats first, and more
than one round of the checker apart (docs/protocol #lease-copies)."""
UNHEALTHY_WITHIN_S = 12.0 + 5.0 + REPLICATED_WITHIN_S
DELETED_WITHIN_S = 22.0 + 5.0 + REPLICATED_WITHIN_S
BEATEN_S = 45.0
"""Longer than the life of an instance without beats: 30 s, a round of the checker, a member that goes DOWN."""
REDONE_WITHIN_S = 60.0
"""The delay depends on the SDK: the slowest notices within 10 s, and registers again by a timer of 30 s."""

IP, PORT = "10.0.0.1", 80
INSTANCE = f"{IP}:{PORT}"


async def _register(env: Environment) -> None:
    service, program = env.new_service("register"), await env.publisher()
    await program.ask("register", service, IP, PORT, "weight=2.5", "cluster=east", "zone=a")
    wanted = Host(IP, PORT, True, {"zone": "a"}, 2.5, "east")
    await env.everywhere(service, lambda found: found == (wanted,), REPLICATED_WITHIN_S, "all fields of an instance")
    await program.ask("register", service, IP, PORT, "weight=1.0", "cluster=east", "zone=b")
    wanted = Host(IP, PORT, True, {"zone": "b"}, 1.0, "east")
    await env.everywhere(service, lambda found: found == (wanted,), REPLICATED_WITHIN_S, "the changed instance")


async def _query(env: Environment) -> None:
    service = env.new_service("query")
    await (await env.publisher()).ask("register", service, IP, PORT, "weight=2.5", "zone=a")
    wanted = Host(IP, PORT, True, {"zone": "a"}, 2.5, CLUSTER)
    await env.everywhere(service, lambda found: found == (wanted,), REPLICATED_WITHIN_S, "registered")
    found = await (await env.roamer()).query(service)
    if found != (wanted,):
        raise FailedError(f"the SDK's query answers {shown(found)}, not {shown((wanted,))}")


async def _batch(env: Environment) -> None:
    service, program = env.new_service("batch"), await env.publisher()
    for batch in (("10.0.0.1:81", "10.0.0.2:82", "10.0.0.3:83"), ("10.0.0.1:81", "10.0.0.3:83")):
        await program.ask("batch", service, ",".join(batch))
        await env.show(service, batch, REPLICATED_WITHIN_S, f"a batch of {len(batch)}")


async def _subscribe(env: Environment) -> None:
    service, program = env.new_service("subscribe"), await env.roamer()
    await program.ask("subscribe", service)
    await _pushes_of_others(env, program, service, 8001, PUSHED_WITHIN_S)


async def _pushes_of_others(env: Environment, program: SdkProgram, service: str, port: int, within_s: float) -> None:
    """Two instances come, one goes, each at another node: the SDK must report all three.

    Never an empty list, which some SDKs do not report.
    """
    first, second = [await env.nodes.client(index) for index in env.nodes.running[-2:]]
    one, two = (f"10.0.1.{number}:{port}" for number in (1, 2))
    for change, expected in (
        (partial(first.register, service, "10.0.1.1", port), {one}),
        (partial(second.register, service, "10.0.1.2", port), {one, two}),
        (partial(second.deregister, service, "10.0.1.2", port), {one}),
    ):
        await change()
        if not await program.pushed(service, partial(_shows, port=port, wanted=expected), within_s):
            last = program.last_push(service)
            reported = "nothing" if last is None else shown(last)
            raise FailedError(
                f"not notified of {', '.join(sorted(expected))} within {within_s:.0f} s, last of {reported}"
            )


def _shows(found: Listing, *, port: int, wanted: set[str]) -> bool:
    """The SDK's own instance has another port and may be there or not."""
    return {host.address for host in found if host.port == port} == wanted


async def _register_one(env: Environment, program: SdkProgram, service: str, *options: str) -> None:
    await program.ask("register", service, IP, PORT, *options)
    await env.show(service, (INSTANCE,), REPLICATED_WITHIN_S, "registered")


async def _deregister(env: Environment) -> None:
    service, program = env.new_service("deregister"), await env.publisher()
    await _register_one(env, program, service)
    await program.ask("deregister", service, IP, PORT)
    await env.show(service, (), REPLICATED_WITHIN_S, "gone after deregistration")


async def _close(env: Environment) -> None:
    service, program = env.new_service("close"), await env.publisher()
    await _register_one(env, program, service)
    await program.close()
    await env.show(service, (), REPLICATED_WITHIN_S, "gone after the SDK was closed")


async def _login(env: Environment) -> None:
    assert env.guarded is not None
    service, refused = env.new_service("login"), env.new_service("refused")
    async with env.guarded() as nodes:
        await nodes.loaded()
        async with env.at(nodes, CREDENTIALS) as program:
            await program.ask("register", service, IP, PORT)
            await _published(nodes, service, REPLICATED_WITHIN_S, "registered after login")
            if addresses(found := await program.query(service)) != (INSTANCE,):
                raise FailedError(f"logged in, the SDK's query answers {shown(found)}, not {INSTANCE}")
        with contextlib.suppress(ProgramError):  # at start or at the first request, as the SDK likes
            async with env.at(nodes, WRONG_CREDENTIALS) as program:
                await program.ask("register", refused, IP, PORT)
                raise FailedError("the SDK reports success of a registration with a wrong password")
        for index in nodes.running:
            if await nodes.publishers(index, refused):
                raise FailedError(f"a wrong password registered at {nodes.addresses[index]}")


async def _published(
    nodes: Nodes, service: str, within_s: float, what: str, before: frozenset[str] = frozenset()
) -> None:
    """Wait until every node holds a publisher besides those before; read as a member does, without a password."""

    async def holds(index: int) -> bool:
        return bool(await nodes.publishers(index, service) - before)

    if (at := await nodes.lagging(holds, within_s)) is not None:
        raise FailedError(f"{what}: not within {within_s:.0f} s at {at}")


async def _kill_client(env: Environment) -> None:
    service, program = env.new_service("kill-client"), await env.publisher()
    await _register_one(env, program, service, *QUICK_BEATS)
    await program.kill()
    if env.sdk.transport is Transport.HTTP:
        await env.everywhere(
            service, lambda found: bool(found) and not found[0].healthy, UNHEALTHY_WITHIN_S, "unhealthy without beats"
        )
    within_s = REPLICATED_WITHIN_S if env.sdk.transport is Transport.GRPC else DELETED_WITHIN_S
    await env.show(service, (), within_s, "gone after SIGKILL of the client")


async def _kill_node(env: Environment) -> None:
    """The node that the SDK uses dies: the SDK must go to another one, and register and subscribe again there."""
    service, program = env.new_service("kill-node"), await env.roamer()
    await program.ask("subscribe", service)
    await _register_one(env, program, service)
    before = await env.nodes.publishers(0, service)
    killed = await asyncio.to_thread(_node_of, env, program, IP, PORT)
    await env.nodes.kill(killed)
    if env.sdk.transport is Transport.GRPC:
        # Another client id, held by all: copies of the old one that wait for their lease do not count.
        await _published(env.nodes, service, REDONE_WITHIN_S, "registered again after its node was killed", before)
    else:
        await _survives(env, service)
    within_s = PUSHED_WITHIN_S if env.sdk.transport is Transport.GRPC else POLLED_WITHIN_S
    await _pushes_of_others(env, program, service, 8002, within_s)


async def _survives(env: Environment, service: str) -> None:
    """Listed all the while, and healthy in the end.

    In between it may be unhealthy: until the owner counts as DOWN, beats that reach another node are forwarded to it.
    """

    async def lost() -> str | None:
        for index in env.nodes.running:
            found = await env.nodes.shown(index, service)
            if addresses(found) != (INSTANCE,):
                return f"{env.nodes.addresses[index]} shows {shown(found)}"
        return None

    found = await never(lost, env.nodes.clock, round(BEATEN_S * 1000), step_ms=1000)
    if found is not None:
        raise FailedError(f"after its node was killed {found}")
    await env.everywhere(
        service, lambda found: bool(found) and found[0].healthy, REPLICATED_WITHIN_S, "healthy in the end"
    )


def _node_of(env: Environment, program: SdkProgram, ip: str, port: int) -> int:
    """The node that a gRPC SDK is connected to; for an HTTP SDK the one that is responsible for its instance."""
    nodes = env.nodes.addresses
    if env.sdk.transport is Transport.HTTP:
        answer = get(f"http://{nodes[0]}/nacos/v1/ns/operator/distro/client?ip={ip}&port={port}", timeout_s=5.0)
        if answer is None:
            raise TargetError(f"{nodes[0]} does not say who is responsible for {ip}:{port}")
        return nodes.index(json.loads(answer)["responsibleServer"])
    ports = [parse_address(address).port + SDK_OFFSET for address in nodes]
    for process in (root := psutil.Process(program.pid), *root.children(recursive=True)):
        for connection in process.net_connections(kind="tcp"):
            if connection.status == psutil.CONN_ESTABLISHED and connection.raddr.port in ports:
                return ports.index(connection.raddr.port)
    raise FailedError("the SDK is connected to none of the nodes")


SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        Scenario("register", "an instance and its change arrive at every node with all fields", _register),
        Scenario("query", "a query shows the fields that another client registered", _query),
        Scenario(
            "batch",
            "several instances in one request, then fewer",
            _batch,
            lambda env: env.sdk.has_batch,
            Span(since="2.1.1"),
        ),
        Scenario("subscribe", "a subscriber is notified of what comes and goes at other nodes", _subscribe),
        Scenario("deregister", "a deregistered instance is gone at every node", _deregister),
        Scenario(
            "close",
            "a closed SDK leaves nothing",
            _close,
            lambda env: env.sdk.transport is Transport.GRPC,
        ),
        Scenario(
            "login",
            "the right password may register and query, a wrong one may not",
            _login,
            lambda env: env.guarded is not None,
        ),
        Scenario("kill-client", "what a killed client published is gone at every node", _kill_client),
        Scenario("kill-node", "a killed node: redone at another one, subscriptions included", _kill_node),
    )
}
