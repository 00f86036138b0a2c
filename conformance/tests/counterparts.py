"""The repairs of `strict` in the model and in the reference node: each rule and parameter of a release, with its place.

The two read one protocol and name things apart, so nothing but these tables says which switch is which. What has no
counterpart on the other side has the reason here; tests hold all of it against the profiles of both.

What has one is also seen: a scenario of that name in `seen/`, on which nodes and model agree, and part when that one
switch of the nodes is as in a release. Where they cannot part there is the reason here, and what sees it instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distro_impl import PROFILES
from distro_impl.profiles import ReportTransport

SWITCHES: Mapping[str, str] = {
    "accept-a-request": "sender_is_named",
    "announce-an-upgrade": "owner_hands_over",
    "answer-an-exception": "exception_visible",
    "answer-an-unknown-client": "missing_client",
    "answer-what-is-unknown": "unhandled_visible",
    "change-an-ip-port-client": "owner_hands_over",
    "check-connections": "detection_timeout_ms",
    "checks_in_time": "renews_after_pause",
    "counts_as_beat": "owner_judges_by_beats",
    "differs": "equality_sees_cluster",
    "find-the-lease-of-an-ip-port-copy-over": "ip_port_lease",
    "hand-over-to-new-members": "owner_hands_over",
    "has_v2": "http_v2_api",
    "has_member": "member_found_by_substring",
    "interrupt-a-load": "load_outlives_exception",
    "is_applicable": "batch_replaces_single",
    "is_not_native_here": "native_untouched_by_peers",
    "is_passed_on": "every_write_forwarded",
    "is_reachable": "sends_only_to_up_members",
    "is_still_to_send": "owner_hands_over",
    "is_remembered": "deleted_stays_deleted",
    "judge-a-report": "report_transport",
    "knows_a_peer": "connects_to_reported_only",
    "may_ask": "connection_replaces_copy",
    "may_give": "snapshot_needs_load",
    "list-a-member": "newcomer_starts_down",
    "miss-a-member": "snapshot_needs_load",
    "name-the-owner": "owner_by_configured_place",
    "number-a-batch": "batch_bumps_revision",
    "number-a-change-of-health": "revision_follows_beats",
    "number-a-content": "revision_sums_services",
    "refusals_complete": "snapshot_needs_load",
    "renews_lease": "sync_renews_lease",
    "replaces_pending": "pending_delete_survives_retry",
    "revision_matches": "zero_is_a_revision",
    "send-a-gone-client": "missing_client_is_deleted",
    "take-the-revision": "revision_taken_over",
    "takes_over": "connection_replaces_copy",
}
"""Rule of the model -> field of the node's profile, by which `strict` and some release differ there too."""

_ONE_GO = "the node does it in one go, whatever the release: nothing else runs in between"
_ON_THE_SPOT = "the node handles local events where they are published, whatever the release: there is no queue"

WITHOUT: Mapping[str, str] = {
    **dict.fromkeys(("apply-a-change", "execute-a-task", "looks_again", "look-again-before-creation"), _ONE_GO),
    **dict.fromkeys(("record-a-sign-of-life", "transport_is_open"), _ONE_GO),
    **dict.fromkeys(("choose-a-queue", "publish-to-a-full-queue", "remove", "handle-a-removal"), _ON_THE_SPOT),
    **dict.fromkeys(("handle-a-registration", "audit-the-index"), _ON_THE_SPOT),
    "calls_back": "the node observes every end of a call in every release",
    "give-an-id": "version 3 gives one and version 2 does not, whatever the release; the node has a path for each",
    "choose-what-to-mark": "metadata travels through raft, which the node does not speak",
    "is_executed_for": "the node drops a task for who has left, whatever the release: there is no one to send it to",
}
"""Rule of the model -> why the node's `strict` has no such switch."""

PARAMETERS: Mapping[str, str] = {
    "batches": "batch_registration",
    "lease_ms": "client_expired_ms",
    "detection_ms": "detection_timeout_ms",
    "load_retry_ms": "load_retry_delay_ms",
    "load_timeout_ms": "load_timeout_ms",
    "reports_to_members_not_up": "reports_to_members_not_up",
    "retry_delay_ms": "sync_retry_delay_ms",
    "revisions_travel": "revision_sent",
    "sync_delay_ms": "sync_delay_ms",
}
"""Parameter of the model's profile -> field of the node's, with the same value in every release that both have.
None: nothing waits for its end there."""

PARAMETERS_WITHOUT: Mapping[str, str] = {
    "largest_revision": "the node counts without a limit, whatever the release",
    "sending_counts_as_activity": "the node tests a connection however much is sent on it, whatever the release",
}
"""Parameter of the model in which `strict` differs from a release -> why the node has no such field."""

_SIZES = "in the model nothing has a size; that no snapshot fits is a mutant of it, B11"
_REPORTS = "in the model a report arrives or does not, and both ends know at once who runs which release"
_CONNECTIONS = "what a server says and checks about connections, ports and rights; in the model there is none of it"
_LISTS = "what is answered, listed or pushed to clients; the model ends at what a node holds of each"
_ENTRY = "what a request of a client may look like; the model begins with what was accepted"

NODE_ALONE: Mapping[str, str] = {
    "verify_tests_revision": "in the model a part of revision_matches, whose counterpart is zero_is_a_revision",
    **dict.fromkeys(("http_report_answers_member", "waits_for_upgraded_members", "member_shows_grpc_report"), _REPORTS),
    "address_from_ip_and_port": _REPORTS,
    **dict.fromkeys(("version", "gray_model_sent", "ability_negotiation"), _REPORTS),
    "reply_bytes_max": _SIZES,
    "member_starts_down": "the model's timed runs begin when all members have received a report of each other",
    **dict.fromkeys(("distro_on_sdk_port", "cluster_client_says_tls", "identity_sent", "inner_auth"), _CONNECTIONS),
    **dict.fromkeys(("http_cluster_needs_auth", "refusal_is_sent"), _CONNECTIONS),
    "exception_code_in_result": _CONNECTIONS,
    **dict.fromkeys(("push_timeout_ms", "push_blocked_ms", "queries_read_pushed_view"), _LISTS),
    **dict.fromkeys(("instance_id_generated", "instance_response_has_type", "publishers_show_cluster"), _LISTS),
    **dict.fromkeys(("client_queries_repaired", "push_of_subscribed_cluster"), _LISTS),
    "subscription_hides_disabled": _LISTS,
    **dict.fromkeys(("persistent_over_grpc", "instances_checked", "parameters_checked"), _ENTRY),
    **dict.fromkeys(("http_v1_distro", "http_v3_api"), _ENTRY),
}
"""Field in which the node's `strict` differs from a release -> why the model has none."""

SEEN_IN_LOCKSTEP: Mapping[str, Path] = {
    path.stem: path for path in sorted((Path(__file__).parent / "seen").glob("*.scenario"))
}
"""Switch of the node -> the scenario in which nodes with a release's value of it leave the model. Its comment says what
they do and, after `Seen:`, the difference that is reported for nodes without it."""

PARTS_OF_ADDRESSES = (8848, 885, 8858)
"""Ports of three nodes, of which the second's address is the beginning of the third's. No scenario can say that."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """`by` is a requirement, or a test of the node, which has that very switch among its parameters."""

    by: str
    why: str


SEEN_ELSEWHERE: Mapping[str, Elsewhere] = {
    "missing_client": Elsewhere(
        "DISTRO-REGISTER-005",
        "in a scenario every connection is one for naming, and has its client for as long as it lives",
    ),
    "renews_after_pause": Elsewhere(
        "DISTRO-LEASE-008",
        "the nodes of a scenario share one process and one clock: none of them can be stopped by itself",
    ),
    "connection_replaces_copy": Elsewhere(
        "DISTRO-SETUP-010",
        "a server names a connection before it is set up, and in a scenario no client receives the name that early",
    ),
    "load_outlives_exception": Elsewhere(
        "impl/tests/test_load.py::test_an_exception_in_the_load_ends_it_for_good_but_not_in_strict",
        "no answer of a member raises what the loader does not expect, and a node that breaks ends the run in any case",
    ),
}
"""Switch of the node -> what sees it where lockstep cannot, and why it cannot."""


def of_a_release(switch: str) -> Any:
    """What the latest release has that is not like `strict`. Of two ways to report over gRPC members that all do so
    show no difference; the model's counterpart is about HTTP."""
    strict = getattr(PROFILES["strict"], switch)
    values = [getattr(release, switch) for release in PROFILES.values()]
    return ReportTransport.HTTP if switch == "report_transport" else [each for each in values if each != strict][-1]
