"""Every check is seen to fail: a node is broken on purpose, and exactly the requirement that it breaks is violated.

The node is a real one; what is broken is a switch of its profile (a mutant of the catalogue where there is one) or a
message on its way out. Checks that presuppose what is broken may be inconclusive; none may blame the node for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from distro_conformance.node.run import run_requirements
from distro_conformance.requirements import all_requirements
from distro_conformance.targets.embedded import EmbeddedTarget
from distro_conformance.wire.messages import (
    DISTRO_RESPONSE,
    RESOURCE_TYPE,
    DistroCall,
    content_of,
    pack,
    read_request,
)
from distro_impl.distro.data_processor import DistroClientDataProcessor
from distro_impl.distro.distro_handler import DistroDataRequestHandler
from distro_impl.distro.mapper import DistroMapper
from distro_impl.mutants import with_mutant
from distro_impl.naming import ip_port_client
from distro_impl.naming.beats import Beats
from distro_impl.naming.client import SyncData
from distro_impl.profiles import PROFILES, RevisionTakenOver
from distro_impl.remote.connection_manager import ConnectionManager
from distro_impl.remote.handlers import Reply, Request
from distro_impl.remote.payloads import DistroDataFields
from distro_impl.transport.transport import Forward, PeerLink
from distro_protos import Payload, decode, encode

pytestmark = [pytest.mark.wire, pytest.mark.quality]

STRICT = PROFILES["strict"]
ACKNOWLEDGED = encode(DISTRO_RESPONSE, {"resultCode": 200, "errorCode": 0, "success": True})


class Meddler(PeerLink):
    """Stands on the node's link to its peer: `meddle` gives a reply in the peer's place, another request, or None."""

    def __init__(self, meddle: Callable[[DistroCall, Payload], Payload | None]) -> None:
        self._meddle = meddle

    async def carry(self, request: Payload, forward: Forward) -> Payload:
        call = read_request(decode(request))
        meddled = None if call is None else self._meddle(call, request)
        if meddled is not None and meddled.metadata.type == DISTRO_RESPONSE:
            return meddled
        return await forward(meddled or request)


def never_sent(operation: str) -> Callable[[DistroCall, Payload], Payload | None]:
    """The node believes that it was acknowledged."""
    return lambda call, _: ACKNOWLEDGED if call.operation == operation else None


def without_content(call: DistroCall, request: Payload) -> Payload | None:
    """A CHANGE that tells of a client with nothing published."""
    if call.operation != "CHANGE":
        return None
    message = decode(request)
    data = message.body["distroData"]
    empty = {"namespaces": [], "groupNames": [], "serviceNames": [], "instancePublishInfos": []}
    data["content"] = pack({**(content_of(data) or {}), **empty})
    return encode(message.type, message.body, headers=message.headers)


def without_half_of_a_batch(call: DistroCall, request: Payload) -> Payload | None:
    """A CHANGE that tells of the first instance of a batch only."""
    message = decode(request)
    data = message.body.get("distroData") or {}
    content = content_of(data) or {}
    shells = (content.get("batchInstanceData") or {}).get("batchInstancePublishInfos")
    if call.operation != "CHANGE" or not shells:
        return None
    for shell in shells:
        del shell["instancePublishInfos"][1:]
    data["content"] = pack(content)
    return encode(message.type, message.body, headers=message.headers)


def resync_never_sent() -> Callable[[DistroCall, Payload], Payload | None]:
    """The second CHANGE with the same revision is the answer to a failed VERIFY."""
    sent: set[tuple[str, str | None, int | None]] = set()

    def meddle(call: DistroCall, request: Payload) -> Payload | None:
        if call.operation != "CHANGE":
            return None
        target = decode(request).body["distroData"]["distroKey"]["targetServer"]
        key = (target, call.client, call.revision)
        return ACKNOWLEDGED if key in sent else sent.add(key)

    return meddle


def broken_wire(meddle: Callable[[DistroCall, Payload], Payload | None]) -> EmbeddedTarget:
    return EmbeddedTarget(STRICT, links=lambda _: Meddler(meddle))


def broken_verify(monkeypatch: pytest.MonkeyPatch) -> None:
    """A verify makes an unknown client known (`m-query-creates`)."""
    whole = DistroClientDataProcessor.process_verify

    def verify(self: DistroClientDataProcessor, client_id: str, revision: int) -> bool:
        verified = whole(self, client_id, revision)
        if self.data_of(client_id) is None:
            self._clients.apply(SyncData(client_id, revision, {}), revision=revision, reason="VERIFY")
        return verified

    monkeypatch.setattr(DistroClientDataProcessor, "process_verify", verify)


def deaf_ejector(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who answers a detection is ejected all the same (B39 at its worst)."""

    async def detect(*_: object) -> bool:
        return False

    monkeypatch.setattr(ConnectionManager, "detect", detect)


def other_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ip_port_client, "EPHEMERAL", "#ephemeral")


def patient_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Beats, "check", lambda *_: None)


def greedy_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DistroMapper, "responsible", lambda *_: True)


def unprotected(process: str) -> Callable[[pytest.MonkeyPatch], None]:
    """This one kind of request reaches native clients too."""
    whole = getattr(DistroClientDataProcessor, process)

    def processed(self: DistroClientDataProcessor, *arguments: Any) -> bool:
        kept, self._profile = self._profile, replace(self._profile, native_untouched_by_peers=False)
        try:
            return bool(whole(self, *arguments))
        finally:
            self._profile = kept

    return lambda monkeypatch: monkeypatch.setattr(DistroClientDataProcessor, process, processed)


def acknowledged(is_meant: Callable[[DistroDataFields], bool]) -> Callable[[pytest.MonkeyPatch], None]:
    """A request whose data is meant cannot be handled, and that shows in `errorCode` only."""
    whole = DistroDataRequestHandler.handle

    def handle(self: DistroDataRequestHandler, request: Request) -> Reply:
        type_name, body = whole(self, request)
        data = request.body.distro_data
        is_acknowledged = data is not None and is_meant(data)
        return type_name, {**body, "resultCode": 200} if is_acknowledged else body

    return lambda monkeypatch: monkeypatch.setattr(DistroDataRequestHandler, "handle", handle)


BROKEN: dict[str, tuple[str, Callable[[], EmbeddedTarget]]] = {
    "a CHANGE is never sent": ("DISTRO-IPPORT-001 DISTRO-SYNC-001", lambda: broken_wire(never_sent("CHANGE"))),
    "a CHANGE holds nothing": ("DISTRO-SYNC-001", lambda: broken_wire(without_content)),
    "a CHANGE comes late": ("DISTRO-SYNC-001", lambda: EmbeddedTarget(replace(STRICT, sync_delay_ms=1200))),
    "a DELETE is never sent": ("DISTRO-SYNC-002", lambda: broken_wire(never_sent("DELETE"))),
    "a VERIFY is never sent": ("DISTRO-VERIFY-001", lambda: broken_wire(never_sent("VERIFY"))),
    "a VERIFY comes late": ("DISTRO-VERIFY-001", lambda: EmbeddedTarget(replace(STRICT, verify_interval_ms=20_000))),
    "a VERIFY has no revision": ("DISTRO-VERIFY-001", lambda: EmbeddedTarget(replace(STRICT, revision_sent=False))),
    "a failed VERIFY is ignored": ("DISTRO-VERIFY-002", lambda: broken_wire(resync_never_sent())),
    "B10": (
        "DISTRO-REVISION-001",
        lambda: EmbeddedTarget(replace(STRICT, revision_taken_over=RevisionTakenOver.ON_CREATION)),
    ),
    "B02": ("DISTRO-HOLDER-001", lambda: EmbeddedTarget(with_mutant(STRICT, "B02"))),
    "B07": ("DISTRO-OWNER-001", lambda: EmbeddedTarget(with_mutant(STRICT, "B07"))),
    "half of a batch is told": ("DISTRO-BATCH-001", lambda: broken_wire(without_half_of_a_batch)),
    "B18": ("DISTRO-BATCH-002", lambda: EmbeddedTarget(with_mutant(STRICT, "B18"))),
    "B19": ("DISTRO-BATCH-003", lambda: EmbeddedTarget(with_mutant(STRICT, "B19"))),
    "B03": ("DISTRO-CONNECTION-001", lambda: EmbeddedTarget(with_mutant(STRICT, "B03"))),
    "B26": ("DISTRO-HOLDER-003", lambda: EmbeddedTarget(replace(STRICT, deleted_stays_deleted=False))),
}

BROKEN_HANDLERS: dict[str, tuple[str, Callable[[pytest.MonkeyPatch], None]]] = {
    "a VERIFY makes a client known": ("DISTRO-HOLDER-002", broken_verify),
    "an ip:port client has another name": ("DISTRO-IPPORT-001", other_name),
    "beats are never missed": ("DISTRO-IPPORT-002", patient_node),
    "everybody owns every ip:port client": ("DISTRO-IPPORT-003", greedy_node),
    "B39": ("DISTRO-CONNECTION-002", deaf_ejector),
    "B01": ("DISTRO-NATIVE-001", unprotected("process_change")),
    "B41": ("DISTRO-NATIVE-002", unprotected("process_delete")),
    "what cannot be decoded is acknowledged": (
        "DISTRO-REFUSAL-001",
        acknowledged(lambda data: data.content == b"{"),
    ),
    "an unknown type is acknowledged": (
        "DISTRO-REFUSAL-002",
        acknowledged(lambda data: data.distro_key is not None and data.distro_key.resource_type != RESOURCE_TYPE),
    ),
    "an unknown operation is acknowledged": (
        "DISTRO-REFUSAL-003",
        acknowledged(lambda data: data.type == "QUERY"),
    ),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_node_violates_exactly_what_it_breaks(broken: str) -> None:
    expected, target = BROKEN[broken]

    assert violated_by(target()) == expected.split()


@pytest.mark.parametrize("broken", BROKEN_HANDLERS)
def test_so_does_a_node_with_a_broken_handler(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, break_it = BROKEN_HANDLERS[broken]
    break_it(monkeypatch)

    assert violated_by(EmbeddedTarget(STRICT)) == [expected]


def test_every_requirement_has_been_seen_to_fail() -> None:
    seen = {name for expected, _ in (*BROKEN.values(), *BROKEN_HANDLERS.values()) for name in expected.split()}
    assert {requirement.id for requirement in all_requirements()} == seen


def violated_by(target: EmbeddedTarget) -> list[str]:
    return [finding.about for finding in asyncio.run(run_requirements(target)) if finding.violates]
