"""Connections between nodes that break without a word, and the health check that replaces them.

What was on its way is lost and so is all that is sent later; its sender sees time-outs and nothing else. A check of a
connection that works changes nothing, so only the checks that find one broken are transitions. With periods every node
checks its connections at least once in each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

from distro_model.bounded.draft import BUDGET, CLOCK, Draft, Function, Layout, link_column, node_column
from distro_model.bounded.nodes import spent
from distro_model.bounded.values import Clock, Link, Phase
from distro_model.events import VerifyDue
from distro_model.node import NodeState
from distro_model.profiles import Profile
from distro_model.rules.health import is_tested
from distro_model.search.system import Alternative, Chain, Fairness, Finding, Lookup
from distro_model.step import step
from distro_model.transitions import BreaksSilently, Reconnects


def half_open_chains(layout: Layout) -> Iterator[Chain]:
    if not layout.bounds.half_open:
        return
    for source, target in layout.links:
        yield _break(layout, source, target)
        yield _reconnect(layout, source, target)


def _break(layout: Layout, source: str, target: str) -> Chain:
    link = link_column(source, target)
    draft = Draft(layout, "break silently", f"{source}->{target}")
    draft.look("no half-open connections are left", spent("half_open"), (BUDGET,), (BUDGET,))
    draft.look("there is no connection", broken_silently, (link,), (link,))
    return draft.chain(lambda _: BreaksSilently(source, target), fair=Fairness.NONE)


def broken_silently(link: Link) -> Sequence[Alternative]:
    if link.down or link.half_open:
        return ()
    calls = tuple(
        call if call.phase is Phase.REFUSED else replace(call, phase=Phase.LOST, answer=None)
        for call in link.calls
        if call.phase is not Phase.ABANDONED
    )
    return ((Link(False, calls, half_open=True),),)


def _reconnect(layout: Layout, source: str, target: str) -> Chain:
    link, tested = link_column(source, target), _tested(target, layout.profile)
    draft = Draft(layout, "reconnect", f"{source}->{target}")
    draft.look("the connection works", reconnected, (link,), (link,))
    draft.look("it is not tested", tested, (node_column(source), CLOCK))
    return draft.chain(lambda _: Reconnects(source, target), fair=Fairness.STRONG)


def reconnected(link: Link) -> Sequence[Alternative]:
    return ((replace(link, half_open=False),),) if link.half_open else ()


@cache
def _tested(target: str, profile: Profile) -> Function:
    def tested(node: NodeState | None, clock: Clock) -> Sequence[Alternative]:
        at_ms = clock.period * profile.verify_interval_ms
        return ((),) if node is not None and is_tested(node, target, at_ms, profile) else ()

    return tested


@cache
def all_tested(target: str, profile: Profile) -> Function:
    """Whether a period may end: no test that is due would find this connection broken."""
    tested = _tested(target, profile)

    def done(node: NodeState | None, link: Link, clock: Clock) -> Sequence[Alternative]:
        return () if link.half_open and tested(node, clock) else ((),)

    return done


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
