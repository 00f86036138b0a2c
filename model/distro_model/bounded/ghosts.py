"""What becomes of ghost state that no rule can read: lives of ip:port clients, and whose beliefs may be out of date.

Crashes, lost DELETEs and changed member lists weaken what the properties may claim; each function says how.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from distro_model.bounded.draft import Function, Layout
from distro_model.bounded.values import Call, IpLife, Life
from distro_model.messages import Delete
from distro_model.node import NodeState
from distro_model.search.system import Alternative, Finding

Stale = tuple[tuple[str, str], ...]
"""Pairs (node, other): what the node believes of the other may rightly be out of date."""


def unsettled_now(life: Life) -> Sequence[Alternative]:
    return ((replace(life, left_cleanly=False),),)


def without_delete(life: IpLife, call: Call) -> Sequence[Alternative]:
    """A DELETE of this client will not arrive: whatever copy it would have removed is left to the lease."""
    lost = isinstance(call.request, Delete) and call.request.client == life.client
    return ((replace(life, left_to_lease=True) if lost else life,),)


def shaken(life: IpLife) -> Sequence[Alternative]:
    """A node has crashed, or left: what it alone knew is gone, or copies stay where nobody tells them to go."""
    return ((replace(life, sure=False, left_to_lease=True),),)


def handed_over(life: IpLife) -> Sequence[Alternative]:
    """Whoever takes a client over, or back, counts its silence from then on: when it must be gone is left open."""
    return ((replace(life, left_to_lease=True),),)


def vanished(before: NodeState, after: NodeState, life: IpLife) -> Sequence[Alternative]:
    """A client that publishes and beats is not shown any more, by the doing of a check or of a verify."""
    held, kept = before.client(life.client), after.client(life.client)
    gone = held is not None and held.content and (kept is None or not kept.content)
    if not gone or not life.published or life.silence:
        return ((None,),)
    return ((Finding("INV-LIVE", f"{before.name} forgot {life.client}, which has not fallen silent"),),)


def with_pairs(stale: Stale, *pairs: tuple[str, str]) -> Stale:
    return tuple(sorted({*stale, *pairs}))


@cache
def crashed(layout: Layout, node: str) -> Function:
    """Nobody has heard yet that it has stopped, not even those who believed it DOWN before."""

    def after(stale: Stale) -> Sequence[Alternative]:
        return (
            (
                with_pairs(
                    tuple(pair for pair in stale if pair[0] != node), *((other, node) for other in layout.others(node))
                ),
            ),
        )

    return after


@cache
def restarted(layout: Layout, node: str) -> Function:
    """It believes everybody UP, and the others have not heard that it runs again."""

    def after(stale: Stale) -> Sequence[Alternative]:
        others = layout.others(node)
        return ((with_pairs(stale, *((node, other) for other in others), *((other, node) for other in others)),),)

    return after
