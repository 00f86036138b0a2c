"""How a node shows one client, and whether what is shown may be of several of its states."""

from __future__ import annotations

from collections.abc import Sequence

from distro_model.clock.cluster import View
from distro_model.clock.traffic import compared_revision
from distro_model.messages import shown
from distro_model.node import NodeState
from distro_model.profile import Profile


def view_of(client: str, node: NodeState, profile: Profile) -> View | None:
    """As the node shows it; None: not at all. Before 2.1.2 a revision does not travel, and says nothing."""
    held = node.client(client)
    if held is None:
        return None
    revision = held.revision if profile.revisions_travel else 0
    return View(compared_revision(client, revision) or 0, shown(held.content))


def is_of_several(view: View | None, known: Sequence[View]) -> bool:
    """A check goes from service to service: some are shown as after it, and others as before."""
    if view is None or view.revision not in {each.revision for each in known}:
        return False
    shown_as = dict(view.content)
    contents = [dict(each.content) for each in known]
    services = {service for each in (shown_as, *contents) for service in each}
    return all(any(each.get(service) == shown_as.get(service) for each in contents) for service in services)
