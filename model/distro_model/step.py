"""The step function: one input, one node, what it becomes and what it says.

This is the whole contract between the rules and everybody who runs them: the timed cluster, the explorer, and later
the simulator and the validators. It is a function of its three arguments and of nothing else.
"""

from __future__ import annotations

from typing import assert_never

from distro_model.events import (
    AnnounceDue,
    BeatCheckDue,
    CallEnded,
    ClientConnected,
    ClientDisconnected,
    Event,
    HttpEntered,
    HttpFinished,
    HttpReceived,
    InstanceDeregistered,
    InstanceRegistered,
    LeaseCheckDue,
    LoadDue,
    MembersListed,
    ReportDue,
    RequestReceived,
    TaskDue,
    VerifyDue,
)
from distro_model.messages import Change, Delete, OwnedList, Report, Snapshot, Verify
from distro_model.node import NodeState, Step
from distro_model.profiles import Profile
from distro_model.rules import clients, ip_clients, load, members, receive, sync, verify


def step(node: NodeState, event: Event, profile: Profile) -> Step:
    """The next state and the outputs. Total: every input is legal in every state, if only to be ignored."""
    match event:
        case ClientConnected():
            return clients.on_connected(node, event, profile)
        case InstanceRegistered():
            return clients.on_registered(node, event, profile)
        case InstanceDeregistered():
            return clients.on_deregistered(node, event, profile)
        case ClientDisconnected():
            return clients.on_disconnected(node, event, profile)
        case RequestReceived():
            return _received(node, event, profile)
        case CallEnded():
            return _ended(node, event, profile)
        case TaskDue():
            return sync.on_task_due(node, event, profile)
        case VerifyDue():
            return verify.on_verify_due(node, event, profile)
        case LeaseCheckDue():
            return verify.on_lease_check_due(node, event, profile)
        case ReportDue():
            return members.on_report_due(node, event, profile)
        case LoadDue():
            return load.on_load_due(node, event, profile)
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


def _received(node: NodeState, event: RequestReceived, profile: Profile) -> Step:
    match event.request:
        case Change() as change:
            return receive.on_change(node, event, change, profile)
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
