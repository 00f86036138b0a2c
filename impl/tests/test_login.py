"""User names and passwords: logging in over HTTP, and the HTTP API behind authentication."""

from __future__ import annotations

from base64 import urlsafe_b64encode

import jwt
import pytest
from aiohttp import ClientSession
from impl_lab import STRICT, Lab, Run

from distro_impl import PROFILES, NodeOptions
from distro_impl.options import READS_ALL, AuthOptions, ServerIdentity, User

pytestmark = pytest.mark.wire

SECRET = b"0123456789abcdef0123456789abcdef"
USERS = {"nacos": User("nacos", "nacos"), "reader": User("reader", "secret", READS_ALL)}
NACOS = {"username": "nacos", "password": "nacos"}
AUTH = AuthOptions(secret=SECRET, users=USERS)
SERVICES, SWITCHES = "/v1/ns/service/list", "/v1/ns/operator/switches"
"""A path that is read and one that is written. What they answer does not matter here, only whether one is let in."""


class Http:
    """Asks the first node of a run."""

    def __init__(self, session: ClientSession, run: Run) -> None:
        self._session, self._base = session, f"http://{run.cluster.addresses[0]}/nacos"

    async def status(self, method: str, path: str, headers: dict[str, str] | None = None, **parameters: str) -> int:
        async with self._session.request(method, self._base + path, headers=headers, params=parameters) as reply:
            return reply.status

    async def login(self, path: str = "/v1/auth/login", **how: object) -> tuple[int, object]:
        async with self._session.post(self._base + path, **how) as reply:  # type: ignore[arg-type]
            return reply.status, await (reply.json() if reply.status == 200 else reply.text())


@pytest.mark.parametrize("path", ["/v1/auth/login", "/v1/auth/users/login"])
@pytest.mark.parametrize("where", ["params", "data"])
async def test_a_user_gets_a_token_that_names_him_and_its_end(lab: Lab, path: str, where: str):
    run = await lab.cluster(size=1, options=NodeOptions(auth=AUTH))
    async with ClientSession() as session:
        status, found = await Http(session, run).login(path, **{where: NACOS})
    assert status == 200
    assert isinstance(found, dict)
    assert (found["tokenTtl"], found["username"]) == (18_000, "nacos")
    claims = jwt.decode(found["accessToken"], SECRET, ["HS256"], options={"verify_exp": False})
    assert claims == {"sub": "nacos", "exp": run.clock.now_ms() // 1000 + 18_000}
    assert jwt.get_unverified_header(found["accessToken"]) == {"alg": "HS256"}  # real servers refuse any other


@pytest.mark.parametrize("user", [{"username": "nacos", "password": "x"}, {"username": "x", "password": "x"}])
async def test_a_user_with_a_wrong_password_gets_no_token(lab: Lab, user: dict[str, str]):
    run = await lab.cluster(size=1, options=NodeOptions(auth=AUTH))
    async with ClientSession() as session:
        assert await Http(session, run).login(data=user) == (403, "unknown user!")


async def test_only_users_that_may_write_are_called_administrators(lab: Lab):
    run = await lab.cluster(size=1, options=NodeOptions(auth=AUTH))
    async with ClientSession() as session:
        for user, is_admin in ((NACOS, True), ({"username": "reader", "password": "secret"}, False)):
            _, found = await Http(session, run).login(data=user)
            assert isinstance(found, dict)
            assert found["globalAdmin"] is is_admin


async def test_a_refused_caller_gets_a_page_with_the_reason(lab: Lab):
    run = await lab.cluster(size=1, options=NodeOptions(auth=AUTH))
    url = f"http://{run.cluster.addresses[0]}/nacos{SERVICES}"
    async with ClientSession() as session, session.get(url) as reply:
        page = await reply.json()
    assert (reply.status, page["status"], page["message"]) == (403, 403, "user not found!")


@pytest.mark.parametrize(
    ("method", "path", "any_caller", "reader"),
    [
        ("GET", "/v1/ns/operator/distro/client", True, True),
        ("GET", "/v1/ns/instance/none", True, True),
        ("GET", "/v2/core/cluster/node/self", False, False),
        ("GET", "/v1/ns/instance/list", False, True),
        ("PUT", "/v1/ns/instance/beat", False, False),
    ],
)
async def test_some_of_it_is_open_and_some_for_administrators(
    lab: Lab, method: str, path: str, any_caller: bool, reader: bool
):
    run = await lab.cluster(size=1, options=NodeOptions(auth=AUTH))
    async with ClientSession() as session:
        http = Http(session, run)
        assert (await http.status(method, path) != 403) is any_caller
        assert (await http.status(method, path, username="reader", password="secret") != 403) is reader


@pytest.mark.parametrize(("profile", "is_open"), [("nacos-2.2.4", True), ("nacos-2.3.2", False)])
async def test_the_member_list_is_behind_authentication_from_2_3_on(lab: Lab, profile: str, is_open: bool):
    run = await lab.cluster(PROFILES[profile], size=1, options=NodeOptions(auth=AUTH))
    async with ClientSession() as session:
        assert (await Http(session, run).status("GET", "/v1/core/cluster/nodes") == 200) is is_open


async def test_where_authentication_is_off_any_caller_may_log_in(lab: Lab):
    run = await lab.cluster(size=1)
    async with ClientSession() as session:
        status, found = await Http(session, run).login(data={"username": "unknown", "password": "x"})
        assert status == 200
        assert isinstance(found, dict)
        assert found["tokenTtl"] == 18_000  # a client asks again when it is over
        assert await Http(session, run).status("GET", SERVICES) != 403


async def test_3_x_has_a_path_of_its_own(lab: Lab):
    for profile, expected in ((STRICT, 404), (PROFILES["nacos-3.0.3"], 200)):
        run = await lab.cluster(profile, size=1, options=NodeOptions(auth=AUTH))
        async with ClientSession() as session:
            assert (await Http(session, run).login("/v3/auth/user/login", data=NACOS))[0] == expected


async def test_the_api_asks_for_a_token_wherever_it_may_stand(lab: Lab):
    run = await lab.cluster(size=1, options=NodeOptions(auth=AUTH))
    async with ClientSession() as session:
        http = Http(session, run)
        assert await http.status("GET", SERVICES) == 403
        assert await http.status("GET", SERVICES, accessToken="nonsense") == 403
        _, found = await http.login(data=NACOS)
        assert isinstance(found, dict)
        token = found["accessToken"]
        assert await http.status("GET", SERVICES, accessToken=token) != 403
        assert await http.status("GET", SERVICES, {"accessToken": token}) != 403
        assert await http.status("PUT", SWITCHES, {"Authorization": f"Bearer {token}"}) != 403


async def test_a_token_is_refused_with_any_header(lab: Lab):
    """It is read before the signature is checked."""
    run = await lab.cluster(size=1, options=NodeOptions(auth=AUTH))
    async with ClientSession() as session:
        for header in (b"[" * 3_000, b"3", b"{}", b"\xff", b""):
            token = f"{urlsafe_b64encode(header).decode()}.e30.AAAA"
            assert await Http(session, run).status("GET", SERVICES, accessToken=token) == 403


async def test_a_client_may_name_its_user_in_every_request_instead_of_logging_in(lab: Lab):
    run = await lab.cluster(size=1, options=NodeOptions(auth=AUTH))
    async with ClientSession() as session:
        http = Http(session, run)
        assert await http.status("PUT", SWITCHES, **NACOS) != 403
        assert await http.status("GET", SERVICES, username="nacos", password="wrong") == 403
        assert await http.status("GET", SERVICES, username="nacos") == 403
        assert await http.status("PUT", SWITCHES, username="reader", password="secret") == 403


async def test_a_reader_may_not_write(lab: Lab):
    run = await lab.cluster(size=1, options=NodeOptions(auth=AUTH))
    async with ClientSession() as session:
        http = Http(session, run)
        _, found = await http.login(data={"username": "reader", "password": "secret"})
        assert isinstance(found, dict)
        assert await http.status("GET", SERVICES, accessToken=found["accessToken"]) != 403
        assert await http.status("PUT", SWITCHES, accessToken=found["accessToken"]) == 403


async def test_any_caller_may_ask_for_the_health_of_a_node(lab: Lab):
    run = await lab.cluster(size=1, options=NodeOptions(auth=AUTH))
    async with ClientSession() as session:
        assert await Http(session, run).status("GET", "/v1/ns/operator/metrics") == 200


async def test_a_member_passes_by_its_identity_and_by_its_user_agent_only_if_that_is_trusted(lab: Lab):
    identity = ServerIdentity("who", "us")
    agent = {"User-Agent": "Nacos-Server:v2.5.1"}
    run = await lab.cluster(size=1, options=NodeOptions(auth=AUTH, identity=identity))
    async with ClientSession() as session:
        http = Http(session, run)
        assert await http.status("PUT", SWITCHES, {"Who": "us"}) != 403
        assert await http.status("PUT", SWITCHES, {"Who": "them"}) == 403
        assert await http.status("PUT", SWITCHES, agent) == 403
    trusting = AuthOptions(secret=SECRET, users=USERS, trusts_server_user_agent=True)
    run = await lab.cluster(size=1, options=NodeOptions(auth=trusting))
    async with ClientSession() as session:
        assert await Http(session, run).status("PUT", SWITCHES, agent) != 403


@pytest.mark.parametrize(("profile", "is_open"), [("nacos-2.2.0", True), ("nacos-2.3.0", False)])
async def test_a_report_over_http_is_behind_authentication_from_2_3_on(lab: Lab, profile: str, is_open: bool):
    run = await lab.cluster(PROFILES[profile], size=1, options=NodeOptions(auth=AUTH))
    async with ClientSession() as session:
        status = await Http(session, run).status("POST", "/v1/core/cluster/report")
    assert (status != 403) is is_open
