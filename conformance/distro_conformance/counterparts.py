"""What `strict` repairs, in the model and in the reference node: each rule that a release replaces, and where it is.

The two read one protocol and name things apart, so nothing but this table says which switch is which. A rule without a
switch in the node has the reason here; tests hold both columns against the profiles.
"""

from __future__ import annotations

from collections.abc import Mapping

SWITCHES: Mapping[str, str] = {
    "announce-an-upgrade": "owner_hands_over",
    "answer-an-exception": "exception_visible",
    "answer-an-unknown-client": "missing_client",
    "change-an-ip-port-client": "owner_hands_over",
    "check-connections": "detection_timeout_ms",
    "checks_in_time": "pause_is_forgiven",
    "counts_as_beat": "owner_judges_by_beats",
    "find-the-lease-of-an-ip-port-copy-over": "ip_port_lease",
    "hand-over-to-new-members": "owner_hands_over",
    "has_member": "member_found_by_substring",
    "interrupt-a-load": "load_outlives_exception",
    "is_applicable": "batch_replaces_single",
    "is_not_native_here": "native_untouched_by_peers",
    "is_reachable": "sends_only_to_up_members",
    "is_remembered": "deleted_stays_deleted",
    "judge-a-report": "report_transport",
    "knows_a_peer": "connects_to_reported_only",
    "may_give": "snapshot_needs_load",
    "miss-a-member": "snapshot_needs_load",
    "name-the-owner": "owner_by_configured_place",
    "number-a-batch": "batch_bumps_revision",
    "number-a-change-of-health": "revision_follows_beats",
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
    "calls_back": "the node hears of every end of a call, whatever the release",
    "choose-what-to-mark": "metadata travels through raft, which the node does not speak",
    "is_executed_for": "the node drops a task for who has left, whatever the release: there is no one to send it to",
    "list-a-member": "the node takes a new member for UP in strict too: B36 is repaired in the model alone",
}
"""Rule of the model -> why the node's `strict` has no such switch."""
