"""How the reference nodes hand a client of the HTTP API over, which is another way than that of `strict` in searches.

There a node remembers what each peer has not heard yet, and refuses that from this peer. A Distro request does not say
who sends it, so nodes cannot. They let one member speak for a client at a time: who is its owner sends, whoever
accepted a change tells each later owner, and drops what else of it was to be sent. That is weaker: what was accepted
can be lost to an older copy that its owner verifies before it has heard (model/tests/test_as_nodes.py). These functions
take the place of rules of `strict` only, and only beside nodes (`profiles.beside_nodes`). Source: docs/protocol
#owner-handover.
"""

from __future__ import annotations

from dataclasses import replace

from distro_model.messages import Change
from distro_model.node import Action, Client, NodeState, Task
from distro_model.profile import Profile
from distro_model.rules import ip_clients, members, notify, receive, sync
from distro_model.rules.owners import is_ip_client, is_responsible, owner_of, preference
from distro_model.rules.rule import instead_of


@instead_of(ip_clients.accepted)
def remembered(client: Client, _: Profile) -> Client:
    """The node remembers that it was asked for this itself."""
    return replace(client, accepted=True)


@instead_of(members.told_to_joined)
def told_to_each_owner(after: NodeState, before: NodeState, at_ms: int, profile: Profile) -> NodeState:
    """Who accepted what a client publishes tells each later owner of it."""
    for client in before.clients:
        owner = owner_of(after, client.name, profile) if client.accepted else after.name
        if owner not in (after.name, owner_of(before, client.name, profile)):
            after = sync.queued(after, Task(client.name, owner, Action.CHANGE, at_ms, 0), profile)
    return after


@instead_of(sync.is_still_to_send)
def only_to_its_owner(node: NodeState, task: Task, profile: Profile) -> bool:
    """A task about a client of another owner is dropped, but for what was accepted here and goes to that owner."""
    if not is_ip_client(task.client) or (owner := owner_of(node, task.client, profile)) == node.name:
        return True
    held = node.client(task.client)
    return task.action is Action.CHANGE and task.target == owner and held is not None and held.accepted


@instead_of(ip_clients.is_not_superseded)
def nobody_is_told_apart(_node: NodeState, _source: str, _change: Change, _: Profile) -> bool:
    """A node does not know from which peer a request comes."""
    return True


@instead_of(ip_clients.verified)
def renewed_but_where_it_belongs(node: NodeState, held: Client, _source: str, at_ms: int, _: Profile) -> Client:
    """An accepted verify renews a client, whoever sent it, except at the node that has the client's place."""
    if preference(node, held.name)[0] == node.name:
        return held
    return replace(held, renewed_ms=at_ms, beats=tuple((service, at_ms) for service, _ in held.beats))


@instead_of(receive.is_deletable)
def kept_by_its_owner(node: NodeState, client: str, profile: Profile) -> bool:
    """Whoever takes itself for the owner keeps the client: a DELETE of it comes late, from an earlier one."""
    held = node.client(client)
    return held is None or not (is_ip_client(client) and is_responsible(node, held, profile))


HANDED_OVER = (
    remembered,
    told_to_each_owner,
    only_to_its_owner,
    notify.announces_what_it_owns,
    nobody_is_told_apart,
    kept_by_its_owner,
    renewed_but_where_it_belongs,
)
