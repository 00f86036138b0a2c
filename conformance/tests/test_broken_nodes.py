"""Every check is seen to fail: a node is broken on purpose, and exactly the requirement that it breaks is violated.

The node is a real one; what is broken is a switch of its profile (a mutant of the catalogue where there is one) or a
message on its way out. Checks that presuppose what is broken may be inconclusive; none may blame the node for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import grpc.aio
import pytest

from distro_conformance.node.run import run_requirements
from distro_conformance.requirements import all_requirements
from distro_conformance.targets.embedded import EmbeddedTarget
from distro_conformance.verdict import Verdict
from distro_conformance.wire.messages import DISTRO_RESPONSE, DistroCall, content_of, pack, read_request
from distro_impl.mutants import with_mutant
from distro_impl.profiles import PROFILES, RevisionTakenOver
from distro_protos import Payload, decode, encode

pytestmark = [pytest.mark.wire, pytest.mark.quality]

STRICT = PROFILES["strict"]
ACKNOWLEDGED = encode(DISTRO_RESPONSE, {"resultCode": 200, "errorCode": 0, "success": True})


class Meddler(grpc.aio.UnaryUnaryClientInterceptor):
    """Stands on the node's outgoing channel: `meddle` gives a reply in the peer's place, another request, or None."""

    def __init__(self, meddle: Callable[[DistroCall, Payload], Payload | None]) -> None:
        self._meddle = meddle

    async def intercept_unary_unary(
        self, continuation: Any, client_call_details: grpc.aio.ClientCallDetails, request: Any
    ) -> Any:
        call = read_request(decode(request))
        meddled = None if call is None else self._meddle(call, request)
        if meddled is None:
            return await continuation(client_call_details, request)
        if meddled.metadata.type == DISTRO_RESPONSE:
            return meddled
        return await continuation(client_call_details, meddled)


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


def resync_never_sent() -> Callable[[DistroCall, Payload], Payload | None]:
    """The second CHANGE with the same revision is the answer to a failed VERIFY."""
    sent: set[tuple[str | None, int | None]] = set()

    def meddle(call: DistroCall, _: Payload) -> Payload | None:
        if call.operation != "CHANGE":
            return None
        key = (call.client, call.revision)
        return ACKNOWLEDGED if key in sent else sent.add(key)

    return meddle


def broken_wire(meddle: Callable[[DistroCall, Payload], Payload | None]) -> EmbeddedTarget:
    def interceptors(_: str) -> Sequence[grpc.aio.ClientInterceptor]:
        return [Meddler(meddle)]

    return EmbeddedTarget(STRICT, interceptors=interceptors)


BROKEN: dict[str, tuple[str, Callable[[], EmbeddedTarget]]] = {
    "a CHANGE is never sent": ("DISTRO-SYNC-001", lambda: broken_wire(never_sent("CHANGE"))),
    "a CHANGE holds nothing": ("DISTRO-SYNC-001", lambda: broken_wire(without_content)),
    "a CHANGE comes late": ("DISTRO-SYNC-001", lambda: EmbeddedTarget(replace(STRICT, sync_delay_ms=1200))),
    "a DELETE is never sent": ("DISTRO-SYNC-002", lambda: broken_wire(never_sent("DELETE"))),
    "a VERIFY is never sent": ("DISTRO-VERIFY-001", lambda: broken_wire(never_sent("VERIFY"))),
    "a VERIFY comes late": ("DISTRO-VERIFY-001", lambda: EmbeddedTarget(replace(STRICT, verify_interval_ms=10_000))),
    "a VERIFY has no revision": ("DISTRO-VERIFY-001", lambda: EmbeddedTarget(replace(STRICT, revision_sent=False))),
    "a failed VERIFY is ignored": ("DISTRO-VERIFY-002", lambda: broken_wire(resync_never_sent())),
    "B10": (
        "DISTRO-REVISION-001",
        lambda: EmbeddedTarget(replace(STRICT, revision_taken_over=RevisionTakenOver.ON_CREATION)),
    ),
    # Where natives are shielded from peers, B07 would also freeze the revision of what it takes for a native.
    "B07": (
        "DISTRO-OWNER-001",
        lambda: EmbeddedTarget(with_mutant(replace(STRICT, native_untouched_by_peers=False), "B07")),
    ),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_node_violates_exactly_the_requirement_that_it_breaks(broken: str) -> None:
    expected, target = BROKEN[broken]

    results = asyncio.run(run_requirements(target()))

    violated = {result.requirement.id: result.message for result in results if result.verdict is Verdict.VIOLATES}
    assert list(violated) == [expected], violated


def test_every_requirement_has_been_seen_to_fail() -> None:
    assert {requirement.id for requirement in all_requirements()} == {expected for expected, _ in BROKEN.values()}
