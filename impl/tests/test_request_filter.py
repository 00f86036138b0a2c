"""Permissions over gRPC: the identity of the cluster for members, tokens for clients."""

from __future__ import annotations

from dataclasses import replace

import pytest
from impl_lab import NACOS_2_2_4, STRICT, Lab, sync_data

from distro_impl import PROFILES, NodeOptions, Profile
from distro_impl.options import READS_ALL, AuthOptions, ServerIdentity, User
from distro_impl.security.tokens import TokenManager
from distro_protos import Message

pytestmark = pytest.mark.wire

NACOS_2_5_0, NACOS_3_0_3 = PROFILES["nacos-2.5.0"], PROFILES["nacos-3.0.3"]
IDENTITY = ServerIdentity("who", "us")
AUTH = AuthOptions(
    secret=b"0123456789abcdef0123456789abcdef",
    users={"nacos": User("nacos", "nacos"), "reader": User("reader", "secret", READS_ALL)},
    token_seconds=60,
)


def refused(reply: Message, type_name: str) -> bool:
    """With the answer of the handler's own class."""
    return (reply.type, reply.body["resultCode"], reply.body["errorCode"]) == (type_name, 500, 403)


# The identity of the cluster


@pytest.mark.parametrize("profile", [STRICT, NACOS_3_0_3], ids=lambda profile: profile.name)
async def test_a_request_of_a_member_needs_the_identity(lab: Lab, profile: Profile):
    run = await lab.cluster(profile, size=1, options=NodeOptions(identity=IDENTITY))
    member = await lab.member(run.cluster.nodes[0])
    assert refused(await member.change("c1", 1, orders=8080), "DistroDataResponse")
    assert refused(await member.ask("MemberReportRequest", {"node": {"address": "x"}}), "MemberReportResponse")
    member.headers = {"Who": "us"}
    assert (await member.change("c1", 1, orders=8080)).succeeded
    member.headers = {"who": "them"}
    assert refused(await member.change("c1", 2, orders=8081), "DistroDataResponse")


@pytest.mark.parametrize("profile", [NACOS_2_2_4, NACOS_2_5_0], ids=lambda profile: profile.name)
async def test_2_x_asks_no_member_for_its_identity(lab: Lab, profile: Profile):
    run = await lab.cluster(profile, size=1, options=NodeOptions(identity=IDENTITY))
    member = await lab.member(run.cluster.nodes[0])
    assert (await member.change("c1", 1, orders=8080)).succeeded


async def test_strict_without_an_identity_asks_for_none(lab: Lab):
    run = await lab.cluster(size=1)
    member = await lab.member(run.cluster.nodes[0])
    assert (await member.change("c1", 1, orders=8080)).succeeded


async def test_3_x_asks_once_all_members_are_3_x_and_then_for_good(lab: Lab):
    run = await lab.cluster(NACOS_3_0_3, size=2)
    first, second = run.cluster.nodes
    member = await lab.member(first)
    assert (await member.change("c1", 1, orders=8080)).succeeded  # nothing is known of the other one yet
    await run.clock.advance(NACOS_3_0_3.report_first_ms + 2 * NACOS_3_0_3.report_period_ms)
    assert refused(await member.change("c1", 2, orders=8080), "DistroDataResponse")
    first.change_members([first.address, second.address, "127.0.0.1:1"])
    assert refused(await member.change("c1", 3, orders=8080), "DistroDataResponse")


@pytest.mark.parametrize("profile", [STRICT, NACOS_3_0_3], ids=lambda profile: profile.name)
async def test_members_with_one_identity_replicate(lab: Lab, profile: Profile):
    run = await lab.cluster(profile, size=2, options=NodeOptions(identity=IDENTITY))
    await run.clock.advance(10_000)
    client = await lab.naming(run.cluster.nodes[0])
    await client.register("orders", 8080)
    await run.clock.advance(profile.sync_delay_ms + 100)
    assert await (await lab.naming(run.cluster.nodes[1])).ports("orders") == [8080]


async def test_a_member_that_does_not_send_its_identity_is_kept_out(lab: Lab):
    silent = replace(STRICT, identity_sent=False)
    run = await lab.cluster(silent, size=2, options=NodeOptions(identity=IDENTITY))
    client = await lab.naming(run.cluster.nodes[0])
    await client.register("orders", 8080)
    await run.clock.advance(10_000)
    assert await (await lab.naming(run.cluster.nodes[1])).ports("orders") == []


# Tokens


async def test_without_a_token_a_client_may_do_nothing(lab: Lab):
    run = await lab.cluster(size=1, options=NodeOptions(auth=AUTH))
    client = await lab.naming(run.cluster.nodes[0])
    assert refused(await client.register("orders", 8080), "InstanceResponse")
    assert refused(await client.subscribe("orders"), "SubscribeServiceResponse")
    query = {"namespace": "public", "groupName": "DEFAULT_GROUP", "serviceName": "orders"}
    assert refused(await client.ask("ServiceQueryRequest", query), "QueryServiceResponse")
    no_list = await client.ask("ServiceListRequest", query)
    assert refused(no_list, "ServiceListResponse")
    assert no_list.body["count"] == 0  # readers of the class find a number there
    assert (await client.ask("HealthCheckRequest", {})).succeeded


async def test_a_token_lets_in_until_it_expires(lab: Lab):
    run = await lab.cluster(size=1, options=NodeOptions(auth=AUTH))
    client = await lab.naming(run.cluster.nodes[0])
    client.headers = {"accessToken": TokenManager(AUTH, run.clock).login("nacos", "nacos")}
    assert (await client.register("orders", 8080)).succeeded
    assert await client.ports("orders") == [8080]
    await run.clock.advance(AUTH.token_seconds * 1000)
    reply = await client.register("orders", 8081)
    assert refused(reply, "InstanceResponse")
    assert reply.body["message"] == "token expired!"


@pytest.mark.parametrize("name", ["accesstoken", "ACCESSTOKEN", "Authorization"])
async def test_a_token_stands_under_its_own_name_only(lab: Lab, name: str):
    run = await lab.cluster(size=1, options=NodeOptions(auth=AUTH))
    client = await lab.naming(run.cluster.nodes[0])
    client.headers = {name: TokenManager(AUTH, run.clock).login("nacos", "nacos")}
    assert (await client.register("orders", 8080)).body["message"] == "user not found!"


async def test_a_blank_token_is_none(lab: Lab):
    run = await lab.cluster(size=1, options=NodeOptions(auth=AUTH))
    client = await lab.naming(run.cluster.nodes[0])
    client.headers = {"accessToken": " "}
    assert (await client.register("orders", 8080)).body["message"] == "user not found!"


async def test_a_reader_reads_and_does_not_write(lab: Lab):
    run = await lab.cluster(size=1, options=NodeOptions(auth=AUTH))
    client = await lab.naming(run.cluster.nodes[0])
    client.headers = {"accessToken": TokenManager(AUTH, run.clock).login("reader", "secret")}
    assert await client.ports("orders") == []
    reply = await client.register("orders", 8080)
    assert refused(reply, "InstanceResponse")
    assert reply.body["message"] == "authorization failed!"


@pytest.mark.parametrize("secret", [b"another secret of 32 bytes, or so", b"x" * 64])
async def test_a_token_signed_with_another_secret_is_invalid(lab: Lab, secret: bytes):
    run = await lab.cluster(size=1, options=NodeOptions(auth=AUTH))
    client = await lab.naming(run.cluster.nodes[0])
    client.headers = {"accessToken": TokenManager(replace(AUTH, secret=secret), run.clock).login("nacos", "nacos")}
    assert (await client.register("orders", 8080)).body["message"] == "token invalid!"


async def test_tokens_are_not_asked_of_members(lab: Lab):
    run = await lab.cluster(size=1, options=NodeOptions(auth=AUTH))
    member = await lab.member(run.cluster.nodes[0])
    assert (await member.distro("CHANGE", "c1", sync_data("c1", 1, orders=8080))).succeeded
