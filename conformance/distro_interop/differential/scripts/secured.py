"""The answers of a node with authentication on: to clients with tokens of every sort, and members.

Tokens that are wrong in some way are signed here, with the secret that both nodes were given.
"""

from __future__ import annotations

from collections.abc import Iterator

import jwt

from distro_conformance.wire.messages import distro_request
from distro_interop.differential.script_run import ScriptRun
from distro_interop.differential.scripts.bodies import batch, page, query, register, subscribe
from distro_interop.differential.scripts.registry import Setting, script
from distro_interop.differential.secured import ADMIN, IDENTITY, READER, SECRET
from distro_protos import Json

ACCESS_TOKEN = "accessToken"
IN_2100_S, IN_1970_S = 4_102_444_800, 1_000
INSTANCE = "/v1/ns/instance"


def signed(
    user: str = ADMIN[0],
    *,
    expires_s: int | None = IN_2100_S,
    secret: bytes = SECRET,
    how: str = "HS256",
    typed: str | None = None,
) -> str:
    claims: Json = {"sub": user} if expires_s is None else {"sub": user, "exp": expires_s}
    return jwt.encode(claims, secret if how != "none" else "", how, headers={"typ": typed})


def tokens() -> Iterator[tuple[str, str]]:
    yield "signed here", signed()
    yield "reader's, signed here", signed(READER[0])
    yield "signed with a type", signed(typed="JWT")
    yield "expired", signed(expires_s=IN_1970_S)
    yield "without expiry", signed(expires_s=None)
    yield "of an unknown user", signed("nobody")
    yield "without a user name", signed("")
    yield "signed by another", signed(secret=b"another secret of the same length")
    yield "signed otherwise", signed(secret=SECRET * 2, how="HS512")
    yield "not signed", signed(how="none")
    yield "cut short", signed()[:-5]
    yield "a word", "garbled"
    yield "empty", ""
    yield "blank", " "
    yield "Bearer", f"Bearer {signed()}"


async def logged_in(run: ScriptRun) -> dict[str, str]:
    return {user[0]: await run.log_in(f"log in as {user[0]}", *user) for user in (ADMIN, READER)}


@script("secured-http", "which token lets a client do what over HTTP", setting=Setting.SECURED)
async def over_http(run: ScriptRun) -> None:
    given = await logged_in(run)
    named = {"namespaceId": run.namespace, "serviceName": "web", "ip": "10.0.0.1", "port": 80}
    for method, path in (("GET", f"{INSTANCE}/list"), ("POST", INSTANCE)):
        await run.http(f"{method} without token", method, path, named)
        for name, token in (*given.items(), *tokens()):
            await run.http(f"{method}, {name}", method, path, {**named, ACCESS_TOKEN: token})
    own = given[ADMIN[0]]
    for step, headers in (
        ("in a header", {ACCESS_TOKEN: own}),
        ("in Authorization", {"Authorization": f"Bearer {own}"}),
        ("in Authorization, plain", {"Authorization": own}),
        ("in Authorization, lower case", {"Authorization": f"bearer {own}"}),
        ("wrong in a header", {ACCESS_TOKEN: "wrong"}),
        ("identity", dict([IDENTITY])),
        ("identity in upper case", {IDENTITY[0].upper(): IDENTITY[1]}),
        ("wrong identity", {IDENTITY[0]: "others"}),
        ("empty identity", {IDENTITY[0]: ""}),
        ("of a server", {"User-Agent": "Nacos-Server:v2.2.4"}),
    ):
        await run.http(step, "POST", INSTANCE, named, headers=headers)
    for step, further in (
        ("user and password", {"username": ADMIN[0], "password": ADMIN[1]}),
        ("user and wrong password", {"username": ADMIN[0], "password": "wrong"}),
        ("unknown user and password", {"username": "nobody", "password": "wrong"}),
        ("user alone", {"username": ADMIN[0]}),
    ):
        await run.http(step, "POST", INSTANCE, {**named, **further})


@script("secured-paths", "which paths are guarded", setting=Setting.SECURED)
async def paths(run: ScriptRun) -> None:
    given = await logged_in(run)
    named = {"namespaceId": run.namespace, "serviceName": "web", "ip": "10.0.0.1", "port": 80}
    named |= {"connectionId": "nobody", "clientId": "nobody", "key": "web"}
    for method, path in (
        ("POST", INSTANCE),
        ("PUT", f"{INSTANCE}/beat"),
        ("GET", f"{INSTANCE}/list"),
        ("GET", INSTANCE),
        ("DELETE", INSTANCE),
        ("GET", f"{INSTANCE}/none"),
        ("GET", "/v1/ns/operator/metrics"),
        ("GET", "/v1/ns/operator/distro/client"),
        ("PUT", "/v1/ns/operator/metrics"),
        ("GET", "/v1/core/cluster/simple/nodes"),
        ("GET", "/v1/core/cluster/health"),
        ("GET", "/v1/core/cluster/none"),
        ("GET", "/v2/core/cluster/node/self/health"),
        ("GET", "/v2/ns/instance/list"),
        ("GET", "/v2/ns/client/publish/list"),
        ("GET", "/v1/ns/distro/datums"),
        ("GET", "/none"),
    ):
        for name, token in (("no token", None), *given.items()):
            asked = named if token is None else {**named, ACCESS_TOKEN: token}
            await run.http(f"{method} {path}, {name}", method, path, asked)
            _without_success(run)
    own = {ACCESS_TOKEN: given[ADMIN[0]]}
    for path in (
        "/v1/ns/operator/switches",
        "/v1/ns/operator/servers",
        "/v1/core/cluster/self",
        "/v1/core/cluster/nodes",
        "/v2/core/cluster/node/self",
        "/v2/core/cluster/node/list",
        "/v2/ns/client/list",
        "/v2/ns/operator/switches",
        "/v2/ns/operator/metrics",
        "/v1/console/server/state",
    ):
        for name, token in (("no token", ""), *given.items()):
            await run.http(f"GET {path}, {name}", "GET", path, {ACCESS_TOKEN: token})
            _without_success(run)
    for path in ("/v1/console/health/liveness", "/v1/console/health/readiness"):
        await run.http(f"GET {path}, no token", "GET", path)
    await run.http("service list", "GET", "/v1/ns/service/list", {**own, "pageNo": 1, "pageSize": 10})
    await run.http("service list, no token", "GET", "/v1/ns/service/list", {"pageNo": 1, "pageSize": 10})
    for headers in ({}, dict([IDENTITY]), {IDENTITY[0]: "others"}, {"User-Agent": "Nacos-Server:v2.2.4"}):
        step = f"report with {', '.join(headers.values()) or 'nothing'}"
        kind = {"Content-Type": "application/json", **headers}
        await run.http(step, "POST", "/v1/core/cluster/report", body=b"{}", headers=kind)


@script("secured-grpc", "which token lets a client do what over gRPC", setting=Setting.SECURED)
async def over_grpc(run: ScriptRun) -> None:
    given = await logged_in(run)
    client = await run.client("client")
    kinds: tuple[tuple[str, Json], ...] = (
        ("InstanceRequest", register(run)),
        ("BatchInstanceRequest", batch(run, 8001, 8002, name="web2")),
        ("SubscribeServiceRequest", subscribe(run)),
        ("ServiceQueryRequest", query(run)),
        ("ServiceListRequest", page(run, 1, 10)),
        ("HealthCheckRequest", {}),
        ("ServerCheckRequest", {}),
        ("InstanceRequest", {"module": "naming"}),
        ("UnknownRequest", {}),
    )
    admin = {ACCESS_TOKEN: given[ADMIN[0]]}
    shown: dict[str, dict[str, str]] = {
        "no token": {},
        **{name: {ACCESS_TOKEN: token} for name, token in given.items()},
        "the identity": dict([IDENTITY]),
        "another identity": {IDENTITY[0]: "others"},
    }
    await run.ask("register with a token", client, "InstanceRequest", register(run), headers=admin)
    await run.shown()
    for number, (kind, body) in enumerate(kinds):
        if kind == "BatchInstanceRequest" and run.target.profile == "nacos-2.0.4":
            continue
        for name, headers in shown.items():
            await run.ask(f"{number} {kind}, {name}", client, kind, body, headers=headers)
    for kind, body in kinds[:1] + kinds[3:4]:
        for name, token in tokens():
            await run.ask(f"{kind}, {name}", client, kind, body, headers={ACCESS_TOKEN: token})
        for name in ("accesstoken", "ACCESSTOKEN", "Authorization"):
            await run.ask(f"{kind}, in {name}", client, kind, body, headers={name: given[ADMIN[0]]})
    stranger = await run.bare_client("stranger")
    await run.ask("stranger without token", stranger, "ServiceQueryRequest", query(run))
    await run.ask("stranger with token", stranger, "ServiceQueryRequest", query(run), headers=admin)


@script(
    "secured-members", "what a member may ask, with the identity of the cluster and without", setting=Setting.SECURED
)
async def members(run: ScriptRun) -> None:
    given = await logged_in(run)
    member = await run.client("member", labels={"source": "cluster"}, cluster=True)
    client = await run.client("client")
    for headers in ({}, dict([IDENTITY]), {IDENTITY[0]: "others"}, {ACCESS_TOKEN: given[ADMIN[0]]}):
        how = next(iter(headers.items()), ("nothing", ""))
        name = "a token" if how[0] == ACCESS_TOKEN else " ".join(how)
        for sender in (member, client):
            for kind, body in (
                ("MemberReportRequest", {"node": run.peer.as_member()}),
                ("DistroDataRequest", distro_request("QUERY", "nobody")),
                ("DistroDataRequest", distro_request("VERIFY", "nobody", content={"clientId": "nobody"})),
            ):
                what = body.get("dataOperation", "")
                step = f"{sender.name}: {kind} {what} with {name}"
                await run.ask(step, sender, kind, body, headers=headers)
                run.log.exchanges[-1].answer.get("body", {}).pop("node", None)


def _without_success(run: ScriptRun) -> None:
    """The body that a permitted caller is shown is not compared here."""
    answer = run.log.exchanges[-1].answer
    if answer.get("status") == 200:
        del answer["body"]
