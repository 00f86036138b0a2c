"""Which node serves a request about an ip:port client (docs/protocol #owner-place, DistroFilter)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

import aiohttp
import pytest
from aiohttp import web as aiohttp_web
from http_lab import FORM, Web
from impl_lab import NACOS_2_2_4, STRICT, Lab, Run

from distro_impl import Clock, Cluster, Node, Profile, SystemClock, VirtualClock
from distro_impl.distro.mapper import distro_hash
from distro_impl.ports import free_main_ports

pytestmark = pytest.mark.wire

INSTANCE, BEAT, LIST = "/v1/ns/instance", "/v1/ns/instance/beat", "/v1/ns/instance/list"


def owner_and_others(run: Run, ip: str, port: int) -> tuple[Node, list[Node]]:
    """By the rule: the hash of `ip:port` over the sorted addresses."""
    nodes = sorted(run.cluster.nodes, key=lambda node: node.address)
    owner = nodes[distro_hash(f"{ip}:{port}") % len(nodes)]
    return owner, [node for node in nodes if node is not owner]


def client_ids(run: Run, node: Node) -> set[str]:
    """Clients that this node has reported as its own."""
    return {event.client for event in run.events if event.node == node.address and event.kind == "client_changed"}


async def test_the_owner_registers_whichever_node_is_asked(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_2_4)
    owner, others = owner_and_others(run, "10.0.0.7", 80)
    async with Web() as web:
        for node in others:
            answer = await web.post(node, INSTANCE, serviceName="web", ip="10.0.0.7", port=80, metadata='{"k":"ä b&c"}')
            assert (answer.status, answer.text) == (200, "ok")
            assert client_ids(run, node) == set()
        assert client_ids(run, owner) == {"10.0.0.7:80#true"}
        assert await web.ports(others[0], "web") == []  # not yet synced
        await run.clock.advance(1_700)
        for node in run.cluster.nodes:
            [host] = (await web.get(node, LIST, serviceName="web")).json["hosts"]
            assert host["metadata"] == {"k": "ä b&c"}


async def test_white_space_around_an_address_changes_no_owner(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_2_4)
    owner, others = owner_and_others(run, "10.0.0.7", 80)
    async with Web() as web:
        for node in (owner, *others):
            answer = await web.post(node, INSTANCE, serviceName="web", ip=" 10.0.0.7 ", port=80)
            assert (answer.status, answer.text) == (200, "ok")
        assert client_ids(run, owner) == {"10.0.0.7:80#true"}
        assert all(not client_ids(run, node) for node in others)


async def test_a_form_and_a_beat_are_forwarded_too(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_2_4)
    owner, [asked, _] = owner_and_others(run, "10.0.0.7", 80)
    beat = json.dumps({"ip": "10.0.0.7", "port": 80, "serviceName": "DEFAULT_GROUP@@web", "cluster": "DEFAULT"})
    form = urlencode({"serviceName": "DEFAULT_GROUP@@web", "beat": beat}).encode()
    async with Web() as web:
        answer = await web.ask("PUT", asked, BEAT, headers=FORM, body=form)
        assert answer.json["code"] == 10200
        assert await web.ports(owner, "web") == [80]
        assert await web.ports(asked, "web") == []


async def test_a_refusal_of_the_owner_is_returned_in_its_words(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_2_4)
    _, [asked, _] = owner_and_others(run, "10.0.0.7", 80)
    async with Web() as web:
        answer = await web.post(asked, INSTANCE, ip="10.0.0.7", port=80)
        assert (answer.status, answer.text) == (400, "Param 'serviceName' is required.")


async def test_a_name_that_is_none_is_refused_before_the_owner_is_asked(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_2_4)
    _, [asked, _] = owner_and_others(run, "10.0.0.7", 80)
    async with Web() as web:
        answer = await web.post(asked, INSTANCE, serviceName="@@", ip="10.0.0.7", port=80)
        assert (answer.status, answer.json["error"]) == (400, "Bad Request")
    await run.clock.settle()  # raises when a piece of work has failed


async def test_the_owner_of_a_client_is_its_owner_by_its_id_too_with_any_ip(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_2_4)
    async with Web() as web:
        for number in range(5):
            await web.post(run.cluster.nodes[0], INSTANCE, serviceName="web", ip=f"a#{number}", port=80)
        await run.clock.advance(1_700)
        assert [len(await web.ports(node, "web")) for node in run.cluster.nodes] == [5, 5, 5]


async def test_beats_to_any_node_keep_the_instance(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_2_4)
    async with Web() as web:
        await web.post(run.cluster.nodes[0], INSTANCE, serviceName="web", ip="10.0.0.7", port=80)
        for turn in range(9):
            await run.clock.advance(5_000)
            asked = run.cluster.nodes[turn % 3]
            answer = await web.put(asked, BEAT, serviceName="web", ip="10.0.0.7", port=80)
            assert answer.json["code"] == 10200
        for node in run.cluster.nodes:
            assert [h["healthy"] for h in (await web.get(node, LIST, serviceName="web")).json["hosts"]] == [True]


async def test_a_request_from_a_server_is_not_passed_on(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_2_4)
    owner, [asked, _] = owner_and_others(run, "10.0.0.7", 80)
    query = {"serviceName": "web", "ip": "10.0.0.7", "port": 80}
    async with Web() as web:
        answer = await web.ask("POST", asked, INSTANCE, query, headers={"User-Agent": "Nacos-Server:2.2.4"})
        assert (answer.status, answer.json["error"]) == (400, "Bad Request")
        to_owner = await web.ask("POST", owner, INSTANCE, query, headers={"User-Agent": "Nacos-Server:2.2.4"})
        assert to_owner.text == "ok"


async def test_an_owner_that_is_gone_is_an_error_until_it_is_known_to_be_down(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_2_4)
    owner, [asked, _] = owner_and_others(run, "10.0.0.7", 80)
    await run.cluster.crash(run.cluster.nodes.index(owner))
    async with Web() as web:
        answer = await web.post(asked, INSTANCE, serviceName="web", ip="10.0.0.7", port=80)
        assert answer.status == 500
        assert answer.text.startswith(f"Server failed, {owner.address} cannot be asked")
        await run.clock.advance(60_000)
        assert (await web.post(asked, INSTANCE, serviceName="web", ip="10.0.0.7", port=80)).text == "ok"


async def test_the_headers_of_a_forwarded_request() -> None:
    """Observed by an owner that is no reference node."""
    async with played_member() as owner, beside(owner, NACOS_2_2_4, VirtualClock()) as node, Web() as web:
        port = port_owned_by(owner.address, node.address)
        query = {"serviceName": "G@@web", "ip": "10.0.0.7", "port": port}
        sent = {"X-Trace": "t1", "User-Agent": "Nacos-Java-Client:v1.4.6", "accessToken": "abc"}
        answer = await web.ask("PUT", node, INSTANCE, query, headers=sent)
        assert (answer.status, answer.text) == (418, "seen")
        [(method, path, headers)] = owner.seen
        assert (method, path) == (
            "PUT",
            f"/nacos{INSTANCE}?port={port}&ip=10.0.0.7&serviceName=G@@web&encoding=UTF-8&nofix=1",
        )
        shown = ("User-Agent", "Client-Version", "Request-Source", "X-Trace", "accessToken", "Host")
        got = [headers[name] for name in shown]
        assert got == ["Nacos-Server:2.2.4", "2.2.4", node.address, "t1", "abc", owner.address]


async def test_an_owner_that_does_not_answer_is_given_up() -> None:
    """After 2 s; here after a tenth, in real time."""
    impatient = replace(NACOS_2_2_4, forward_timeout_ms=100)
    async with played_member(answers=False) as owner, beside(owner, impatient, SystemClock()) as node, Web() as web:
        port = port_owned_by(owner.address, node.address)
        answer = await web.post(node, INSTANCE, serviceName="web", ip="10.0.0.7", port=port)
        assert (answer.status, answer.text) == (500, f"Server failed, {owner.address} did not answer within 100 ms")
        assert len(owner.seen) == 1


async def test_a_node_that_ends_leaves_no_forward_behind() -> None:
    async with played_member(answers=False) as owner, beside(owner, NACOS_2_2_4, SystemClock()) as node, Web() as web:
        port = port_owned_by(owner.address, node.address)
        asking = asyncio.create_task(web.post(node, INSTANCE, serviceName="web", ip="10.0.0.7", port=port))
        await owner.asked.wait()
        await node.crash()
        with pytest.raises(aiohttp.ClientError):
            await asking


@pytest.mark.parametrize(("profile", "forwarded"), [(NACOS_2_2_4, False), (STRICT, True)])
async def test_v2_is_not_forwarded_in_any_release(lab: Lab, profile: Profile, forwarded: bool) -> None:
    """D7: the instance is visible at the node that was asked, and nowhere else."""
    run = await lab.cluster(profile)
    nodes = sorted(run.cluster.nodes, key=lambda node: node.address)
    asked, *others = nodes
    port = next(port for port in range(1, 100) if distro_hash(f"10.0.0.7:{port}") % 3 != 0)
    async with Web() as web:
        answer = await web.post(asked, "/v2/ns/instance", serviceName="web", ip="10.0.0.7", port=port)
        assert answer.json == {"code": 0, "message": "success", "data": "ok"}
        await run.clock.advance(1_700)
        assert await web.ports(asked, "web") == [port]
        for node in others:
            assert await web.ports(node, "web") == ([port] if forwarded else [])


async def test_the_owner_can_be_asked_for(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_2_4)
    async with Web() as web:
        for port in range(80, 86):
            owner, _ = owner_and_others(run, "10.0.0.7", port)
            for node in run.cluster.nodes:
                answer = await web.get(node, "/v1/ns/operator/distro/client", ip="10.0.0.7", port=port)
                assert answer.json == {"responsibleServer": owner.address}


async def test_with_distro_switched_off_every_node_is_the_owner(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_2_4)
    owner, [asked, _] = owner_and_others(run, "10.0.0.7", 80)
    async with Web() as web:
        assert (await web.put(asked, "/v1/ns/operator/switches", entry="distroEnabled", value="false")).text == "ok"
        await web.post(asked, INSTANCE, serviceName="web", ip="10.0.0.7", port=80)
        assert await web.ports(asked, "web") == [80]
        assert await web.ports(owner, "web") == []


def port_owned_by(owner: str, other: str) -> int:
    """A port with which the client 10.0.0.7 belongs to the first of two members."""
    addresses = sorted([owner, other])
    return next(port for port in range(1, 100) if addresses[distro_hash(f"10.0.0.7:{port}") % 2] == owner)


@dataclass
class PlayedMember:
    """A member played by the test: what it was asked over HTTP."""

    address: str
    answers: bool
    seen: list[tuple[str, str, Any]] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def see(self, request: aiohttp_web.Request) -> aiohttp_web.Response:
        self.seen.append((request.method, request.raw_path, request.headers))
        self.asked.set()
        if not self.answers:
            await asyncio.Event().wait()
        return aiohttp_web.Response(text="seen", status=418)


@asynccontextmanager
async def played_member(*, answers: bool = True) -> AsyncIterator[PlayedMember]:
    [port] = free_main_ports(1)
    member = PlayedMember(f"127.0.0.1:{port}", answers)
    app = aiohttp_web.Application()
    app.router.add_route("*", "/{anything:.*}", member.see)
    runner = aiohttp_web.AppRunner(app, shutdown_timeout=0.001)
    await runner.setup()
    await aiohttp_web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield member
    finally:
        await runner.cleanup()


@asynccontextmanager
async def beside(member: PlayedMember, profile: Profile, clock: Clock) -> AsyncIterator[Node]:
    """A node whose only other member is this one."""
    async with Cluster(1, profile=profile, clock=clock, further_members=[member.address]) as cluster:
        yield cluster.nodes[0]
