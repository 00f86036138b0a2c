"""Properties: what must hold, and what must be reachable, in every bounded cluster.

A property has an id (docs/reference/invariants.md) that begins with its kind, and a sentence. Where it is checked in
states, `lookup_chains` gives the chains of look-ups (`checks.py`, which also defines *settled*). Where it is checked in
a transition, `lookup_chains` is empty: a step of that transition checks it (`cluster/alarms.py`), or it is one of the
alarms of every step of a node (`steps.py`). A `sometimes` that is never found does not hold, so that no property passes
because its situation never occurred.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType

from distro_model.bounded.bounds import Bounds
from distro_model.bounded.layout import Layout
from distro_model.properties.checks import (
    LookupChains,
    at_second_revision,
    diverged,
    held_after_disconnect,
    misowned,
    of_all_nodes,
    of_copies,
    of_loads,
    of_revisions,
    of_settled,
    of_workers,
    unfinished_sync,
)
from distro_model.properties.connection_checks import of_half_open_links, of_silence, of_silent_connections
from distro_model.properties.inside_checks import of_homes, of_indexes
from distro_model.properties.ip_checks import (
    ip_diverged,
    of_equal_revisions,
    of_ownership,
    of_settled_ip_clients,
    shown_after_silence,
    unshown,
)
from distro_model.search.system import Kind, Lookup


def _in_transitions(_: Layout) -> Iterator[tuple[Lookup, ...]]:
    return iter(())


_KINDS = {"INV": Kind.ALWAYS, "REACH": Kind.SOMETIMES, "EVENTUALLY": Kind.EVENTUALLY}


@dataclass(frozen=True, slots=True)
class Property:
    id: str
    sentence: str
    lookup_chains: LookupChains = _in_transitions
    applies: Callable[[Bounds], bool] = lambda _: True
    """Whether the bounds allow what a `sometimes` looks for, or what an `always` is about; otherwise there is no
    verdict."""

    @property
    def kind(self) -> Kind:
        return _KINDS[self.id.partition("-")[0]]


def both(*parts: LookupChains) -> LookupChains:
    return lambda layout: chain.from_iterable(lookup_chains(layout) for lookup_chains in parts)


def _replicates(bounds: Bounds) -> bool:
    return bounds.nodes > 1 and bounds.clients > 0


def _synchronises(bounds: Bounds) -> bool:
    return bounds.nodes > 1 and bounds.clients + bounds.ip_clients > 0


def _has_clients(bounds: Bounds) -> bool:
    return bounds.clients > 0


def _has_any_clients(bounds: Bounds) -> bool:
    return bounds.clients + bounds.ip_clients > 0


def _periods_pass(bounds: Bounds) -> bool:
    return bounds.periods > 0 and bounds.clients > 0


def _is_asked(bounds: Bounds) -> bool:
    return bounds.idle_spells > 0 and bounds.clients > 0


def _falls_silent(bounds: Bounds) -> bool:
    return bounds.silences > 0 and bounds.clients > 0


PROPERTIES: Mapping[str, Property] = MappingProxyType(
    {
        each.id: each
        for each in (
            Property(
                "INV-CONV",
                "In a settled state the owner of a connected client and each node that it lists and believes UP, and"
                " that lists it and believes it UP, show the same instances of the client. All nodes that run show the"
                " same of an ip:port client that beats, once all of them list each other and believe each other UP and"
                " the owner holds the client.",
                both(of_settled("INV-CONV", diverged), of_settled_ip_clients("INV-CONV", lambda _: ip_diverged)),
                _synchronises,
            ),
            Property(
                "INV-OWNER",
                "A client is native at the node that holds its connection and nowhere else, at every moment; an ip:port"
                " client is owned by exactly one node as soon as all have found out which nodes run.",
                both(of_copies("INV-OWNER", misowned), of_ownership),
                _has_any_clients,
            ),
            Property(
                "INV-NATIVE",
                "What a native client publishes, and its revision, change only through its own connection.",
                applies=_replicates,
            ),
            Property(
                "INV-LIVE",
                "A client whose connection is open vanishes nowhere: no lease check removes its copy, and no check of"
                " connections closes the connection of a client that answers. Nor does a client whose beats go on, by"
                " any check or verify. Excluded are nodes that a member list has lacked, and clients that share an id.",
                applies=lambda bounds: _periods_pass(bounds) or _is_asked(bounds) or bounds.ip_clients > 0,
            ),
            Property(
                "INV-DELETE",
                "In a settled state no node holds a client that has disconnected as native, and none that its owner"
                " exchanges requests with holds a copy, unless a crash or a change of a member list since then, a"
                " swallowed DELETE or a set-up that was never finished has left the copy to its lease.",
                of_settled("INV-DELETE", held_after_disconnect),
                _has_clients,
            ),
            Property(
                "INV-SILENT",
                "The next check of connections closes that of a client that has fallen silent.",
                of_silent_connections,
                _falls_silent,
            ),
            Property(
                "INV-RECONNECT",
                "A connection between nodes that broke silently is tested by the next health check, whatever is sent"
                " on it, and replaced.",
                of_half_open_links,
                lambda bounds: bounds.half_open > 0 and bounds.nodes > 1,
            ),
            Property(
                "INV-METADATA",
                "No node deletes the metadata of an instance while it knows a publisher of that instance.",
                applies=lambda bounds: bounds.operator_changes > 0 and bounds.clients > 0,
            ),
            Property(
                "INV-RESURRECT",
                "A client that is gone is held nowhere a lease and two periods later, and a lease more for each crash:"
                " a node that loads starts it again.",
                applies=_periods_pass,
            ),
            Property(
                "INV-EXPIRE",
                "A copy that nothing has renewed is held nowhere a lease and two periods later.",
                applies=_periods_pass,
            ),
            Property(
                "INV-RENEW",
                "A request that is not answered with SUCCESS renews no lease.",
                applies=_periods_pass,
            ),
            Property(
                "INV-LOAD",
                "A node that is not loaded keeps loading, and starts with a member that is UP; it is loaded if there"
                " is no member to load from, or once a member has answered, and then holds every connected client that"
                " the snapshot's sender holds.",
                applies=lambda bounds: bounds.crashes > 0,
            ),
            Property(
                "INV-SOURCE",
                "Only its owner verifies a client or sends its content, and no lease check sends anything.",
                applies=_replicates,
            ),
            Property(
                "INV-RETRY",
                "A sync that did not end with SUCCESS is queued again while its target is a member, and no longer. Once"
                " another node owns an ip:port client, this holds only for changes that the client requested from the"
                " sender.",
                applies=_synchronises,
            ),
            Property(
                "INV-DEAD",
                "An ip:port client that falls silent in a settled state is shown neither by an owner that holds it nor"
                " by a node that this owner exchanges requests with, once both time-outs of its beats and checks"
                " after them are over.",
                of_settled_ip_clients("INV-DEAD", shown_after_silence),
                lambda bounds: bounds.ip_clients > 0,
            ),
            Property(
                "INV-ACK",
                "A CHANGE or DELETE that is answered with SUCCESS has been applied.",
                applies=_synchronises,
            ),
            Property(
                "INV-VERIFY",
                "A confirmed verify means: the copy had the owner's content at some moment between send and answer.",
                applies=_synchronises,
            ),
            Property(
                "INV-REV",
                "A copy stamped with revision r holds what its owner had at revision r, 0 excepted where revisions do"
                " not travel; an ip:port client at one revision has one content.",
                both(of_revisions, of_equal_revisions),
                _has_any_clients,
            ),
            Property(
                "INV-CLIENTACK",
                "Content acknowledged to a client is held by its node once that has drained, or its connection is"
                " gone. Content acknowledged to an ip:port client shows at once where it was handled, and in a settled"
                " state everywhere, unless its beats stopped, nodes crashed or left, or nodes received different"
                " changes.",
                both(of_homes, of_settled_ip_clients("INV-CLIENTACK", lambda _: unshown)),
                _has_any_clients,
            ),
            Property(
                "INV-INDEX",
                "Once a node has drained, its service index and its last push agree with its table of clients; after"
                " a lost event, in settled states.",
                of_indexes,
                lambda bounds: bounds.index > 0 and bounds.clients > 0,
            ),
            Property(
                "INV-DELAY",
                "A fresh change is due after the sync delay, whatever retry is queued for the same peer.",
                applies=lambda bounds: bounds.retry_waits > 0 and _synchronises(bounds),
            ),
            Property(
                "INV-AIM",
                "The end of a sync, verify or report to one member queues nothing for another.",
                applies=lambda bounds: bounds.nodes > 2 and _synchronises(bounds),
            ),
            Property(
                "INV-ISOLATE",
                "No task waits for the end of a call to another member.",
                of_workers,
                lambda bounds: bounds.nodes > 2 and _synchronises(bounds),
            ),
            Property(
                "INV-GONE",
                "A DELETE of a client that is not held succeeds.",
                applies=_replicates,
            ),
            Property(
                "INV-INIT",
                "A node that is not loaded neither verifies nor gives a snapshot.",
                applies=lambda bounds: bounds.crashes > 0,
            ),
            Property(
                "REACH-SECOND-REVISION",
                "A copy holds what its owner had at revision 2.",
                of_copies("REACH-SECOND-REVISION", lambda _: at_second_revision),
                lambda bounds: _replicates(bounds) and bounds.changes > 1,
            ),
            Property(
                "REACH-RETRY",
                "A sync that timed out is queued again.",
                applies=lambda bounds: _replicates(bounds) and bounds.drops + bounds.lost_replies > 0,
            ),
            Property(
                "REACH-VERIFY-REPAIR",
                "A failed verify makes the owner queue the whole client for the one peer that failed.",
                applies=_replicates,
            ),
            Property(
                "EVENTUALLY-SILENT",
                "If timers go on, the connection of a client that has fallen silent is closed in the end.",
                of_silence,
                _falls_silent,
            ),
            Property(
                "EVENTUALLY-LOAD",
                "If deliveries and timers go on, every node that runs and knows another that runs is loaded in the end,"
                " even if others stay down.",
                of_loads,
                lambda bounds: bounds.crashes > 0 and bounds.nodes > 1,
            ),
            Property(
                "EVENTUALLY-CONV",
                "If deliveries and timers go on, the owner of a connected client and each node that it exchanges"
                " requests with in the end show the same instances of the client, for good, even if others stay down.",
                of_all_nodes("EVENTUALLY-CONV", diverged),
                _replicates,
            ),
            Property(
                "EVENTUALLY-DELETE",
                "In the end no node holds a client that has disconnected as native, and none that its owner exchanges"
                " requests with holds a copy, unless a crash or a change of a member list since then, a swallowed"
                " DELETE or a set-up that was never finished has left the copy to its lease.",
                of_all_nodes("EVENTUALLY-DELETE", held_after_disconnect),
                _replicates,
            ),
            Property(
                "EVENTUALLY-QUIET",
                "No node syncs for ever: between any two that run there comes a moment with no sync queued or"
                " unfinished.",
                unfinished_sync,
                _replicates,
            ),
        )
    }
)


class UnknownPropertyError(ValueError):
    """There is no property of that id; the message lists the known ids."""


def property_named(name: str) -> Property:
    """The property of this id. Raises UnknownPropertyError."""
    try:
        return PROPERTIES[name]
    except KeyError:
        raise UnknownPropertyError(f"unknown property {name!r}; known: {', '.join(sorted(PROPERTIES))}") from None
