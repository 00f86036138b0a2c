"""What may differ between releases: one record of switches and timings.

A field says what the node does, so the code that reads it is a rule. The value for each release stands in
releases.py; this is the node's own table and shares nothing with the model's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol


class UnknownProfileError(ValueError):
    """No profile of that name; the message lists the known ones."""


class Alteration(Protocol):
    """A change of the code of every node in this process, for as long as one node with it runs."""

    @property
    def id(self) -> str: ...

    def switch_on(self) -> None:
        """For one more node."""

    def switch_off(self) -> None:
        """One of its nodes has ended."""


class RevisionTakenOver(StrEnum):
    """When a synced copy takes the revision of the message that it applies (docs/protocol #receive-revision)."""

    NEVER = "never"  # up to 2.1.1: messages carry none
    ON_CREATION = "on creation"  # 2.1.2 - 2.2.4: later only a CHANGE with batches sets it (D1, B10)
    ALWAYS = "always"  # from 2.3.0 on


class MissingClient(StrEnum):
    """What becomes of a naming request on a connection that has no naming client (docs/protocol #naming-requests)."""

    EXCEPTION = "exception"  # up to 2.0.2: 500
    IGNORED = "ignored"  # 2.0.3 - 2.3.1: a success that changes nothing
    REFUSED = "refused"  # from 2.3.2 on: -401


class InnerAuth(StrEnum):
    """When who asks as a member must prove to be one (docs/protocol #member-auth)."""

    NEVER = "never"
    ALL_MEMBERS_3X = "once all members are 3.x"
    ALWAYS = "always"


class ReportTransport(StrEnum):
    """How a node reports itself to a member (docs/protocol #member-report)."""

    HTTP = "HTTP"  # up to 2.2.0
    GRPC_BY_ABILITY = "gRPC by ability"  # 2.2.1 - 2.2.4: where the abilities of the member do not say otherwise
    GRPC_UNLESS_BOTH_REFUSE = "gRPC unless both refuse"  # from 2.3.0 on: its abilities, or its own flag

    def is_grpc_for(self, *, ability: bool, member: bool) -> bool:
        if self is ReportTransport.HTTP:
            return False
        return ability or (self is ReportTransport.GRPC_UNLESS_BOTH_REFUSE and member)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """How a node behaves. `dataclasses.replace` shortens a timing; the name then stays that of the origin."""

    name: str
    version: str
    """Reported to the other members in `extendInfo`."""

    # Timings (docs/protocol #settings-keys).
    sync_delay_ms: int
    sync_retry_delay_ms: int
    sync_timeout_ms: int = 3_000
    verify_interval_ms: int = 5_000
    verify_timeout_ms: int = 3_000
    load_retry_delay_ms: int
    load_timeout_ms: int = 30_000
    client_expired_ms: int = 180_000
    client_clean_period_ms: int = 5_000
    push_delay_ms: int = 500
    push_timeout_ms: int = 5_000
    push_retry_delay_ms: int = 1_000
    empty_service_clean_first_ms: int = 30_000
    empty_service_clean_period_ms: int = 60_000
    empty_service_expired_ms: int = 60_000
    report_first_ms: int = 5_000
    report_period_ms: int = 2_000
    report_timeout_ms: int = 3_000
    forward_timeout_ms: int = 2_000
    report_not_up_period_ms: int = 5_000
    member_fail_access_count: int = 3

    # Verify and revision.
    revision_sent: bool = True
    """In ClientSyncData and in VERIFY; otherwise VERIFY carries 0."""
    verify_tests_revision: bool = True
    zero_is_a_revision: bool = False
    """A VERIFY with revision 0 is compared like any other; in releases that compare it passes (D11)."""
    revision_taken_over: RevisionTakenOver = RevisionTakenOver.ALWAYS
    revision_follows_beats: bool = False
    """The revision of an ip:port client is computed again when an instance becomes healthy or unhealthy or is removed
    for want of beats; in releases only when it is registered or deregistered (D12, B06)."""
    revision_sums_services: bool = True
    """It is a sum over the services of the client: two that swap their metadata or their health leave it as it was."""

    # Receiving.
    native_untouched_by_peers: bool = False
    """CHANGE, DELETE and SNAPSHOT of a peer leave a native client alone (B01, B41)."""
    deleted_stays_deleted: bool = False
    """For one lease after a DELETE or a disconnect nothing that a peer says brings that client back (B26, B27).
    Not so an ip:port client, whose id may come back."""
    snapshot_needs_load: bool = False
    """SNAPSHOT is refused until this node's own load is complete; refusals by all members that are not DOWN complete it
    (B33)."""
    reply_bytes_max: int | None = 10 * 1024 * 1024
    """How long an answer of a member may be. A snapshot is one, so in releases no node loads from a member that holds
    more, or ever verifies then (B11)."""
    load_outlives_exception: bool = False
    """A load that an exception ended is tried again later. In every release it is over for good, and the node never
    verifies (`load-exception-no-retry`)."""
    renews_after_pause: bool = False
    """A cleaner that missed a turn was suspended; it removes nothing and lets every lease begin again (B23)."""
    sync_renews_lease: bool = False
    """An applied CHANGE or snapshot element counts as a sign of life (B17)."""
    batch_replaces_single: bool = True
    """A batch may follow a single instance of the same client in a service; up to 2.3.0 peers break at it (D8)."""
    equality_sees_cluster: bool = False
    """An instance that only changed its cluster is a changed instance (D4)."""
    exception_visible: bool = False
    """An exception in the handler is answered with resultCode 500, and the sender sees it (D5)."""
    unhandled_visible: bool = False
    """So is a request that nothing here handles (D6)."""
    distro_on_sdk_port: bool = True

    # ip:port clients.
    expire_instance: bool = True
    """An instance without beats is removed after a while, not only unhealthy."""
    ip_port_lease: bool = True
    """An ip:port client that was not renewed for a lease is removed, on every node (from 2.0.3 on)."""
    owner_by_configured_place: bool = False
    """The owner is the member at the hash's place in the whole list, or the next one that is not DOWN; in releases the
    place is one among the healthy members. While lists differ a client then has two owners at worst, never none (B15).
    """
    owner_judges_by_beats: bool = False
    """A VERIFY of an ip:port client that this node owns does not renew it when its sender stands behind this node in
    the client's ring. In releases two members that both take themselves for the owner keep a dead instance for each
    other for ever."""
    owner_hands_over: bool = False
    """The node that accepts a change of an ip:port client sends it to every member, also when another node owns it by
    then, and to each that joins; from a member that has not acknowledged it, it refuses what the change has replaced.
    In releases the change may be overwritten or not be sent at all (B22)."""
    sender_is_named: bool = False
    """Requests to members carry the address of their sender in a header. No release sends it, and none reads it."""

    # Members.
    member_starts_down: bool = False
    """A member freshly read from the list is DOWN until a report says otherwise (2.0.0 only)."""
    newcomer_starts_down: bool = False
    """A member that appears in the list of a running node is DOWN until it has reported. In releases from 2.0.1 on it
    is UP, also when no server listens there (B36)."""
    member_found_by_substring: bool = True
    """An address that left the list still counts as a member while it is part of another one's text; what waits for it
    is then tried again for ever (D13)."""

    report_transport: ReportTransport = ReportTransport.GRPC_UNLESS_BOTH_REFUSE
    http_report_answers_member: bool = True
    """A report over HTTP is answered with our own member; up to 2.1.2 with "true"."""
    connects_to_reported_only: bool = False
    """There is no cluster client for a member before it has reported itself: a node that starts finds its peers closed,
    and its first load fails (B32, up to 2.2.0)."""
    waits_for_upgraded_members: bool = False
    """Naming over gRPC is refused until every member has shown a version of 2 or above (2.0.x)."""
    member_shows_grpc_report: bool = True
    """Member objects have a field `grpcReportEnabled` besides the ability of that name (from 2.3.0 on)."""
    gray_model_sent: bool = False
    """`extendInfo` says `supportGrayModel` (from 2.5.0 on)."""
    reports_to_members_not_up: bool = True
    """Besides the report in turn there is one every five seconds to each member that is not UP."""

    # Sending.
    sends_only_to_up_members: bool = True
    missing_client_is_deleted: bool = False
    """A CHANGE task whose client is gone sends DELETE instead of nothing (B24, B25)."""
    pending_delete_survives_retry: bool = False
    """The retry of a CHANGE does not replace a pending DELETE (D2, B24)."""

    # Connections (1.4, 2.2 to 2.4).
    connection_idle_ms: int = 20_000
    detection_timeout_ms: int | None = 5_000
    """How long an idle connection has to answer a ClientDetectionRequest. None: there is no detection (B03)."""
    push_blocked_ms: int | None = 300_000
    """A connection that refused every push for longer is ejected. None: it stays."""
    refusal_is_sent: bool = False
    """A client that connects while the node starts gets a ConnectResetRequest before it is closed (up to 2.2.4)."""
    exception_code_in_result: bool = True
    """The code of an exception in a handler stands in resultCode too (from 2.3.2 on); otherwise that is 500."""

    # Security (1.3, 4.2, 4.4).
    cluster_client_says_tls: bool = False
    """Connections to members carry the label `tls.enable`."""
    identity_sent: bool = False
    """Requests to members carry the identity of the cluster."""
    inner_auth: InnerAuth = InnerAuth.NEVER
    http_cluster_needs_auth: bool = False
    """Where authentication is on, `/v1/core/cluster` is for administrators: the list of members, and reports too, which
    then need the identity (from 2.3.0 on)."""

    # Naming (2.2, 3.2).
    ability_negotiation: bool = False
    connection_replaces_copy: bool = False
    """A connection whose id a synced copy has gets a client of its own, and its requests change no copy. In every
    release a client is created only where there is none, and the connection goes without
    (`native-connect-onto-synced`)."""
    missing_client: MissingClient = MissingClient.IGNORED
    batch_registration: bool = True
    """BatchInstanceRequest has a handler, and batches are replicated."""
    batch_bumps_revision: bool = True
    """2.1.2 - 2.2.4 forget it (D18)."""
    persistent_over_grpc: bool = True
    """PersistentInstanceRequest has a handler. It refuses: this node has no Raft to keep such instances in."""
    instances_checked: bool = True
    """An instance with an impossible cluster name or impossible heart-beat times is refused."""
    parameters_checked: bool = True
    """A naming request whose parameters are too long or hold strange characters is refused before its handler."""
    queries_read_pushed_view: bool = True
    """A query shows what the last push saw: the first change of a service at once, later ones after the push delay
    (docs/real-servers.md#a-played-member)."""
    push_of_subscribed_cluster: bool = True
    """Over gRPC; releases up to 2.1.1 push the instances of all clusters to who subscribed to one."""
    subscription_hides_disabled: bool = True
    """Releases up to 2.1.0 show disabled instances in the answer to a subscription, and only there."""
    instance_id_generated: bool = False
    instance_response_has_type: bool = True

    # The HTTP API (7, 9.2).
    data_warmup: bool = False
    """Until the initial load is complete `/v1/ns` answers 503 (nacos.naming.data.warmup)."""
    http_v1_distro: bool = True
    """A member may ask for the data of 1.x, of which there are none."""
    address_from_ip_and_port: bool = False
    """A member that reports itself without an address is taken for the one at its ip and port; before 3.0.0 its report
    is refused."""
    http_v2_api: bool = False
    """`/v2` is served."""
    http_v3_api: bool = False
    """`/v3/client` is served, and administration over `/v1` and `/v2` is answered 410."""
    every_write_forwarded: bool = False
    """The DistroFilter also stands before `/v2` and `/v3`; in every release what is written there at the wrong node
    stays at that node (D7)."""
    publishers_show_cluster: bool = False
    """`/v2/ns/client/service/publisher/list` names the cluster of each (from 2.3.0 on)."""
    client_queries_repaired: bool = False
    """`/v2/ns/client` shows copies too, and its queries take an address that is not given as any (D20)."""

    mutant: Alteration | None = None
    """A change of the code that a switch cannot make; the kit has them (`distro_conformance.node_mutants`)."""

    def with_known_members(self) -> Profile:
        """As if the members had reported themselves before the run, and over gRPC.

        For harnesses that begin with members that know each other, or that play members without HTTP.
        """
        over_http = self.report_transport is ReportTransport.HTTP
        transport = ReportTransport.GRPC_BY_ABILITY if over_http else self.report_transport
        return replace(
            self, connects_to_reported_only=False, waits_for_upgraded_members=False, report_transport=transport
        )
