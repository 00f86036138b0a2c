"""The permissions of callers: the table is complete, and the node follows it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from http_lab import Web
from impl_lab import NACOS_2_2_4, STRICT, Lab, errors_logged

from distro_impl import PROFILES, MemberListError, Node, NodeConfig, NodeOptions, Profile, VirtualClock
from distro_impl.assembly.http import http_server
from distro_impl.assembly.remote import grpc_servers
from distro_impl.http.auth import HttpAuthFilter
from distro_impl.membership.member import MemberState
from distro_impl.options import AuthOptions, ServerIdentity, User
from distro_impl.profiles import ReportTransport
from distro_impl.security import callers
from distro_impl.security.callers import REQUESTS, ROUTES, Caller
from distro_impl.security.inner_api import InnerApi
from distro_impl.security.tokens import AccessDeniedError

NACOS_3_0_3 = PROFILES["nacos-3.0.3"]
IDENTITY = ServerIdentity("who", "us")
ANSWERED_BY_THE_ACCEPTOR = {"ServerCheckRequest", "ConnectionSetupRequest"}
REPORT = "/v1/core/cluster/report"


def node_of(profile: Profile, members: tuple[str, ...] = ()) -> Node:
    return Node(NodeConfig(port=8848, members=members, profile=profile), clock=VirtualClock())


def handlers_and_routes() -> tuple[set[str], set[tuple[str, str]]]:
    """The answers of all releases."""
    requests, routes = set(ANSWERED_BY_THE_ACCEPTOR), set()
    for profile in PROFILES.values():
        parts = node_of(profile).parts
        sides = parts.remote, parts.membership, parts.naming, parts.distro
        requests.update(grpc_servers(*sides)[0]._handlers)
        routes.update((route.method, route.path) for route in http_server(*sides, parts.server_status)._routes)
    return requests, routes


def test_the_table_is_of_all_that_is_served_and_of_nothing_else() -> None:
    requests, routes = handlers_and_routes()
    assert requests == set(REQUESTS)
    assert routes == set(ROUTES)


@pytest.mark.wire
async def test_a_route_without_a_line_is_refused(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(callers.REQUESTS, "ServiceQueryRequest")  # type: ignore[arg-type]
    monkeypatch.delitem(callers.ROUTES, ("GET", "/v1/ns/service/list"))  # type: ignore[arg-type]
    node, _ = await lab.node()
    reply = await (await lab.naming(node)).ask("ServiceQueryRequest", {"serviceName": "web"})
    assert (reply.type, reply.body["errorCode"]) == ("QueryServiceResponse", 403)
    async with Web() as web:
        assert (await web.get(node, "/v1/ns/service/list", pageNo=1, pageSize=1)).status == 403


@pytest.mark.wire
@pytest.mark.parametrize("type_name", sorted(name for name in REQUESTS if REQUESTS[name].caller is Caller.MEMBER))
@pytest.mark.parametrize("profile", [STRICT, NACOS_3_0_3], ids=lambda profile: profile.name)
async def test_requests_for_members_only_need_the_identity(lab: Lab, profile: Profile, type_name: str) -> None:
    run = await lab.cluster(profile, size=1, options=NodeOptions(identity=IDENTITY))
    stranger = await lab.member(run.cluster.nodes[0])
    reply = await stranger.ask(type_name, {})
    assert (reply.body["resultCode"], reply.body["errorCode"]) == (500, 403)
    stranger.headers = {"who": "us"}
    assert (await stranger.ask(type_name, {})).body.get("errorCode") != 403


@pytest.mark.parametrize(
    ("members", "ip", "passes"),
    [
        ("10.0.0.9:8848", "10.0.0.9", True),
        ("10.0.0.9:8848", "::ffff:10.0.0.9", True),
        ("10.0.0.9:8848", "127.0.0.1", True),  # the node itself
        ("10.0.0.9:8848", "10.0.0.90", False),
        ("10.0.0.9:8848", "not an address", False),
        ("[2001:db8::1]:8848", "2001:db8:0::1", True),
    ],
)
def test_without_an_identity_a_member_comes_from_the_address_of_one(members: str, ip: str, passes: bool) -> None:
    node = node_of(STRICT, ("127.0.0.1:8848", members))
    inner_api = InnerApi(STRICT, None, node.members)
    if passes:
        inner_api.check({}, ip)
    else:
        with pytest.raises(AccessDeniedError, match="no member of this cluster"):
            inner_api.check({}, ip)
    InnerApi(NACOS_2_2_4, None, node.members).check({}, ip)  # does not resolve a name


def test_a_member_that_is_listed_by_name_needs_an_identity() -> None:
    """Its address is unknown, so without an identity a node could only accept every caller or refuse that member."""
    members = ("127.0.0.1:8848", "nacos-1.example:8848")
    with pytest.raises(MemberListError, match=r"nacos-1\.example:8848 is listed by name.*server\.identity\.key"):
        node_of(STRICT, members)
    node_of(NACOS_2_2_4, members)  # this release asks no member for its address
    Node(NodeConfig(port=8848, members=members, options=NodeOptions(identity=IDENTITY)), clock=VirtualClock())


def test_a_member_that_joins_later_under_a_name_opens_the_node_to_no_caller() -> None:
    node = node_of(STRICT, ("127.0.0.1:8848", "10.0.0.9:8848"))
    inner_api = InnerApi(STRICT, None, node.members)
    node.members.change_list(("127.0.0.1:8848", "nacos-1.example:8848"))
    with pytest.raises(AccessDeniedError, match="no member of this cluster"):
        inner_api.check({}, "10.0.0.90")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/v1/ns/operator/switches"),
        ("PUT", "/v2/ns/ops/switches"),
    ],
)
@pytest.mark.parametrize("profile", [STRICT, NACOS_2_2_4], ids=lambda profile: profile.name)
async def test_without_users_a_node_is_changed_from_its_own_machine_or_with_the_identity(
    profile: Profile, method: str, path: str
) -> None:
    inner_api = InnerApi(profile, IDENTITY, node_of(profile).members)
    check = HttpAuthFilter(profile, None, None, inner_api).check

    def asked(remote: str, headers: dict[str, str] | None = None) -> web.Request:
        return make_mocked_request(method, f"/nacos{path}?entry=distroEnabled&value=false", headers).clone(
            remote=remote
        )

    with pytest.raises(AccessDeniedError, match="changes this node"):
        await check(asked("10.0.0.9"))
    await check(asked("127.0.0.1"))
    await check(asked("::1"))
    await check(asked("::ffff:127.0.0.1"))
    await check(asked("10.0.0.9", {"who": "us"}))


async def test_without_users_a_node_is_read_from_anywhere() -> None:
    inner_api = InnerApi(STRICT, None, node_of(STRICT).members)
    request = make_mocked_request("GET", "/nacos/v1/ns/operator/switches").clone(remote="10.0.0.9")
    await HttpAuthFilter(STRICT, None, None, inner_api).check(request)


@pytest.mark.wire
async def test_a_report_over_http_needs_the_identity_without_users_too(lab: Lab) -> None:
    run = await lab.cluster(size=2, options=NodeOptions(identity=IDENTITY))
    node, other = run.cluster.nodes[0], run.cluster.addresses[1]
    ip, _, port = other.rpartition(":")
    forged = {"address": other, "ip": ip, "port": int(port), "abilities": {"remoteAbility": {"forged": True}}}
    async with Web() as web:
        for headers, status in (({}, 403), ({"who": "them"}, 403), ({"who": "\udcff"}, 403), ({"who": "us"}, 200)):
            before = dict(node.members.others[other].abilities)
            answer = await web.ask("POST", node, REPORT, headers=headers, body=json.dumps(forged).encode())
            assert answer.status == status
            assert (node.members.others[other].abilities == before) is (status == 403)
    assert node.members.others[other].state is MemberState.UP


@pytest.mark.wire
async def test_3_x_takes_reports_over_http_until_all_members_are_3_x(lab: Lab) -> None:
    run = await lab.cluster(NACOS_3_0_3, size=2, options=NodeOptions(identity=IDENTITY))
    node = run.cluster.nodes[0]
    async with Web() as web:
        assert (await web.ask("POST", node, REPORT, body=b"{}")).status == 200
        await run.clock.advance(NACOS_3_0_3.report_first_ms + 2 * NACOS_3_0_3.report_period_ms)
        assert (await web.ask("POST", node, REPORT, headers={"who": "us"}, body=b"{}")).status == 410


# Users, by namespace


AUTH = AuthOptions(
    secret=b"0123456789abcdef0123456789abcdef",
    users={"dev": User("dev", "x", {"dev": "rw", "prod": "r"}), "all": User("all", "x", {"*": "r", "dev": "rw"})},
)


@pytest.mark.wire
@pytest.mark.parametrize(
    ("user", "namespace", "reads", "writes"),
    [
        ("dev", "dev", True, True),
        ("dev", "prod", True, False),
        ("dev", "test", False, False),
        ("dev", "", False, False),  # the namespace `public`
        ("all", "prod", True, False),
        ("all", "dev", True, True),
    ],
)
async def test_a_user_has_rights_by_namespace(lab: Lab, user: str, namespace: str, reads: bool, writes: bool) -> None:
    run = await lab.cluster(size=1, options=NodeOptions(auth=AUTH))
    node = run.cluster.nodes[0]
    named = {"serviceName": "web", "namespaceId": namespace, "username": user, "password": "x"}
    async with Web() as web:
        assert ((await web.get(node, "/v1/ns/instance/list", **named)).status == 200) is reads
        assert ((await web.post(node, "/v1/ns/instance", ip="10.0.0.9", port=80, **named)).status == 200) is writes
        assert (await web.put(node, "/v1/ns/operator/switches", username=user, password="x")).status == 403
        token = (await web.post(node, "/v1/auth/login", username=user, password="x")).json["accessToken"]
    client = await lab.naming(node)
    client.headers = {"accessToken": token}
    service = {"namespace": namespace, "groupName": "DEFAULT_GROUP", "serviceName": "web"}
    asked = await client.ask("ServiceQueryRequest", service)
    registered = await client.ask(
        "InstanceRequest", {**service, "type": "registerInstance", "instance": {"ip": "10.0.0.9", "port": 80}}
    )
    assert (asked.succeeded, registered.succeeded) == (reads, writes)


# What headers hold


@pytest.mark.wire
@pytest.mark.parametrize("value", [5, 5.5, True, "\ud800", "x" * 5_000, None])
async def test_a_header_is_always_read_as_text(lab: Lab, value: object, caplog: pytest.LogCaptureFixture) -> None:
    run = await lab.cluster(size=1, options=NodeOptions(auth=AUTH, identity=IDENTITY))
    client = await lab.naming(run.cluster.nodes[0])
    for name in ("accessToken", "who"):
        for type_name in ("ServiceQueryRequest", "DistroDataRequest"):
            body = {"headers": {name: value}, "namespace": "dev", "groupName": "g", "serviceName": "web"}
            assert (await client.ask(type_name, body)).body["errorCode"] in (403, 502)
    assert errors_logged(caplog) == []


@pytest.mark.wire
@pytest.mark.parametrize("headers", [[], {"accessToken": {}}, {"accessToken": []}, "text", 5])
async def test_headers_that_are_none_make_the_body_unreadable(lab: Lab, headers: object) -> None:
    node, _ = await lab.node()
    client = await lab.naming(node)
    reply = await client.ask("HealthCheckRequest", {"headers": headers})
    assert reply.body["errorCode"] == 502


@pytest.mark.wire
async def test_a_user_agent_may_have_any_number_of_digits(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    node, _ = await lab.node()
    listening = {"serviceName": "web", "clientIP": "127.0.0.1", "udpPort": 9}
    async with Web() as web:
        for agent in ("Nacos-Java-Client:v" + "9" * 5_000, "Nacos-Java-Client:v1" + ".1" * 2_500):
            asked = await web.ask("GET", node, "/v1/ns/instance/list", listening, headers={"User-Agent": agent})
            assert asked.status == 200
    assert errors_logged(caplog) == []


@pytest.mark.wire
async def test_a_member_shows_the_identity_over_http_too(lab: Lab) -> None:
    """In releases that report over HTTP alone."""
    old = replace(STRICT, report_transport=ReportTransport.HTTP)
    run = await lab.cluster(old, size=2, options=NodeOptions(identity=IDENTITY), strangers=True)
    await run.clock.advance(20_000)
    states = [member.state for node in run.cluster.nodes for member in node.members.others.values()]
    assert states == [MemberState.UP, MemberState.UP]
