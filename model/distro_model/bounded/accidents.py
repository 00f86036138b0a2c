"""What nobody in the cluster meant to happen: exceptions, and requests about a client that its owner never sent.

A *stray* request claims a client for somebody else: connection ids are `millis_ip_port`, and collide after a step of a
clock or behind a proxy (B41). It comes with a revision that the owner never reaches and with content of its own. Nobody
hears its answer. At a client's home it may also be a DELETE.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from distro_model.bounded.draft import BUDGET, Draft, Function, Layout, client_column, link_column
from distro_model.bounded.links import first_sent
from distro_model.bounded.nodes import spent
from distro_model.bounded.values import STRAY_CONTENT, STRAY_REVISION, Connection, Life
from distro_model.events import LoadInterrupted, RequestReceived
from distro_model.messages import Change, Delete, Operation
from distro_model.search.system import Alternative, Chain, Fairness
from distro_model.transitions import LoadIsInterrupted, Strays

SNAPSHOT = frozenset({Operation.SNAPSHOT})


def accident_chains(layout: Layout) -> Iterator[Chain]:
    bounds = layout.bounds
    if bounds.raises and bounds.crashes:
        for source, target in layout.links:
            yield _interrupted_load(layout, source, target)
    if bounds.strays:
        for node in layout.nodes:
            for number, client in enumerate(layout.clients):
                yield _stray(layout, node, client, at_home=bounds.home(number) == node)


def _interrupted_load(layout: Layout, source: str, target: str) -> Chain:
    """The loader is interrupted while it waits for a snapshot."""
    draft, link = Draft(layout, "interrupt load", f"{source}->{target}"), link_column(source, target)
    draft.look("no such call", first_sent(SNAPSHOT), (link,), (link, "call"))
    draft.look("no raises are left", spent("raises"), (BUDGET,), (BUDGET,))
    draft.look("never", interruption, ("call",), ("event",))
    draft.tell(source, "event")
    return draft.chain(lambda _: LoadIsInterrupted(source), fair=Fairness.NONE)


def interruption(_: object) -> Sequence[Alternative]:
    return ((LoadInterrupted(0),),)


def _stray(layout: Layout, node: str, client: str, *, at_home: bool) -> Chain:
    draft = Draft(layout, "stray", f"{client} at {node}")
    claims = strays(layout.others(node)[0] if layout.others(node) else "nobody", at_home)
    draft.look(f"{client} is gone", claims, (client_column(client),), ("event",))
    draft.look("no strays are left", spent("strays"), (BUDGET,), (BUDGET,))
    draft.tell(node, "event")
    return draft.chain(lambda value: _says(node, value("event")), fair=Fairness.NONE)


@cache
def strays(source: str, at_home: bool) -> Function:
    def claims(life: Life) -> Sequence[Alternative]:
        if life.connection is Connection.ENDED:
            return ()
        change = RequestReceived(0, source, Change(life.client, STRAY_REVISION, STRAY_CONTENT))
        delete = RequestReceived(0, source, Delete(life.client))
        return ((change,), (delete,)) if at_home and life.connection is Connection.OPEN else ((change,),)

    return claims


def _says(node: str, event: object) -> Strays:
    assert isinstance(event, RequestReceived)
    return Strays(node, event.request)
