"""Checks of every state about connections: of clients that fell silent, and between nodes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from distro_model.bounded.layout import CLOCK, Layout, client_column, link_column, node_column
from distro_model.cluster.budget import Clock
from distro_model.cluster.values import Life, Link
from distro_model.events import ConnectionCheckDue, ConnectionCheckEnds, VerifyDue
from distro_model.node import NodeState
from distro_model.profiles import Profile
from distro_model.properties.checks import Judge, finds
from distro_model.rules.health import is_tested
from distro_model.search.system import Lookup
from distro_model.step import step


def of_silent_connections(layout: Layout) -> Iterator[tuple[Lookup, ...]]:
    """INV-SILENT, in every state, at each client's own node."""
    for client in layout.clients:
        home = node_column(layout.home(client))
        yield (finds("INV-SILENT", _unclosed(layout.profile), home, client_column(client)),)


@cache
def _unclosed(profile: Profile) -> Judge:
    """The check that may be under way ends, the next one finds the connection idle and ends without an answer."""

    def judge(node: NodeState | None, life: Life) -> str | None:
        if node is None or not life.silent:
            return None
        for event in (ConnectionCheckEnds(0), ConnectionCheckDue(0, (life.client,)), ConnectionCheckEnds(0)):
            node = step(node, event, profile).node
        held = node.client(life.client)
        return None if held is None else f"{life.client} is silent, and no check of {node.name} notices it"

    return judge


def of_silence(layout: Layout) -> Iterator[tuple[Lookup, ...]]:
    """EVENTUALLY-SILENT: the states that must not last."""
    for client in layout.clients:
        yield (finds("EVENTUALLY-SILENT", still_silent, client_column(client)),)


def still_silent(life: Life) -> str | None:
    return f"{life.client} is silent and connected" if life.silent else None


def of_half_open_links(layout: Layout) -> Iterator[tuple[Lookup, ...]]:
    """INV-RECONNECT, in every state, for each connection."""
    for source, target in layout.links:
        unnoticed, link = _unnoticed(target, layout.profile), link_column(source, target)
        yield (finds("INV-RECONNECT", unnoticed, node_column(source), link, CLOCK),)


@cache
def _unnoticed(target: str, profile: Profile) -> Judge:
    """The next verify round does not keep the health check after it from testing a broken connection."""

    def judge(node: NodeState | None, link: Link, clock: Clock) -> str | None:
        if node is None or not link.half_open:
            return None
        at_ms = (clock.period + 1) * profile.verify_interval_ms
        if is_tested(step(node, VerifyDue(at_ms), profile).node, target, at_ms, profile):
            return None
        return f"the connection {node.name}->{target} is broken, and the next health check does not test it"

    return judge
