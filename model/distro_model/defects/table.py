"""The rows: every known defect, by its name in docs/reference/mutants.md and docs/protocol."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from distro_model.defects.defect import Break, Defect
from distro_model.release import Span
from distro_model.rules import load, receive, sync, verify

_ISSUE = "https://github.com/alibaba/nacos/issues"
_CODE = "https://github.com/alibaba/nacos/blob"
_IN_NAMING = "naming/src/main/java/com/alibaba/nacos/naming"
_NAMING = f"{_CODE}/2.2.4/{_IN_NAMING}"
_PROCESSOR = f"{_NAMING}/consistency/ephemeral/distro/v2/DistroClientDataProcessor.java"
_CLIENTS = f"{_NAMING}/core/v2/client/manager/impl/ConnectionBasedClientManager.java"
_CORE = "core/src/main/java/com/alibaba/nacos/core/remote"

_LEFT = (("nodes", 3), ("leaves", 1))

_ROWS = (
    Defect(
        id="B01",
        sentence="A snapshot or a CHANGE is applied to any client with that id, also to one that is connected here",
        link=f"{_ISSUE}/15857",
        breaks=(
            Break("INV-NATIVE", "a stale snapshot overwrites a client that is connected here"),
            Break("INV-CLIENTACK", "a stale snapshot reverts content that was acknowledged to the client"),
            Break("INV-REV", "a stale snapshot overwrites a client that is connected here", Span(until="2.1.1")),
        ),
        repair=(receive.is_not_native_here,),
    ),
    Defect(
        id="B02",
        sentence="Verify tests only that the client exists: a copy with other content is confirmed and kept",
        releases=Span(until="2.1.1"),
        link=f"{_ISSUE}/9210",
        breaks=(
            Break("INV-CONV", "verify tests existence only, so a lost CHANGE stays lost"),
            Break("EVENTUALLY-CONV", "and for good"),
            Break("INV-VERIFY", "verify confirms a copy with any content"),
        ),
        repair=(verify.revision_matches,),
        parameters={"revisions_travel": True},
    ),
    Defect(
        id="B03",
        sentence="No connection is probed: one that died silently is kept",
        releases=Span("2.2.0", "2.2.4"),
        link=f"{_ISSUE}/10509",
    ),
    Defect(
        id="B05",
        sentence="A CHANGE is made and applied in parts: events in between leave content and revision inconsistent",
        link=f"{_ISSUE}/10056",
    ),
    Defect(
        id="B06",
        sentence="A beat or its absence changes a client of the HTTP API without changing its revision",
        releases=Span(since="2.1.2"),
        link=f"{_NAMING}/healthcheck/heartbeat/UnhealthyInstanceChecker.java",
    ),
    Defect(
        id="B07",
        sentence="A client that a member sends is created as native: it is sent on and verified, and never expires",
        releases=None,
        link="https://github.com/alibaba/nacos/commit/f56dedc7fe",
    ),
    Defect(
        id="B08",
        sentence="Each class of local events has its own queue: a CHANGE may replace the DELETE of its client",
        releases=Span(until="2.0.1"),
        link=f"{_ISSUE}/5918",
    ),
    Defect(
        id="B10",
        sentence="A plain CHANGE sets the revision of a copy only when it creates the copy",
        releases=Span("2.1.2", "2.2.4"),
        link=f"{_ISSUE}/10056",
        breaks=(
            Break("INV-CONV", "a late snapshot changes the content of a copy, not its revision"),
            Break("EVENTUALLY-CONV", "and for good"),
            Break("INV-VERIFY", "such a copy passes every verify"),
            Break("INV-REV", "a plain CHANGE sets a copy's revision only when it creates it"),
            Break("EVENTUALLY-QUIET", "every verify of a changed client fails, and syncs again"),
        ),
        repair=(receive.taken_revision,),
    ),
    Defect(
        id="B11",
        sentence="A snapshot is one message, and an answer of a member may have 10 MiB: larger ones never load",
        link=f"{_ISSUE}/13390",
    ),
    Defect(
        id="B12",
        sentence="A registration on a connection without a client is acknowledged and dropped",
        releases=Span("2.0.3", "2.3.1"),
        link=f"{_ISSUE}/11895",
    ),
    Defect(
        id="B13",
        sentence="Registrations and removed clients reach the index through two queues: it keeps a client that is gone",
        releases=Span(until="2.2.4"),
        link=f"{_ISSUE}/10556",
    ),
    Defect(
        id="B15",
        sentence="The owner is computed from the members that are not DOWN; with different views it may be no member",
        link=f"{_NAMING}/core/DistroMapper.java",
    ),
    Defect(
        id="B16",
        sentence="An exception while a sync is handled is answered with resultCode 200, and only errorCode shows it",
        releases=Span(until="2.5.0"),
        link=f"{_ISSUE}/12991",
    ),
    Defect(
        id="B16-unhandled",
        sentence="A sync of a type or an operation that the node does not know is acknowledged",
        link=f"{_NAMING}/remote/rpc/handler/DistroDataRequestHandler.java",
    ),
    Defect(
        id="B17",
        sentence="Only a VERIFY that succeeds renews a lease: the copy of a client that changes before each expires",
        link=f"{_ISSUE}/12299",
    ),
    Defect(
        id="B18",
        sentence="A batch does not change the revision of its client, so that a copy without it passes every verify",
        releases=Span("2.1.2", "2.2.4"),
        link=f"{_ISSUE}/11192",
    ),
    Defect(
        id="B19",
        sentence="A batch over a single instance raises, is acknowledged and not applied",
        releases=Span("2.1.1", "2.3.0"),
        link=f"{_ISSUE}/11701",
    ),
    Defect(
        id="B22",
        sentence="A change is sent by the owner at the time of its event, and nothing is sent when the owner changes",
        link=_PROCESSOR,
    ),
    Defect(
        id="B23",
        sentence="A node that was suspended for longer than a lease ends all copies before their owners can renew them",
        link=f"{_ISSUE}/8090",
    ),
    Defect(
        id="B24",
        sentence="The retry of a CHANGE that fails after the client left replaces the queued DELETE, and sends nothing",
        link=f"{_ISSUE}/10809",
        breaks=(
            Break("INV-DELETE", "the retry of a CHANGE replaces the queued DELETE"),
            Break("EVENTUALLY-DELETE", "and the copy remains until its lease ends"),
        ),
        repair=(sync.of_gone_client, sync.replaces_pending),
    ),
    Defect(
        id="B25",
        sentence="A request changes and announces the client that it looked up, even if that was removed since",
        link=f"{_NAMING}/remote/rpc/handler/InstanceRequestHandler.java",
    ),
    Defect(
        id="B26",
        sentence="A CHANGE that arrives after the DELETE of its client restores it",
        link=_PROCESSOR,
    ),
    Defect(
        id="B27",
        sentence="A snapshot that was made before a DELETE and arrives after it restores the client",
        link=_PROCESSOR,
        breaks=(
            Break("INV-DELETE", "a snapshot that was requested before the DELETE restores the client"),
            Break("EVENTUALLY-DELETE", "and the copy remains until its lease ends"),
        ),
        repair=(receive.is_remembered,),
    ),
    Defect(
        id="B30",
        sentence="Two first requests of a client of the HTTP API create it twice; the beat check watches the lost one",
        releases=Span(until="2.0.2"),
        link=f"{_ISSUE}/6116",
    ),
    Defect(
        id="B31",
        sentence="The lease is 30 s: a short outage removes the copies of clients that are connected",
        releases=Span(until="2.0.2"),
        link=f"{_ISSUE}/6403",
    ),
    Defect(
        id="B32",
        sentence="The first load always fails, since no member is known yet",
        releases=Span(until="2.2.0"),
        link=f"{_ISSUE}/9837",
        breaks=(
            Break("INV-LOAD", "no peer is known when the first load begins, so it fails and waits for its retry"),
            Break(
                "INV-SOURCE",
                "the late load restores a client that has left, and its task sends the copy",
            ),
        ),
        repair=(load.knows_a_peer,),
    ),
    Defect(
        id="B33",
        sentence="A node that is not loaded itself gives a snapshot",
        link=f"{_ISSUE}/12160",
    ),
    Defect(
        id="B35",
        sentence="A node's own requests count as activity of their target: a connection that broke is never replaced",
        releases=Span(until="2.0.0"),
        link=f"{_ISSUE}/5265",
    ),
    Defect(
        id="B37",
        sentence="Tasks for a node that has left go on: until 2.0.1 all, later if its address is a part of a member's",
        link=f"{_ISSUE}/14951",
        breaks=(
            Break("INV-RETRY", "a part of a member's address counts as a member", least=_LEFT),
            Break("EVENTUALLY-QUIET", "and the task is queued again for ever", Span(since="2.1.1"), least=_LEFT),
        ),
        repair=(sync.has_member, sync.is_executed_for),
    ),
    Defect(
        id="B39",
        sentence="A connection that answers a detection is ejected nevertheless",
        link=f"{_CODE}/2.3.2/{_CORE}/NacosRuntimeConnectionEjector.java",
    ),
    Defect(
        id="B40",
        sentence="A transport that ends between the check and the insertion of its connection leaves a client for ever",
        link=f"{_CODE}/2.2.4/{_CORE}/ConnectionManager.java",
    ),
    Defect(
        id="B41",
        sentence="A DELETE removes any client with that id, also one that is connected here",
        link=_PROCESSOR,
    ),
    Defect(
        id="B42",
        sentence="A sync whose answer cannot be read, or is of an unknown type, is neither finished nor retried",
        link=f"{_CODE}/2.2.4/common/src/main/java/com/alibaba/nacos/common/remote/client/grpc/GrpcConnection.java",
    ),
    Defect(
        id="B44",
        sentence="A push is made before the index has the entry that caused it",
        releases=Span(since="3.0.0"),
        link=f"{_CODE}/3.0.3/{_IN_NAMING}/core/v2/index/ClientServiceIndexesManager.java",
    ),
    Defect(
        id="D4",
        sentence="A change of nothing but the cluster of an instance is not applied",
        link="https://github.com/alibaba/nacos/pull/14754",
    ),
    Defect(
        id="D7",
        sentence="A request by version 2 of the HTTP API stays at the receiving node, even if another node owns it",
        releases=Span(since="2.2.0"),
        link=f"{_ISSUE}/14992",
    ),
    Defect(
        id="push-of-every-cluster",
        sentence="A subscriber of one cluster is pushed the instances of all",
        releases=Span(until="2.1.1"),
        link="https://github.com/alibaba/nacos/pull/9019",
    ),
    Defect(
        id="subscription-shows-disabled",
        sentence="The answer to a subscription shows disabled instances",
        releases=Span(until="2.1.0"),
        link="https://github.com/alibaba/nacos/pull/8629",
    ),
    Defect(
        id="services-change-places",
        sentence="The order of a list of services depends on how many the namespace has: pages repeat and skip some",
        link=f"{_ISSUE}/11080",
    ),
    Defect(
        id="native-connect-onto-synced",
        sentence="A connection whose id is held as a copy creates no native client: it is neither synced nor verified",
        link=_CLIENTS,
    ),
    Defect(
        id="revision-zero-wildcard",
        sentence="A VERIFY of revision 0 matches any copy",
        releases=Span(since="2.1.2"),
        link=_CLIENTS,
    ),
)

DEFECTS: Mapping[str, Defect] = MappingProxyType({row.id: row for row in _ROWS})


def link_of(bug: str | None) -> str | None:
    """Where the defect was reported, or can be read; None where it is not in the table."""
    row = None if bug is None else DEFECTS.get(bug)
    return None if row is None else row.link
