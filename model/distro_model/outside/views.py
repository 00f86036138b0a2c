"""The view of one client at a node, and whether the view may combine several of its states."""

from __future__ import annotations

from collections.abc import Sequence

from distro_model.clock.cluster import View
from distro_model.clock.traffic import compared_revision
from distro_model.messages import shown
from distro_model.node import NodeState
from distro_model.profile import Profile


def view_of(client: str, node: NodeState, profile: Profile) -> View | None:
    """The view that the node shows; None: not shown. Before 2.1.2 a revision does not travel, and has no meaning."""
    held = node.client(client)
    if held is None:
        return None
    revision = held.revision if profile.revisions_travel else 0
    return View(compared_revision(client, revision) or 0, shown(held.content))


def is_of_several(view: View | None, known: Sequence[View]) -> bool:
    """A check goes from service to service: some are shown in the state after it, and others in the state before."""
    if view is None or view.revision not in {each.revision for each in known}:
        return False
    shown_as = dict(view.content)
    contents = [dict(each.content) for each in known]
    services = {service for each in (shown_as, *contents) for service in each}
    return all(any(each.get(service) == shown_as.get(service) for each in contents) for service in services)
