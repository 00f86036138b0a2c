"""The step function: one input, one node, what it becomes and what it says.

This is the whole contract between the rules and everybody who runs them: the timed cluster, the explorer, and later
the simulator and the validators. It is a function of its three arguments and of nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from distro_model.events import (
    AnnounceDue,
    ApplyDue,
    BatchRegistered,
    BeatCheckDue,
    CallEnded,
    ClientConnected,
    ClientDisconnected,
    ConnectionCheckDue,
    ConnectionCheckEnds,
    DetectionAnswered,
    DetectionHandled,
    Event,
    HandlingRaised,
    HttpEntered,
    HttpFinished,
    HttpReceived,
    InstanceDeregistered,
    InstanceRegistered,
    LeaseCheckDue,
    LoadDue,
    LoadInterrupted,
    LocalEventDue,
    MembersListed,
    MetadataDeleted,
    OperatorSet,
    ReadDue,
    ReportDue,
    ReportToNotUpDue,
    RequestFinished,
    RequestReceived,
    RequestStarted,
    SetupFinished,
    SetupStarted,
    TaskDue,
    UnknownReceived,
    VerifyDue,
)
from distro_model.messages import Change, Delete, OwnedList, Report, Request, Snapshot, Verify
from distro_model.node import NodeState, Step
from distro_model.profile import Profile
from distro_model.rules import (
    clients,
    connections,
    health,
    ip_clients,
    load,
    members,
    metadata,
    notify,
    receive,
    sync,
    torn,
    verify,
)


def step(node: NodeState, event: Event, profile: Profile) -> Step:
    """The next state and the outputs. Total: every input is legal in every state, if only to be ignored."""
    after = _by_rules(node, event, profile)
    if profile.sending_counts_as_activity:
        after = health.with_activity(after, event.at_ms, profile)
    if after.node.metadata:
        after = metadata.with_marks(node, after, profile)
    return after


def whole_step(node: NodeState, event: Event, profile: Profile) -> Step:
    """A step, and with it at once whatever of it a profile leaves for later (B05): nothing comes in between."""
    done = step(node, event, profile)
    while done.node.applies or done.node.reads:
        following: Event = (
            ApplyDue(event.at_ms, done.node.applies[0])
            if done.node.applies
            else ReadDue(event.at_ms, done.node.reads[0])
        )
        after = step(done.node, following, profile)
        done = Step(after.node, (*done.outputs, *after.outputs))
    return done


def _by_rules(node: NodeState, event: Event, profile: Profile) -> Step:
    if isinstance(event, RequestReceived):
        return REQUESTS[type(event.request)](node, event, event.request, profile)
    if isinstance(event, CallEnded):
        return ENDS[type(event.request)](node, event, event.request, profile)
    return EVENTS[type(event)](node, event, profile)


def _nothing_follows(node: NodeState, _event: CallEnded, _request: OwnedList, _: Profile) -> Step:
    return Step(node)


EVENTS: Mapping[type[Event], Callable[[NodeState, Any, Profile], Step]] = {
    ClientConnected: clients.on_connected,
    SetupStarted: clients.on_setup_started,
    SetupFinished: clients.on_setup_finished,
    InstanceRegistered: clients.on_registered,
    InstanceDeregistered: clients.on_deregistered,
    BatchRegistered: clients.on_batch_registered,
    RequestStarted: clients.on_request_started,
    RequestFinished: clients.on_request_finished,
    ClientDisconnected: clients.on_disconnected,
    TaskDue: sync.on_task_due,
    VerifyDue: verify.on_verify_due,
    LeaseCheckDue: verify.on_lease_check_due,
    ReportDue: members.on_report_due,
    ReportToNotUpDue: members.on_report_to_not_up_due,
    LoadDue: load.on_load_due,
    LoadInterrupted: load.on_load_interrupted,
    ConnectionCheckDue: connections.on_connection_check_due,
    DetectionAnswered: connections.on_detection_answered,
    DetectionHandled: connections.on_detection_handled,
    ConnectionCheckEnds: connections.on_connection_check_ends,
    OperatorSet: metadata.on_operator_set,
    MetadataDeleted: metadata.on_metadata_deleted,
    LocalEventDue: notify.on_local_event_due,
    HandlingRaised: receive.on_handling_raised,
    UnknownReceived: receive.on_unknown,
    ApplyDue: torn.on_apply_due,
    ReadDue: torn.on_read_due,
    HttpReceived: ip_clients.on_http,
    HttpEntered: ip_clients.on_http_entered,
    HttpFinished: ip_clients.on_http_finished,
    AnnounceDue: ip_clients.on_announce_due,
    BeatCheckDue: ip_clients.on_beat_check_due,
    MembersListed: members.on_listed,
}
"""The rule for each event but the two that are about a request."""

REQUESTS: Mapping[type[Request], Callable[[NodeState, RequestReceived, Any, Profile], Step]] = {
    Change: receive.on_change,
    Delete: receive.on_delete,
    Verify: verify.on_verify,
    OwnedList: verify.on_owned_list,
    Snapshot: receive.on_snapshot,
    Report: members.on_report,
}
"""The rule for each request that arrives."""

ENDS: Mapping[type[Request], Callable[[NodeState, CallEnded, Any, Profile], Step]] = {
    Change: sync.on_sync_ended,
    Delete: sync.on_sync_ended,
    Verify: verify.on_verify_ended,
    OwnedList: _nothing_follows,
    Snapshot: load.on_snapshot_ended,
    Report: members.on_report_ended,
}
"""The rule for each request of ours that is over."""
