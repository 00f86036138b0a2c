"""Unintended events: a load that is interrupted, and requests that no owner sent.

Two clients may have the same id, since connection ids are `millis_ip_port`: after a step of a clock, or behind a proxy
(B41). Then a node receives a request about its client from a node that does not own it. The request carries different
content and a revision that the owner never reaches; its answer is discarded. At a client's home it may also be a
DELETE.
"""

from __future__ import annotations

from distro_model.cluster.calls import is_operation, taking
from distro_model.cluster.statement import Transition, handles, of
from distro_model.cluster.values import COLLIDING_CONTENT, COLLIDING_REVISION, Connection, Life
from distro_model.events import LoadInterrupted, RequestReceived
from distro_model.messages import Change, Delete
from distro_model.transitions import Happens

INTERRUPT_LOAD = Transition(
    "interrupt load",
    (*taking(is_operation), handles("source", of(LoadInterrupted, "now"))),
    lambda source_name: Happens(source_name, "is interrupted while it loads"),
    cost="raises",
)
"""The loader is interrupted while it waits for a snapshot."""


def requests_of_another_client(life: Life, node_name: str, claimant: str, now: int) -> list[RequestReceived]:
    if life.connection is Connection.ENDED:
        return []
    change = RequestReceived(now, claimant, Change(life.client, COLLIDING_REVISION, COLLIDING_CONTENT))
    delete = RequestReceived(now, claimant, Delete(life.client))
    return [change, delete] if life.home == node_name and life.connection is Connection.OPEN else [change]


ID_COLLISION = Transition(
    "id collision",
    (handles("node", requests_of_another_client, "{client} is gone"),),
    lambda node_name, event: Happens(node_name, f"receives {event.request} of another client with that id"),
    cost="id_collisions",
)
