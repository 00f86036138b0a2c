"""Unintended events: a load that is interrupted, and requests that no owner sent.

A *stray* request claims a client of another node: connection ids are `millis_ip_port`, and collide after a step of a
clock or behind a proxy (B41). It carries a revision that the owner never reaches, and different content. Its answer is
discarded. At a client's home it may also be a DELETE.
"""

from __future__ import annotations

from distro_model.cluster.calls import is_operation, taking
from distro_model.cluster.statement import Transition, handles, of
from distro_model.cluster.values import STRAY_CONTENT, STRAY_REVISION, Connection, Life
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


def strays(life: Life, node_name: str, claimant: str, now: int) -> list[RequestReceived]:
    if life.connection is Connection.ENDED:
        return []
    change = RequestReceived(now, claimant, Change(life.client, STRAY_REVISION, STRAY_CONTENT))
    delete = RequestReceived(now, claimant, Delete(life.client))
    return [change, delete] if life.home == node_name and life.connection is Connection.OPEN else [change]


STRAY = Transition(
    "stray",
    (handles("node", strays, "{client} is gone"),),
    lambda node_name, event: Happens(node_name, f"receives a stray {event.request}"),
    cost="strays",
)
