"""What clients do: connect, register, deregister, go away, each as often as the bounds allow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

from distro_model.actions import Connect, Deregister, Disconnect, Register, RegisterBatch
from distro_model.bounded.draft import BUDGET, CLOCK, Draft, Function, Layout, client_column
from distro_model.bounded.nodes import spent
from distro_model.bounded.values import Clock, Connection, Life
from distro_model.events import (
    BatchRegistered,
    ClientConnected,
    ClientDisconnected,
    InstanceDeregistered,
    InstanceRegistered,
    InstanceRequest,
)
from distro_model.messages import Answer, CallResult, Content, batch_of
from distro_model.search.system import Alternative, Chain, Fairness
from distro_model.transitions import ClientActs

SERVICES = ("web", "db", "cache")
SERVICE = SERVICES[0]


def client_chains(layout: Layout) -> Iterator[Chain]:
    for client in layout.clients:
        home = layout.bounds.home(layout.clients.index(client))
        for kind, choices in (
            ("connect", connects),
            ("change", changes(layout.bounds.services)),
            ("disconnect", disconnects),
        ):
            draft = Draft(layout, kind, client)
            column = client_column(client)
            draft.look(f"{client} cannot {kind} now", choices, (column, CLOCK), (column, "action", "event"))
            draft.tell(home, "event", "answer")
            if kind == "change":
                draft.look("never", heard, (column, "event", "answer"), (column,))
            yield draft.chain(lambda value: ClientActs(value("action")), fair=Fairness.NONE)  # type: ignore[arg-type]
        if layout.bounds.batches:
            yield _batch(layout, client, home)


def _batch(layout: Layout, client: str, home: str) -> Chain:
    draft = Draft(layout, "register a batch", client)
    column = client_column(client)
    draft.look("no batches are left", spent("batches"), (BUDGET,), (BUDGET,))
    draft.look(f"{client} is not connected", batches, (column,), (column, "action", "event"))
    draft.tell(home, "event", "answer")
    draft.look("never", heard, (column, "event", "answer"), (column,))
    return draft.chain(lambda value: ClientActs(value("action")), fair=Fairness.NONE)  # type: ignore[arg-type]


def after_request(content: Content, request: InstanceRequest) -> Content:
    """What a client publishes when this request of it is carried out."""
    kept = {service: instance for service, instance in content if service != request.service}
    match request:
        case InstanceRegistered():
            kept[request.service] = request.instance
        case BatchRegistered():
            kept[request.service] = batch_of(request.instances)
    return tuple(sorted(kept.items()))


def heard(life: Life, request: InstanceRequest, answer: Answer | None) -> Sequence[Alternative]:
    """The client hears how its request ended, and from then on counts on what was answered with success."""
    if answer is None or answer.result is not CallResult.SUCCESS or not life.is_up:
        return ((life,),)
    return ((replace(life, acknowledged=after_request(life.acknowledged, request)),),)


def connects(life: Life, _: Clock) -> Sequence[Alternative]:
    if life.connection is not Connection.NEW:
        return ()
    after = replace(life, connection=Connection.OPEN)
    return ((after, Connect(life.client, life.home), ClientConnected(0, life.client)),)


@cache
def changes(services: int) -> Function:
    """At one of its services: a registration that differs from all before it, or a deregistration."""

    def changed(life: Life, _: Clock) -> Sequence[Alternative]:
        if not life.acts or not life.changes_left:
            return ()
        return tuple(_changes_at(life, SERVICES[:services]))

    return changed


def _changes_at(life: Life, services: Sequence[str]) -> Iterator[Alternative]:
    client, published = life.client, dict(life.contents[-1])
    instance = f"{life.address} v={len(life.contents)}"
    for service in services:
        after = _publishing(life, {**published, service: instance})
        yield (after, Register(client, service, instance), InstanceRegistered(0, client, service, instance))
        if service in published:
            after = _publishing(life, {name: each for name, each in published.items() if name != service})
            yield (after, Deregister(client, service), InstanceDeregistered(0, client, service))


def _publishing(life: Life, content: Mapping[str, str]) -> Life:
    return replace(_with_content(life, content), changes_left=life.changes_left - 1)


def _with_content(life: Life, content: Mapping[str, str]) -> Life:
    return replace(life, contents=(*life.contents, tuple(sorted(content.items()))))


def batches(life: Life) -> Sequence[Alternative]:
    """Two instances at once, which differ from all before them."""
    if not life.acts:
        return ()
    version = len(life.contents)
    instances = tuple(f"{address} v={version}" for address in (life.address, f"{life.address}81"))
    after = _with_content(life, {**dict(life.contents[-1]), SERVICE: batch_of(instances)})
    action = RegisterBatch(life.client, SERVICE, instances)
    return ((after, action, BatchRegistered(0, life.client, SERVICE, instances)),)


def disconnects(life: Life, clock: Clock) -> Sequence[Alternative]:
    if not life.is_up or life.silent:
        return ()
    return ((life.ended(clock.period), Disconnect(life.client), ClientDisconnected(0, life.client)),)
