"""Actions of clients on their connections: connect, register, deregister, disconnect. Which of these happens is a
choice."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from distro_model.actions import Connect, Deregister, Disconnect, Register, RegisterBatch
from distro_model.cluster.statement import Transition, chooses, handles, of, records, writes
from distro_model.cluster.values import Connection, Life
from distro_model.events import (
    BatchRegistered,
    ClientConnected,
    ClientDisconnected,
    InstanceDeregistered,
    InstanceRegistered,
    InstanceRequest,
)
from distro_model.messages import CLUSTER, Answer, CallResult, Content, batch_of, is_batch, without_clusters

SERVICES = ("web", "db", "cache")
SERVICE = SERVICES[0]

Change = Register | Deregister | RegisterBatch


class Asked(NamedTuple):
    action: Change


def request_of(action: Change, at_ms: int) -> InstanceRequest:
    match action:
        case Register(client, service, instance):
            return InstanceRegistered(at_ms, client, service, instance)
        case Deregister(client, service):
            return InstanceDeregistered(at_ms, client, service)
        case RegisterBatch(client, service, instances):
            return BatchRegistered(at_ms, client, service, instances)


def after_request(content: Content, request: InstanceRequest) -> Content:
    """The content that a client publishes after this request of it is carried out."""
    kept = {service: instance for service, instance in content if service != request.service}
    match request:
        case InstanceRegistered():
            kept[request.service] = request.instance
        case BatchRegistered():
            kept[request.service] = batch_of(request.instances)
    return tuple(sorted(kept.items()))


def with_answer(life: Life, request: InstanceRequest, answer: Answer | None) -> Life:
    """The client receives the end of its request; content that was answered with success is acknowledged from then
    on."""
    if answer is None or answer.result is not CallResult.SUCCESS or not life.is_up:
        return life
    return replace(life, acknowledged=after_request(life.acknowledged, request))


# Connections


def open_connection(life: Life) -> Life | None:
    return replace(life, connection=Connection.OPEN) if life.connection is Connection.NEW else None


CONNECT = Transition(
    "connect",
    (writes(open_connection, "{client} cannot connect now"), handles("home", of(ClientConnected, "now", "client"))),
    lambda life: Connect(life.client, life.home),
)


def end_connection(life: Life, period: int) -> Life | None:
    return life.ended(period) if life.is_up and not life.silent else None


DISCONNECT = Transition(
    "disconnect",
    (
        writes(end_connection, "{client} cannot disconnect now"),
        handles("home", of(ClientDisconnected, "now", "client")),
    ),
    lambda life: Disconnect(life.client),
)


# Requests


def ask(life: Life, services: int) -> list[Asked]:
    """A registration with content that differs from all before it, or a deregistration, at one of the client's
    services."""
    if not life.acts or not life.changes_left:
        return []
    published, instance = dict(life.contents[-1]), f"{life.address} v={len(life.contents)}"
    asked: list[Asked] = []
    for service in SERVICES[:services]:
        asked.append(Asked(Register(life.client, service, instance)))
        if service in published:
            asked.append(Asked(Deregister(life.client, service)))
    return asked


def ask_other_cluster(life: Life) -> Asked | None:
    """The client's current content with another cluster name and otherwise unchanged."""
    published = dict(life.contents[-1]).get(SERVICE)
    if not life.acts or not life.changes_left or published is None or is_batch(published):
        return None
    there = without_clusters(published)
    address, *rest = there.split(" ")
    moved = there if there != published else " ".join((address, f"{CLUSTER}blue", *rest))
    return Asked(Register(life.client, SERVICE, moved))


def ask_batch(life: Life) -> Asked | None:
    """Two instances at once, which differ from all before them."""
    if not life.acts:
        return None
    version = len(life.contents)
    instances = tuple(f"{address} v={version}" for address in (life.address, f"{life.address}81"))
    return Asked(RegisterBatch(life.client, SERVICE, instances))


def remember(life: Life, event: InstanceRequest, answer: Answer | None) -> Life:
    """The content that the client publishes from now on, and the content acknowledged to it."""
    left = life.changes_left - (not isinstance(event, BatchRegistered))  # batches have a separate budget
    contents = (*life.contents, after_request(life.contents[-1], event))
    return with_answer(replace(life, contents=contents, changes_left=left), event, answer)


CHANGE = Transition(
    "change",
    (chooses(ask, "{client} cannot change now"), handles("home", of(request_of, "action", "now")), records(remember)),
    lambda action: action,
)
REGISTER_BATCH = replace(
    CHANGE,
    kind="register a batch",
    steps=(chooses(ask_batch, "{client} is not connected"), *CHANGE.steps[1:]),
    cost="batches",
)
CHANGE_CLUSTER = replace(
    CHANGE,
    kind="change cluster",
    steps=(chooses(ask_other_cluster, "{client} publishes no instance"), *CHANGE.steps[1:]),
    cost="cluster_changes",
)
