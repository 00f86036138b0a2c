"""What clients do: connect, register, deregister, go away, each as often as the bounds allow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

from distro_model.actions import Connect, Deregister, Disconnect, Register
from distro_model.bounded.draft import CLOCK, Draft, Function, Layout, client_column
from distro_model.bounded.values import Clock, Connection, Life
from distro_model.events import (
    ClientConnected,
    ClientDisconnected,
    InstanceDeregistered,
    InstanceRegistered,
)
from distro_model.search.system import Alternative, Chain
from distro_model.transitions import ClientActs

SERVICES = ("web", "db", "cache")


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
            draft.tell(home, "event")
            yield draft.chain(lambda value: ClientActs(value("action")), fair=False)  # type: ignore[arg-type]


def connects(life: Life, _: Clock) -> Sequence[Alternative]:
    if life.connection is not Connection.NEW:
        return ()
    after = replace(life, connection=Connection.OPEN)
    return ((after, Connect(life.client, life.home), ClientConnected(0, life.client)),)


@cache
def changes(services: int) -> Function:
    """At one of its services: a registration that differs from all before it, or a deregistration."""

    def changed(life: Life, _: Clock) -> Sequence[Alternative]:
        if life.connection is not Connection.OPEN or not life.changes_left:
            return ()
        return tuple(_changes_at(life, SERVICES[:services]))

    return changed


def _changes_at(life: Life, services: Sequence[str]) -> Iterator[Alternative]:
    client, published = life.client, dict(life.contents[-1])
    instance = f"{address(client)} v={len(life.contents)}"
    for service in services:
        after = _publishing(life, {**published, service: instance})
        yield (after, Register(client, service, instance), InstanceRegistered(0, client, service, instance))
        if service in published:
            after = _publishing(life, {name: each for name, each in published.items() if name != service})
            yield (after, Deregister(client, service), InstanceDeregistered(0, client, service))


def _publishing(life: Life, content: Mapping[str, str]) -> Life:
    contents = (*life.contents, tuple(sorted(content.items())))
    return replace(life, contents=contents, changes_left=life.changes_left - 1)


def address(client: str) -> str:
    """What a client publishes, without the version that each change adds."""
    return f"10.0.0.{client[1:]}:80"


def disconnects(life: Life, clock: Clock) -> Sequence[Alternative]:
    if life.connection is not Connection.OPEN:
        return ()
    after = replace(life, connection=Connection.ENDED, left_cleanly=True, ended_period=clock.period)
    return ((after, Disconnect(life.client), ClientDisconnected(0, life.client)),)
