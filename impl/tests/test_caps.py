"""Data of strangers is bounded: ids, addresses and forms have a maximum length, memories a maximum size."""

from __future__ import annotations

import sys
from urllib.parse import urlencode

import pytest
from http_lab import FORM, Web
from impl_lab import Lab, errors_logged

from distro_impl.distro import mapper
from distro_impl.distro.mapper import distro_hash
from distro_impl.events import NodeEventKind
from distro_impl.http import parameters
from distro_impl.java_hash import java_hash
from distro_impl.naming import deleted

pytestmark = pytest.mark.wire
OVER_GRPC = True

LONG = "1" * 100_000


def test_only_addresses_are_kept_for_their_hash() -> None:
    before = mapper._short_hash.cache_info().currsize
    assert distro_hash(LONG) == abs(java_hash(LONG)) % (2**31 - 1)
    assert mapper._short_hash.cache_info().currsize == before
    size = mapper._short_hash.cache_info().maxsize
    assert size is not None
    assert size * mapper.MAX_CACHED_LENGTH < 8 * 2**20


async def test_only_digests_of_deleted_content_are_kept_and_they_are_bounded(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deleted, "MAX_DELETED", 100)
    node, _ = await lab.node()
    member, clients = await lab.member(node), node.parts.naming.clients
    for number in range(150):
        assert (await member.distro("DELETE", f"{LONG}_{number}")).succeeded
    assert len(clients._deleted._deleted_ms) == 100
    assert sum(map(sys.getsizeof, clients._deleted._deleted_ms)) < 100 * 64
    assert clients.was_deleted(f"{LONG}_149")
    assert not clients.was_deleted(f"{LONG}_49")  # the oldest went first
    clients.delete("c1", NodeEventKind.REPLICA_REMOVED)
    assert not (await member.change("c1", 1, web=80)).succeeded


async def test_a_client_with_an_endless_id_is_not_taken(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    node, _ = await lab.node()
    member = await lab.member(node)
    reply = await member.change(LONG, 1, web=80)
    assert (reply.type, reply.body["resultCode"]) == ("DistroDataResponse", 500)
    assert (await member.change("1" * 1_024, 1, web=80)).succeeded
    assert errors_logged(caplog) == []


@pytest.mark.parametrize("path", ["/v1/ns/instance", "/v2/ns/instance"])
async def test_an_endless_address_is_not_taken(lab: Lab, path: str, caplog: pytest.LogCaptureFixture) -> None:
    run = await lab.cluster(size=1)
    body = urlencode({"serviceName": "web", "ip": LONG, "port": 80}).encode()
    async with Web() as web:
        answer = await web.ask("POST", run.cluster.nodes[0], path, headers=FORM, body=body)
    assert answer.status == 400
    registered = await (await lab.naming(run.cluster.nodes[0])).register("web", 80, ip=LONG)
    assert not registered.succeeded
    assert len(tuple(run.cluster.nodes[0].parts.naming.clients)) == 1  # the SDK's own
    assert errors_logged(caplog) == []


async def test_a_form_has_so_many_fields_at_most(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    node, _ = await lab.node()
    fields = {"serviceName": "web", "ip": "10.0.0.9", "port": "80"}
    async with Web() as web:
        for number, status in ((parameters.MAX_FIELDS - 3, 200), (parameters.MAX_FIELDS, 400)):
            body = urlencode({**fields, **{f"more{each}": "" for each in range(number)}}).encode()
            assert (await web.ask("POST", node, "/v1/ns/instance", headers=FORM, body=body)).status == status
    assert errors_logged(caplog) == []


async def test_parameters_are_read_once(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    run = await lab.cluster(size=1)
    forms = []

    def noted(text: str, **how: object) -> list[tuple[str, str]]:
        forms.append(text)
        return whole(text, **how)  # type: ignore[arg-type]

    whole = parameters.parse_qsl
    monkeypatch.setattr(parameters, "parse_qsl", noted)
    body = urlencode({"serviceName": "web", "ip": "10.0.0.9", "port": 80}).encode()
    async with Web() as web:
        await web.ask("POST", run.cluster.nodes[0], "/v1/ns/instance", headers=FORM, body=body)
    assert len(forms) == 1
