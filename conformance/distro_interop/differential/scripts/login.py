"""Logging in, and the content of tokens: over HTTP, as SDKs do it before they connect."""

from __future__ import annotations

from distro_interop.differential.script_run import ScriptRun
from distro_interop.differential.scripts.registry import Setting, script
from distro_interop.differential.secured import ADMIN, READER
from distro_protos import Json

PATHS = ("/v1/auth/login", "/v1/auth/users/login")


@script("login", "users log in, rightly and wrongly", setting=Setting.SECURED)
async def logging_in(run: ScriptRun) -> None:
    for path in PATHS:
        await run.log_in(f"admin, {path}", *ADMIN, path=path)
    await run.log_in("reader", *READER)
    admin: Json = dict(zip(("username", "password"), ADMIN, strict=True))
    kinds: tuple[tuple[str, Json], ...] = (
        ("wrong password", {**admin, "password": "wrong"}),
        ("blank after the password", {**admin, "password": f"{ADMIN[1]} "}),
        ("empty password", {**admin, "password": ""}),
        ("unknown user", {"username": "nobody", "password": "wrong"}),
        ("empty user", {**admin, "username": ""}),
        ("no password", {"username": ADMIN[0]}),
        ("no user", {"password": ADMIN[1]}),
        ("nothing", {}),
    )
    for step, parameters in kinds:
        await run.http(step, "POST", PATHS[0], parameters)
    for method, path in (
        ("GET", PATHS[0]),
        ("PUT", PATHS[0]),
        ("POST", "/v1/auth"),
        ("POST", "/v3/auth/user/login"),
        ("POST", "/v2/auth/login"),
    ):
        await run.http(f"{method} {path}", method, path, admin)
    await run.http("by form", "POST", PATHS[0], form=admin)
    as_json = b'{"username":"nacos","password":"operator-password"}'
    await run.http("by JSON", "POST", PATHS[0], body=as_json, headers={"Content-Type": "application/json"})
