"""The step function: one input, one node, what it becomes and what it says.

This is the whole contract between the rules and everybody who runs them: the timed cluster, the explorer, and later
the simulator and the validators. It is a function of its three arguments and of nothing else.
"""

from __future__ import annotations

from typing import assert_never

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
    VerifyDue,
)
from distro_model.messages import Change, Delete, OwnedList, Report, Snapshot, Verify
from distro_model.node import Action, NodeState, Step
from distro_model.profiles import Profile
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
        after = health.with_activity(after, event.at_ms)
    if after.node.metadata:
        after = metadata.with_marks(node, after, profile)
    return after


def _by_rules(node: NodeState, event: Event, profile: Profile) -> Step:
    match event:
        case ClientConnected():
            return clients.on_connected(node, event, profile)
        case SetupStarted():
            return clients.on_setup_started(node, event, profile)
        case SetupFinished():
            return clients.on_setup_finished(node, event, profile)
        case InstanceRegistered():
            return clients.on_registered(node, event, profile)
        case InstanceDeregistered():
            return clients.on_deregistered(node, event, profile)
        case BatchRegistered():
            return clients.on_batch_registered(node, event, profile)
        case RequestStarted():
            return clients.on_request_started(node, event, profile)
        case RequestFinished():
            return clients.on_request_finished(node, event, profile)
        case ClientDisconnected():
            return clients.on_disconnected(node, event, profile)
        case RequestReceived():
            return _received(node, event, profile)
        case CallEnded():
            return _ended(node, event, profile)
        case TaskDue():
            return _task_due(node, event, profile)
        case VerifyDue():
            return verify.on_verify_due(node, event, profile)
        case LeaseCheckDue():
            return verify.on_lease_check_due(node, event, profile)
        case ReportDue():
            return members.on_report_due(node, event, profile)
        case ReportToNotUpDue():
            return members.on_report_to_not_up_due(node)
        case LoadDue():
            return load.on_load_due(node, event, profile)
        case ConnectionCheckDue():
            return connections.on_connection_check_due(node, event, profile)
        case DetectionAnswered():
            return connections.on_detection_answered(node, event, profile)
        case DetectionHandled():
            return connections.on_detection_handled(node, event)
        case ConnectionCheckEnds():
            return connections.on_connection_check_ends(node, event, profile)
        case OperatorSet():
            return metadata.on_operator_set(node, event)
        case MetadataDeleted():
            return metadata.on_metadata_deleted(node, event)
        case LocalEventDue():
            return notify.on_local_event_due(node, event, profile)
        case HandlingRaised():
            return receive.on_handling_raised(node, event, profile)
        case LoadInterrupted():
            return load.on_load_interrupted(node, event, profile)
        case ApplyDue():
            return torn.on_apply_due(node, event, profile)
        case ReadDue():
            return torn.on_read_due(node, event, profile)
        case HttpReceived():
            return ip_clients.on_http(node, event, profile)
        case HttpEntered():
            return ip_clients.on_http_entered(node, event, profile)
        case HttpFinished():
            return ip_clients.on_http_finished(node, event, profile)
        case AnnounceDue():
            return ip_clients.on_announce_due(node, event, profile)
        case BeatCheckDue():
            return ip_clients.on_beat_check_due(node, event, profile)
        case MembersListed():
            return members.on_listed(node, event, profile)
    assert_never(event)


def _task_due(node: NodeState, event: TaskDue, profile: Profile) -> Step:
    if not profile.reads_atomically and sync.has_member(node, event.target, profile):
        task, client = node.task(event.client, event.target), node.client(event.client)
        if task is not None and task.action is Action.CHANGE and client is not None:
            return torn.on_change_due(node, event, task, client)
    return sync.on_task_due(node, event, profile)


def _received(node: NodeState, event: RequestReceived, profile: Profile) -> Step:
    match event.request:
        case Change() as change:
            begins = receive.on_change if profile.applies_atomically else torn.on_change
            return begins(node, event, change, profile)
        case Delete() as delete:
            return receive.on_delete(node, event, delete, profile)
        case Verify() as request:
            return verify.on_verify(node, event, request, profile)
        case OwnedList() as owned:
            return verify.on_owned_list(node, event, owned, profile)
        case Snapshot():
            return receive.on_snapshot(node, profile)
        case Report():
            return members.on_report(node, event)
    assert_never(event.request)


def _ended(node: NodeState, event: CallEnded, profile: Profile) -> Step:
    match event.request:
        case Change() | Delete() as request:
            return sync.on_sync_ended(node, event, request, profile)
        case Verify() as request:
            return verify.on_verify_ended(node, event, request, profile)
        case OwnedList():
            return Step(node)
        case Snapshot():
            return load.on_snapshot_ended(node, event, profile)
        case Report():
            return members.on_report_ended(node, event, profile)
    assert_never(event.request)
