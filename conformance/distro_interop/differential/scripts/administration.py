"""The settings and pages of operators, over all paths that servers of 2.x are known to have, or to have had."""

from __future__ import annotations

from distro_interop.differential.script_run import ScriptRun
from distro_interop.differential.scripts.bodies import register, subscribe
from distro_interop.differential.scripts.registry import Setting, script
from distro_interop.differential.scripts.secured import ACCESS_TOKEN
from distro_interop.differential.secured import ADMIN
from distro_protos import Json

SWITCHES = "/v1/ns/operator/switches"
OF_ALL_SCRIPTS = ("/v1/ns/distro/datums", "/actuator/prometheus")
"""Pages that show the actions of all scripts."""


@script("paths", "which paths a release has for operators")
async def paths(run: ScriptRun) -> None:
    named = {"namespaceId": run.namespace, "serviceName": "web", "pageNo": 1, "pageSize": 10}
    for path in (
        "/v1/ns/health",
        "/v1/ns/health/checkers",
        "/v1/ns/health/instance",
        "/v1/ns/operator",
        "/v1/ns/operator/cluster/states",
        "/v1/ns/operator/push/state",
        "/v1/ns/operator/distro/status",
        "/v1/ns/operator/responsibleServer",
        "/v1/ns/ops/metrics",
        "/v1/ns/upgrade/ops/metrics",
        "/v1/ns/raft/leader",
        "/v1/ns/raft/state",
        "/v1/ns/distro/datums",
        "/v1/ns/service/subscribers",
        "/v1/ns/service/checksum",
        "/v1/ns/service/selector/types",
        "/v1/ns/catalog/service",
        "/v1/ns/catalog/instances",
        "/v1/core/cluster",
        "/v1/core/cluster/node/list",
        "/v1/core/ops/idInfo",
        "/v1/core/loader",
        "/v2/ns/health",
        "/v2/ns/health/checkers",
        "/v2/ns/service",
        "/v2/ns/service/list",
        "/v2/ns/catalog/instances",
        "/v2/ns/operator",
        "/v2/core/cluster/node",
        "/v2/core/cluster/self",
        "/v2/core/ops/ids",
        "/v3/admin/core/state",
        "/v3/admin/ns/client/list",
        "/v3/client/ns/instance/list",
        "/actuator/prometheus",
        "/",
    ):
        await run.http(f"GET {path}", "GET", path, named)
        if path in OF_ALL_SCRIPTS:
            del run.log.exchanges[-1].answer["body"]
    for method, path in (
        ("PUT", "/v1/ns/operator/metrics"),
        ("POST", "/v1/ns/operator/metrics"),
        ("DELETE", SWITCHES),
        ("POST", SWITCHES),
        ("GET", "/v1/ns/operator/log"),
        ("GET", "/v1/core/cluster/report"),
        ("PUT", "/v1/core/cluster/nodes"),
        ("POST", "/v1/core/cluster/self"),
        ("POST", "/v2/core/cluster/node/list"),
        ("GET", "/v2/core/cluster/lookup"),
        ("GET", "/v1/core/ops/raft"),
        ("GET", "/v1/core/ops/log"),
    ):
        await run.http(f"{method} {path}", method, path)


@script(
    "switches",
    "an operator turns switches, one of them so that no client is notified any more",
    alone=True,
    setting=Setting.SECURED,
)
async def switches(run: ScriptRun) -> None:
    token = {ACCESS_TOKEN: await run.log_in("log in", *ADMIN)}
    client, watcher = await run.client("client"), await run.client("watcher")
    await run.ask("subscribe", watcher, "SubscribeServiceRequest", subscribe(run), headers=token)
    await run.pushed("the empty list", watcher, 1)
    for entry, value in (
        ("pushEnabled", "false"),
        ("clientBeatInterval", "7000"),
        ("lightBeatEnabled", "false"),
        ("healthCheckEnabled", "false"),
        ("check", "false"),
        ("distro", "false"),
        ("distroThreshold", "0.5"),
        ("defaultPushCacheMillis", "20000"),
        ("pushCacheMillis", "20000"),
        ("nonsense", "1"),
        ("clientBeatInterval", "word"),
        ("pushEnabled", "word"),
        ("lightBeatEnabled", ""),
    ):
        asked = {"entry": entry, "value": value, "debug": "true", **token}
        await run.http(f"turn {entry} to {value!r}", "PUT", SWITCHES, asked)
    await run.http("switches, turned", "GET", SWITCHES)
    await run.ask("register", client, "InstanceRequest", register(run), headers=token)
    await run.pushed("no push", watcher, 0)
    # Pushes last: what is pushed then says the values that are turned back, however soon it comes.
    again: Json = {
        "clientBeatInterval": "5000",
        "lightBeatEnabled": "true",
        "healthCheckEnabled": "true",
        "check": "true",
        "distro": "true",
        "distroThreshold": "0.7",
        "defaultPushCacheMillis": "10000",
        "pushCacheMillis": "10000",
        "pushEnabled": "true",
    }
    for entry, value in again.items():
        asked = {"entry": entry, "value": value, "debug": "true", **token}
        await run.http(f"turn {entry} back to {value}", "PUT", SWITCHES, asked)
    await run.pushed("push when it is on again", watcher, 1, within_ms=1_500)
    await run.http("switches, turned back", "GET", SWITCHES)
    for step, parameters in (
        ("through raft", {"entry": "pushEnabled", "value": "true"}),
        ("by a word for debug", {"entry": "pushEnabled", "value": "true", "debug": "perhaps"}),
        ("without entry", {"value": "true", "debug": "true"}),
        ("without value", {"entry": "pushEnabled", "debug": "true"}),
    ):
        await run.http(step, "PUT", SWITCHES, {**parameters, **token})
