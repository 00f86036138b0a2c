"""Checks of every state about connections: of clients that fell silent, and between nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from distro_model.bounded.layout import CLOCK, Layout, client_column, link_column, node_column
from distro_model.cluster.budget import Clock
from distro_model.cluster.values import Life, Link
from distro_model.events import ConnectionCheckDue, ConnectionCheckEnds, VerifyDue
from distro_model.node import NodeState
from distro_model.profiles import Profile
from distro_model.properties.checks import Function
from distro_model.rules.health import is_tested
from distro_model.search.system import Alternative, Finding, Lookup
from distro_model.step import step


def of_silent_connections(layout: Layout) -> Iterator[tuple[Lookup, ...]]:
    """INV-SILENT, in every state, at each client's own node."""
    for client in layout.clients:
        reads = (node_column(layout.home(client)), client_column(client))
        yield (Lookup("it would be closed", _unclosed(layout.profile), reads, ("found",)),)


@cache
def _unclosed(profile: Profile) -> Function:
    """The check that may be under way ends, the next one finds the connection idle and ends without an answer."""

    def found(node: NodeState | None, life: Life) -> Sequence[Alternative]:
        if node is None or not life.silent:
            return ()
        for event in (ConnectionCheckEnds(0), ConnectionCheckDue(0, (life.client,)), ConnectionCheckEnds(0)):
            node = step(node, event, profile).node
        if node.client(life.client) is None:
            return ()
        return ((Finding("INV-SILENT", f"{life.client} is silent, and no check of {node.name} notices it"),),)

    return found


def of_silence(layout: Layout) -> Iterator[tuple[Lookup, ...]]:
    """EVENTUALLY-SILENT: the states that must not last."""
    for client in layout.clients:
        yield (Lookup("no client is silent", still_silent, (client_column(client),), ("found",)),)


def still_silent(life: Life) -> Sequence[Alternative]:
    return ((Finding("EVENTUALLY-SILENT", f"{life.client} is silent and connected"),),) if life.silent else ()


def of_half_open_links(layout: Layout) -> Iterator[tuple[Lookup, ...]]:
    """INV-RECONNECT, in every state, for each connection."""
    for source, target in layout.links:
        reads = (node_column(source), link_column(source, target), CLOCK)
        yield (Lookup("it would be replaced", _unnoticed(target, layout.profile), reads, ("found",)),)


@cache
def _unnoticed(target: str, profile: Profile) -> Function:
    """The next verify round does not keep the health check after it from testing a broken connection."""

    def found(node: NodeState | None, link: Link, clock: Clock) -> Sequence[Alternative]:
        if node is None or not link.half_open:
            return ()
        at_ms = (clock.period + 1) * profile.verify_interval_ms
        if is_tested(step(node, VerifyDue(at_ms), profile).node, target, at_ms, profile):
            return ()
        what = f"the connection {node.name}->{target} is broken, and the next health check does not test it"
        return ((Finding("INV-RECONNECT", what),),)

    return found
