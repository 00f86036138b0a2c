"""The HTTP API of old clients: register, beat, look up, and the requests that are forwarded to the owner."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from distro_conformance.release import Span
from distro_interop.differential.script_run import ScriptRun
from distro_interop.differential.scripts.bodies import given
from distro_interop.differential.scripts.registry import script
from distro_protos import Json

V1, V2 = "/v1/ns/instance", "/v2/ns/instance"


async def owned_by(run: ScriptRun, owner: str, *, port: int = 8001) -> dict[str, Any]:
    """An address of which the node says that this member owns it; both nodes must say the same."""
    wanted = {"node": run.target.address, "member": run.peer.address}[owner]
    for last in range(1, 60):
        ip = f"10.1.{port % 250}.{last}"
        step, asked = f"owner of {ip}:{port}, looking for {owner}", {"ip": ip, "port": port}
        found = await run.http(step, "GET", "/v1/ns/operator/distro/client", asked)
        if isinstance(found, dict) and found.get("responsibleServer") == wanted:
            return {"ip": ip, "port": port, "serviceName": "web", "namespaceId": run.namespace}
    raise AssertionError(f"{owner} owns nothing")


async def each_in_turn(run: ScriptRun, path: str, kinds: Mapping[str, Json]) -> None:
    """Register all, look at all once that can be seen, and take all back."""
    for step, parameters in kinds.items():
        await run.http(f"register, {step}", "POST", path, parameters)
    await run.shown()
    for step, parameters in kinds.items():
        await run.http(f"list, {step}", "GET", f"{path}/list", parameters)
        await run.http(f"detail, {step}", "GET", path, parameters)
    for step, parameters in kinds.items():
        await run.http(f"deregister, {step}", "DELETE", path, parameters)


@script("http-register", "a client of 1.x registers, looks up, changes and takes back")
async def registering(run: ScriptRun) -> None:
    own = await owned_by(run, "node")
    client = f"{own['ip']}:{own['port']}#true"
    await run.http("list before", "GET", f"{V1}/list", own)
    await run.http("detail before", "GET", V1, own)
    await run.http("register", "POST", V1, {**own, "metadata": '{"a":"b"}', "weight": "2"})
    await run.synced("the member receives it", client, 1)
    await run.http("list", "GET", f"{V1}/list", own)
    await run.http("detail", "GET", V1, own)
    await run.http("detail of another cluster", "GET", V1, {**own, "cluster": "other"})
    await run.http("list of another cluster", "GET", f"{V1}/list", {**own, "clusters": "other"})
    await run.http("list, healthy only", "GET", f"{V1}/list", {**own, "healthyOnly": "true"})
    await run.http("list, grouped name", "GET", f"{V1}/list", {**own, "serviceName": "DEFAULT_GROUP@@web"})
    await run.http("list, another group", "GET", f"{V1}/list", {**own, "groupName": "OTHER"})
    await run.http("list, as a Java client", "GET", f"{V1}/list", own, headers={"User-Agent": "Nacos-Java-Client:1.4"})
    await run.http("statuses", "GET", f"{V1}/statuses", {"key": f"{run.namespace}##DEFAULT_GROUP@@web"})
    await run.http("register again", "POST", V1, {**own, "metadata": "c=d,e=f", "enabled": "false"})
    await run.http("register by form", "POST", V1, form={**own, "serviceName": "form"})
    await run.synced("the member receives the change", client, 1)
    await run.http("list of a disabled instance", "GET", f"{V1}/list", own)
    await run.http("detail of a disabled instance", "GET", V1, own)
    await run.state("state with two services")
    await run.http("deregister", "DELETE", V1, own)
    await run.http("deregister again", "DELETE", V1, own)
    await run.http("deregister an unknown client", "DELETE", V1, {**own, "ip": "10.1.1.250"})
    await run.http("deregister the other", "DELETE", V1, {**own, "serviceName": "form"})
    await run.synced("the member receives that it is gone", client, 1)
    await run.http("list after", "GET", f"{V1}/list", own)
    await run.http("detail after", "GET", V1, own)
    await run.state()


@script("http-beat", "beats, full and light, of known and unknown instances")
async def beats(run: ScriptRun) -> None:
    own = await owned_by(run, "node", port=8002)
    named = {"serviceName": own["serviceName"], "namespaceId": own["namespaceId"]}
    whole = {
        "ip": own["ip"],
        "port": own["port"],
        "serviceName": "DEFAULT_GROUP@@web",
        "cluster": "DEFAULT",
        "weight": 1.0,
        "metadata": {"k": "v"},
        "ephemeral": True,
    }
    light = {**named, "ip": own["ip"], "port": own["port"], "clusterName": "DEFAULT"}
    await run.http("light beat of an unknown instance", "PUT", f"{V1}/beat", light)
    await run.http("full beat of an unknown instance", "PUT", f"{V1}/beat", {**named, "beat": json.dumps(whole)})
    await run.synced("the member receives it", f"{own['ip']}:{own['port']}#true", 1)
    await run.http("list", "GET", f"{V1}/list", own)
    await run.http("light beat", "PUT", f"{V1}/beat", light)
    await run.http("full beat", "PUT", f"{V1}/beat", {**named, "beat": json.dumps(whole)})
    changed = json.dumps({**whole, "metadata": {"k": "w", "preserved.heart.beat.interval": "7000"}, "weight": 3.0})
    await run.http("a beat with other metadata", "PUT", f"{V1}/beat", {**named, "beat": changed})
    await run.shown()
    await run.http("list after that", "GET", f"{V1}/list", own)
    for step, parameters in (
        ("another cluster", {**light, "clusterName": "other"}),
        ("another service", {**light, "serviceName": "none"}),
        ("no service", {"ip": own["ip"], "port": own["port"]}),
        ("no ip", {**named, "port": own["port"]}),
        ("no address", named),
        ("a beat that is no JSON", {**named, "beat": "{"}),
        ("a beat that is a list", {**named, "beat": "[]"}),
        ("an empty beat", {**named, "beat": "{}"}),
        ("port is a word", {**light, "port": "http"}),
    ):
        await run.http(step, "PUT", f"{V1}/beat", parameters)
    await run.http("deregister", "DELETE", V1, own)
    await run.state()


@script("http-errors", "requests that an HTTP client should not send")
async def errors(run: ScriptRun) -> None:
    own = await owned_by(run, "node", port=8003)
    kinds: tuple[tuple[str, Json], ...] = (
        ("no service", {"serviceName": None}),
        ("blank service", {"serviceName": " "}),
        ("empty service", {"serviceName": ""}),
        ("empty group", {"groupName": ""}),
        ("service without group before the separator", {"serviceName": "@@web"}),
        ("service without name after the separator", {"serviceName": "DEFAULT_GROUP@@"}),
        ("no ip", {"ip": None}),
        ("empty ip", {"ip": ""}),
        ("no port", {"port": None}),
        ("port is a word", {"port": "http"}),
        ("port 70000", {"port": 70000}),
        ("port -1", {"port": -1}),
        ("weight is a word", {"weight": "heavy"}),
        ("weight -1", {"weight": -1}),
        ("weight 20000", {"weight": 20000}),
        ("weight NaN", {"weight": "NaN"}),
        ("metadata is no JSON", {"metadata": "{"}),
        ("metadata is a list", {"metadata": "[]"}),
        ("metadata is a word", {"metadata": "word"}),
        ("metadata with numbers", {"metadata": '{"a":1,"b":true,"c":null}'}),
        ("metadata with an object", {"metadata": '{"a":{"b":"c"}}'}),
        ("cluster with a blank", {"clusterName": "a b"}),
        ("cluster with a comma", {"clusterName": "a,b"}),
        ("enabled is a word", {"enabled": "perhaps"}),
        ("enabled is yes", {"enabled": "yes"}),
        ("empty namespace", {"namespaceId": ""}),
        ("persistent", {"ephemeral": "false"}),
    )
    await each_in_turn(run, V1, {step: _in_its_own_service(own, step, changed) for step, changed in kinds})
    for method, path in (
        ("GET", "/v1/ns/none"),
        ("GET", "/v2/ns/none"),
        ("GET", "/none"),
        ("PATCH", f"{V1}/list"),
        ("POST", f"{V1}/list"),
        ("PUT", f"{V1}/list"),
        ("GET", f"{V1}/beat"),
        ("HEAD", f"{V1}/list"),
        ("OPTIONS", V1),
        ("GET", f"{V1}/"),
    ):
        await run.http(f"{method} {path}", method, path)
    for key in ("", "web", "a##b", "DEFAULT_GROUP@@web"):
        await run.http(f"statuses of {key!r}", "GET", f"{V1}/statuses", {"key": key})
    await run.http("statuses without key", "GET", f"{V1}/statuses")
    await run.http("update of an unknown service", "PUT", V1, {**own, "serviceName": "never"})
    await run.state()


@script("http-forwarded", "requests about an instance that another member owns")
async def forwarded(run: ScriptRun) -> None:
    foreign = await owned_by(run, "member", port=8004)
    beat = json.dumps({"ip": foreign["ip"], "port": foreign["port"], "serviceName": "DEFAULT_GROUP@@web"})
    named = {"serviceName": "web", "namespaceId": run.namespace}
    headers = {"User-Agent": "Nacos-Java-Client:v1.4.8", "Client-Version": "1.4.8"}
    await run.http("register", "POST", V1, foreign, headers=headers)
    await run.forwarded("the owner is asked to register")
    await run.http("register by form", "POST", V1, form=foreign)
    await run.forwarded("the owner is asked by form")
    await run.http("beat", "PUT", f"{V1}/beat", {**named, "beat": beat})
    await run.forwarded("the owner gets the beat")
    await run.http("light beat", "PUT", f"{V1}/beat", {**foreign, "clusterName": "DEFAULT"})
    await run.forwarded("the owner gets the light beat")
    await run.http("update", "PUT", V1, foreign)
    await run.forwarded("the owner gets the update")
    await run.http("deregister", "DELETE", V1, foreign)
    await run.forwarded("the owner is asked to deregister")
    await run.http("list", "GET", f"{V1}/list", foreign)
    await run.http("detail", "GET", V1, foreign)
    await run.forwarded("reading is not sent on")
    again = {"User-Agent": "Nacos-Server:v" + run.peer.version}
    await run.http("sent on by another member", "POST", V1, foreign, headers=again)
    await run.forwarded("and not again")
    await run.state()


@script("http-v2", "instances in version 2 of the API", Span("2.2.0"))
async def version_2(run: ScriptRun) -> None:
    own = await owned_by(run, "node", port=8005)
    await run.http("list before", "GET", f"{V2}/list", own)
    await run.http("detail before", "GET", V2, own)
    await run.http("register", "POST", V2, {**own, "metadata": '{"a":"b"}'})
    await run.synced("the member receives it", f"{own['ip']}:{own['port']}#true", 1)
    await run.http("list", "GET", f"{V2}/list", own)
    await run.http("detail", "GET", V2, own)
    await run.http("detail of another cluster", "GET", V2, {**own, "clusterName": "other"})
    await run.http("list of another cluster", "GET", f"{V2}/list", {**own, "clusterName": "other"})
    await run.http("list, healthy only", "GET", f"{V2}/list", {**own, "healthyOnly": "true"})
    beat = {**own, "clusterName": "DEFAULT"}
    await run.http("light beat", "PUT", f"{V2}/beat", beat)
    await run.http("light beat of an unknown instance", "PUT", f"{V2}/beat", {**beat, "serviceName": "none"})
    await run.http("a beat that is no JSON", "PUT", f"{V2}/beat", {**beat, "beat": "{"})
    kinds: tuple[tuple[str, Json], ...] = (
        ("no service", {"serviceName": None}),
        ("blank service", {"serviceName": " "}),
        ("no ip", {"ip": None}),
        ("no port", {"port": None}),
        ("port is a word", {"port": "http"}),
        ("port 70000", {"port": 70000}),
        ("weight is a word", {"weight": "heavy"}),
        ("weight 20000", {"weight": 20000}),
        ("metadata is a word", {"metadata": "word"}),
        ("cluster with a blank", {"clusterName": "a b"}),
        ("grouped name", {"serviceName": "OTHER@@web"}),
    )
    await each_in_turn(run, V2, {step: _in_its_own_service(own, step, changed) for step, changed in kinds})
    foreign = await owned_by(run, "member", port=8006)
    await run.http("register what another owns", "POST", V2, foreign)
    await run.forwarded("what the owner is asked")
    await run.http("deregister", "DELETE", V2, own)
    await run.http("deregister what another owns", "DELETE", V2, foreign)
    await run.shown()
    await run.http("list after", "GET", f"{V2}/list", own)
    await run.state()


def _in_its_own_service(own: Json, step: str, changed: Json) -> Json:
    """Unless it is the service that is odd: what one registers would be seen by the next."""
    named = {} if "serviceName" in changed else {"serviceName": f"web-{step.replace(' ', '-')}"}
    return given({**own, **named, **changed})
